"""Small files that claim to be huge, and shapes without end, each used under a limit of memory; see test_bombs.py.

    python tests/fuzz/bombs.py FOLDER CASE ...

Prints a line of JSON for each case: its name, what came of it, CPU seconds, and peak memory so far in MB.
"""

import io
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MEMORY_BYTES = 2 << 30
ROWS = 1 << 20
TIMES = 320


def repeated(table: pa.Table, path: Path, times: int = TIMES) -> Path:
    """A Parquet file whose footer names the same row group many times over."""
    one, footer = io.BytesIO(), io.BytesIO()
    pq.write_table(table, one, row_group_size=len(table))
    data = one.getvalue()
    whole, again = (pq.read_metadata(io.BytesIO(data)) for _ in range(2))
    for _ in range(times - 1):
        whole.append_row_groups(again)
    whole.write_metadata_file(footer)
    length = int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[: -8 - length] + footer.getvalue()[4:])
    claimed = pq.read_metadata(path)
    assert claimed.num_rows == times * len(table) and path.stat().st_size < 1 << 20
    return path


def rides_bomb(folder: Path, times: int = TIMES) -> Path:
    """10 GB of points in 0.2 MB: 4 columns of 8 bytes, 335 million rows."""
    columns = {"traj_id": np.zeros(ROWS, int), "lat": np.full(ROWS, 10.01), "lon": np.full(ROWS, 20.01)}
    return repeated(pa.table({**columns, "t": np.full(ROWS, 1_700_000_000)}), folder / "rides.parquet", times)


def roads_bomb(folder: Path) -> Path:
    """5 GB of vertices in one road after the other."""
    offsets = pa.array([0, ROWS], pa.int32())
    lists = [pa.ListArray.from_arrays(offsets, pa.array(np.full(ROWS, at))) for at in (20.01, 10.01)]
    return repeated(pa.table({"lon": lists[0], "lat": lists[1]}), folder / "roads.parquet")


def a_scope(**other: Any) -> Any:
    from wayveil.core.scope import Scope

    box = {"name": "box", "south": 10.0, "west": 20.0, "north": 10.05, "east": 20.06}
    return Scope.model_validate({**box, **other})


def read_rides(folder: Path) -> None:
    from wayveil.io.files import read

    read(rides_bomb(folder))


def measure_rides(folder: Path, times: int) -> None:
    from wayveil.measurement import measure

    measure(rides_bomb(folder, times), a_scope(), epsilon="1", unit="trajectory")


def read_road_map(folder: Path) -> None:
    from wayveil.io.roads import read_roads

    read_roads(roads_bomb(folder))


def ring(x: np.ndarray, y: np.ndarray) -> list[list[float]]:
    corners = np.column_stack([x, y]).round(9).tolist()
    return [*corners, corners[0]]


def closed(folder: Path, coordinates: Any, scope: Any = None) -> None:
    from wayveil.rules import count, motion_from_metres, read_rules

    options = {"rule": "closed", "from": "07:00", "to": "08:00"}
    feature = {"type": "Feature", "properties": options, "geometry": {"type": "Polygon", "coordinates": coordinates}}
    path = folder / "rules.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    del feature, coordinates
    scope = scope or a_scope()
    rules = read_rules(path, scope)
    motion = motion_from_metres(np.linspace(0, 3000, 50), np.linspace(0, 3000, 50), np.arange(50.0), [0, 50], scope)
    assert np.isfinite(rules[0].penalty(motion)).all()
    count(rules, motion)


def many_corners(folder: Path, corners: int) -> None:
    angle = np.linspace(0, 2 * np.pi, corners + 1)[:-1]
    radius = 0.015 + 0.001 * np.sin(40 * angle) + 3e-5 * np.sin(30_000 * angle)
    closed(folder, [ring(20.03 + radius * np.cos(angle), 10.025 + radius * np.sin(angle))])


def scribble(folder: Path, corners: int) -> None:
    x, y = np.random.default_rng(0).uniform((20.0, 10.0), (20.06, 10.05), (corners, 2)).T
    closed(folder, [ring(x, y)])


def same_spot(folder: Path) -> None:
    """Every second corner is the same one: the border meets itself there 10,000 times."""
    angle = np.linspace(0, 2 * np.pi, 20_001)[:-1]
    radius = np.where(np.arange(20_000) % 2, 0.0, 0.01)
    closed(folder, [ring(20.03 + radius * np.cos(angle), 10.025 + radius * np.sin(angle))])


def antimeridian(folder: Path) -> None:
    scope = a_scope(west=179.97, east=-179.97)
    closed(folder, [[[179.99, 10.01], [-179.99, 10.01], [-179.99, 10.03], [179.99, 10.03], [179.99, 10.01]]], scope)


def whole_world(folder: Path) -> None:
    closed(folder, [[[-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]]])


def up_to_the_pole(folder: Path) -> None:
    scope = a_scope(south=84.9, north=85.0, west=0.0, east=1.0)
    closed(folder, [[[0, 80], [1, 80], [1, 90], [0, 90], [0, 80]]], scope)


def around_the_pole(folder: Path) -> None:
    closed(folder, [[[0, 80], [120, 80], [-120, 80], [0, 80]]], a_scope(south=84.9, north=85.0, west=0.0, east=1.0))


CASES = {
    "read 10 GB of rides": read_rides,
    "measure 2.5 GB of rides": lambda folder: measure_rides(folder, TIMES // 4),  # more than the limit of memory
    "read 5 GB of roads": read_road_map,
    "200,000 corners": lambda folder: many_corners(folder, 200_000),
    "scribble of 60 corners": lambda folder: scribble(folder, 60),
    "scribble of 20,000 corners": lambda folder: scribble(folder, 20_000),
    "one spot met 10,000 times": same_spot,
    "across the antimeridian": antimeridian,
    "the whole world": whole_world,
    "up to the pole": up_to_the_pole,
    "around the pole": around_the_pole,
}
LONG_CASES = {
    "measure 10 GB of rides": lambda folder: measure_rides(folder, TIMES),
    "a million corners": lambda folder: many_corners(folder, 1_000_000),
}


def peak_mb() -> int:
    """Peak memory of this process; `ru_maxrss` would include that of the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) >> 10


def main() -> None:
    from wayveil.errors import WayveilError

    folder, names = Path(sys.argv[1]), sys.argv[2:]
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    for name in names or CASES:
        began = time.process_time()
        try:
            (CASES | LONG_CASES)[name](folder)
            said = "done"
        except WayveilError as error:
            said = str(error)
        print(json.dumps([name, said, round(time.process_time() - began, 2), peak_mb()]), flush=True)


if __name__ == "__main__":
    main()
