"""Which datasets a folder holds, and where their scope and road map are."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io import files
from wayveil.io.parquet_files import opened
from wayveil.io.roads import read_roads
from wayveil.io.scope_files import read_scope
from wayveil.simulate import simulate_city, simulate_trajectories

if TYPE_CHECKING:
    from wayveil.simulate.city import City

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
    with opened(str(path)):
        pass  # a file that is not Parquet is refused before any cell runs
    known = next((name for prefix, name in _KNOWN_SCOPES if path.stem.startswith(prefix)), None)
    chosen = known or scope
    if chosen is None:
        raise InputError(f"The scope of '{path.stem}' is unknown; set it with scope=.")

    folder = path.parent / "roads"
    candidates = [folder / f"{path.stem}.parquet", folder / f"{path.stem}_roads.parquet"]
    candidates += [folder / _KNOWN_ROADS[chosen]] if chosen in _KNOWN_ROADS else []
    roads_file = next((file for file in candidates if file.is_file()), None)
    roads = None if roads_file is None else partial(_read_roads, roads_file)
    return Dataset(path.stem, read_scope(chosen), partial(_read, path), roads, _digest(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _read(path: Path) -> Trajectories:
    return files.read(path)


def _read_roads(path: Path) -> RoadMap:
    return read_roads(path)


def quick_dataset() -> Dataset:
    """A small simulated city, so that the comparison runs without a download.

    Privacy: free (simulated data).
    """
    return Dataset("embedded-city", _city().scope, _quick_trajectories, _quick_roads, f"{QUICK_TRAJECTORIES} simulated")


@cache
def _city() -> "City":
    return simulate_city(seed=0, size_km=(5, 5))


def _quick_trajectories() -> Trajectories:
    return simulate_trajectories(_city(), n=QUICK_TRAJECTORIES, seed=0)


def _quick_roads() -> RoadMap:
    return _city().roadmap
