"""A simulated city as files: trajectories, road map, rules and scope."""

import os
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.atomic import write_text
from wayveil.io.options import SIMULATED, SYNTHETIC, files_written, writing_format
from wayveil.io.outputs import check_output, check_outputs
from wayveil.io.readers.dispatch import metadata_of
from wayveil.io.replaceable import check_keeps_trajectories
from wayveil.io.roads import write_roads
from wayveil.progress import Progress, quiet
from wayveil.simulate.city import City, rules_text, scope_toml
from wayveil.simulate.generate import USUAL, Behaviour, simulate_to_file

PathLike = str | os.PathLike[str]


def check_city_files(
    path: PathLike,
    *,
    roads: PathLike | None = None,
    rules: PathLike | None = None,
    scope: PathLike | None = None,
    force: bool = False,
) -> dict[str, Path]:
    """Return the files that `write_city` would write, by kind; raise InputError if one of them cannot be written."""
    given = {"trajectories": path, "roads": roads, "rules": rules, "scope": scope}
    files = {kind: Path(file) for kind, file in given.items() if file is not None}
    output, *others = files.values()
    check_outputs([*files_written(output, writing_format(output)), *others])
    for file in files.values():
        check_output(file, force=force)
    check_keeps_trajectories(output, _is_made_up)
    return files


def _is_made_up(path: Path) -> bool:
    """Whether the notes of a file say that it is simulated or synthetic."""
    try:
        return metadata_of(path).get("origin", "").startswith((SIMULATED, SYNTHETIC))
    except InputError:
        return False


def write_city(
    city: City,
    path: PathLike,
    n: int = 10_000,
    seed: int = 0,
    *,
    roads: PathLike | None = None,
    rules: PathLike | None = None,
    scope: PathLike | None = None,
    behaviour: Behaviour = USUAL,
    force: bool = False,
    progress: Progress = quiet,
) -> dict[str, Path]:
    """Write `n` simulated trajectories and, on request, the city's road map, rules and scope; return the files by kind.

    Parameters
    ----------
    city
        The result of `simulate_city`.
    path
        The file of the trajectories; its extension selects the format. Parquet is written with constant memory.
    seed
        The same city, n and seed give the same trajectories.
    roads, rules, scope
        Files for the road map (.parquet or .geojson), the traffic rules (.geojson) and the scope (.toml).
    behaviour
        Which parts of the simulation are detailed.
    force
        Whether existing files may be overwritten.

    Examples
    --------
    >>> import wayveil
    >>> city = wayveil.simulate.simulate_city(size_km=(3, 3))
    >>> wayveil.simulate.write_city(city, "rides.parquet", 100, scope="city.toml")  # doctest: +SKIP

    Privacy
    -------
    Free (simulated data).
    """
    files = check_city_files(path, roads=roads, rules=rules, scope=scope, force=force)
    if "roads" in files:
        write_roads(city.roadmap, files["roads"])
    if "rules" in files:
        write_text(files["rules"], rules_text(city), private=False)
    if "scope" in files:
        write_text(files["scope"], scope_toml(city), private=False)
    simulate_to_file(files["trajectories"], n, seed, city=city, behaviour=behaviour, progress=progress)
    return files
