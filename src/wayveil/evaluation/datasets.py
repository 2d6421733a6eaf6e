"""Which datasets a folder holds, and where their scope and road map are."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io import files
from wayveil.io.roads import read_roads
from wayveil.io.scope_files import read_scope
from wayveil.simulate import simulate_city, simulate_trajectories

_KNOWN_SCOPES = (("cabspotting", "san-francisco"), ("geolife", "beijing"), ("tdrive", "beijing"))
_KNOWN_ROADS = {"san-francisco": "sf_roads.parquet", "beijing": "beijing_roads.parquet"}
QUICK_TRAJECTORIES = 400
"""Simulated trajectories of `bench utility --quick`, so that it ends within minutes."""


@dataclass(frozen=True)
class Dataset:
    """A dataset that is read when it is needed."""

    name: str
    scope: Scope
    read: Callable[[], Trajectories]
    roads: Callable[[], RoadMap] | None
    fingerprint: str
    """Changes when the file changes, so that results of other data are not reused."""


def find_datasets(folder: Path, scope: str | None, wanted: list[str] | None = None) -> list[Dataset]:
    """Every <name>.parquet of the folder (except <name>_trips.parquet), smallest first.

    The scope is known for cabspotting*, geolife* and tdrive*; others take `scope`. A road map is roads/<name>.parquet,
    roads/<name>_roads.parquet, or the one of a known scope.
    """
    if not folder.is_dir():
        raise InputError(f"'{folder.name}' is not a folder; give a folder with <name>.parquet files.")
    files = [path for path in sorted(folder.glob("*.parquet")) if not path.stem.endswith("_trips")]
    if wanted:
        missing = [name for name in wanted if name not in {path.stem for path in files}]
        if missing:
            raise InputError(f"The folder has no '{missing[0]}.parquet'; leave out datasets= to use all.")
        files = [path for path in files if path.stem in wanted]
    if not files:
        raise InputError(f"'{folder.name}' contains no <name>.parquet; make one with `wayveil convert`.")
    return [_dataset(path, scope) for path in sorted(files, key=lambda path: path.stat().st_size)]


def _dataset(path: Path, scope: str | None) -> Dataset:
    known = next((name for prefix, name in _KNOWN_SCOPES if path.stem.startswith(prefix)), None)
    chosen = known or scope
    if chosen is None:
        raise InputError(f"The scope of '{path.stem}' is unknown; set it with scope=.")

    def read() -> Trajectories:
        return files.read(path)

    folder = path.parent / "roads"
    candidates = [folder / f"{path.stem}.parquet", folder / f"{path.stem}_roads.parquet"]
    candidates += [folder / _KNOWN_ROADS[chosen]] if chosen in _KNOWN_ROADS else []
    roads_file = next((file for file in candidates if file.is_file()), None)
    return Dataset(path.stem, read_scope(chosen), read, _roads(roads_file), _digest(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _roads(file: Path | None) -> Callable[[], RoadMap] | None:
    if file is None:
        return None

    def read() -> RoadMap:
        return read_roads(file)

    return read


def quick_dataset() -> Dataset:
    """A small simulated city, so that the comparison runs without a download.

    Privacy: free (simulated data).
    """
    city = simulate_city(seed=0, size_km=(5, 5))
    return Dataset(
        "embedded-city",
        city.scope,
        lambda: simulate_trajectories(city, n=QUICK_TRAJECTORIES, seed=0),
        lambda: city.roadmap,
        f"{QUICK_TRAJECTORIES} simulated",
    )
