"""Load test: large inputs through the command line, with CPU seconds and peak memory of each command.

    python research/benchmarks/load.py                            # full size
    python research/benchmarks/load.py --scale 0.05               # a twentieth of every size
    python research/benchmarks/load.py --only rules map --json load.json

Cases: `trajectory` and `user` measure and synthesise a million simulated trips at each unit of privacy; `delta`
measures a million trips of 50,000 users with Gaussian noise; `rules` synthesises under 2,000 closed areas; `map`
synthesises on a road map of a million edges in a box of 60 by 60 km.
Each command runs in a process of its own, on one thread and with empty caches. Start-up and imports are included.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

TRIPS = 1_000_000
"""Simulated trips that are measured, and synthetic ones that are drawn."""
TRIPS_PER_USER = 20
"""Trips of each user in the case `delta`."""
RULES = 2_000
"""The most features that a rules file may have (`wayveil.rules.geojson.MAX_FEATURES`)."""
EDGES = 1_000_000
DRAWN = 20_000
"""Synthetic trips of the cases `rules` and `map`, where the input is large and not the output."""
REGION_KM = 60.0
"""Side of the box around the city in the case `map`: a lattice of a million edges then has blocks of 85 m."""
MAIN = "from wayveil.cli.main import main; main()"


@dataclass(frozen=True)
class Row:
    """One command of one case."""

    case: str
    command: str
    size: str
    cpu_s: float
    wall_s: float
    peak_mb: float


@dataclass(frozen=True)
class Load:
    """The sizes of one run and the folder that holds its files."""

    folder: Path
    scale: float

    def scaled(self, size: int) -> int:
        return max(1, round(size * self.scale))

    def measure(self, case: str, scope: str, *unit: str, trips: str = "city.parquet") -> Row:
        """Measure the simulated trips, on a ledger of the case's own."""
        files = [trips, "--scope", scope, "--ledger", f"{case}.sqlite", "-o", f"{case}.release.json"]
        size = f"{self.scaled(TRIPS):,} trips"
        return self.wayveil(case, size, "measure", *files, "--dataset", case, "--epsilon", "1", *unit)

    def synthesize(self, case: str, size: str, n: int, *options: str) -> Row:
        """Draw synthetic trips from the release of the case."""
        files = [f"{case}.release.json", "-o", f"{case}.parquet"]
        return self.wayveil(case, size, "synthesize", *files, "-n", str(n), "--seed", "0", *options)

    def wayveil(self, case: str, size: str, *words: str) -> Row:
        """Run one command and return what it took."""
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        own = {f"XDG_{kind}_HOME": str(self.folder / f"{case}-{kind.lower()}") for kind in ("DATA", "STATE", "CACHE")}
        command = [sys.executable, "-c", MAIN, *words]
        began = time.monotonic()
        with open(self.folder / "messages.txt", "a+", encoding="utf-8") as messages:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **threads, **own},
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
            )
            _, status, usage = os.wait4(process.pid, 0)
            if status:
                messages.seek(0)
                raise SystemExit(f"wayveil {' '.join(words)} failed:\n{messages.read()[-2000:]}")
        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10  # ru_maxrss: bytes on macOS, kilobytes elsewhere
        wall_s, cpu_s = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        row = Row(case, words[0], size, round(cpu_s, 1), round(wall_s, 1), round(usage.ru_maxrss / unit))
        print(f"{case:10s} {words[0]:10s} {size:>20s} {row.cpu_s:9.1f} CPU s {row.peak_mb:7.0f} MB", flush=True)
        return row


def simulate(load: Load) -> list[Row]:
    """The trips of every case."""
    n = load.scaled(TRIPS)
    files = ["-o", "city.parquet", "--roads", "roads.parquet", "--scope-out", "city.toml"]
    return [load.wayveil("simulate", f"{n:,} trips", "simulate", "-n", str(n), *files)]


def trajectory_level(load: Load) -> list[Row]:
    return _measure_and_synthesize(load, "trajectory", "--unit", "trajectory")


def user_level(load: Load) -> list[Row]:
    return _measure_and_synthesize(load, "user", "--unit", "user", "--max-per-user", "10")


def user_level_with_delta(load: Load) -> list[Row]:
    """Users of twenty trips each, which lie anywhere in the file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    users = max(1, load.scaled(TRIPS) // TRIPS_PER_USER)
    source = pq.ParquetFile(load.folder / "city.parquet")
    with pq.ParquetWriter(load.folder / "drivers.parquet", source.schema_arrow) as writer:
        for group in range(source.num_row_groups):
            table = source.read_row_group(group)
            user = table["traj_id"].to_numpy().astype(np.int64) * 7919 % users
            column = table.schema.get_field_index("user_id")
            writer.write_table(table.set_column(column, "user_id", pa.array(user)))
    unit = ("--unit", "user", "--max-per-user", "50", "--delta", "1e-6")
    return [load.measure("delta", "city.toml", *unit, trips="drivers.parquet")]


def _measure_and_synthesize(load: Load, case: str, *unit: str) -> list[Row]:
    n = load.scaled(TRIPS)
    return [load.measure(case, "city.toml", *unit), load.synthesize(case, f"{n:,} trips", n)]


def many_rules(load: Load) -> list[Row]:
    """Closed squares on a lattice over the city, each for two hours of the day; streets between them stay open."""
    from wayveil.io.scope_files import read_scope

    scope, count = read_scope(load.folder / "city.toml"), load.scaled(RULES)
    across = int(count**0.5) + 1
    features = []
    for k in range(count):
        row, column = divmod(k, across)
        west = scope.west + (column + 0.3) * (scope.east - scope.west) / across
        south = scope.south + (row + 0.3) * (scope.north - scope.south) / across
        east = west + 0.4 * (scope.east - scope.west) / across
        north = south + 0.4 * (scope.north - scope.south) / across
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        hours = {"from": f"{k % 22:02d}:00", "to": f"{k % 22 + 2:02d}:00"}
        features.append({
            "type": "Feature",
            "properties": {"rule": "closed", "name": f"Area {k}", **hours},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        })  # fmt: skip
    document = {"type": "FeatureCollection", "features": features}
    (load.folder / "rules.geojson").write_text(json.dumps(document), encoding="utf-8")
    return _synthesize_few(load, "rules", "city.toml", f"{count:,} rules", "--rules", "rules.geojson")


def large_map(load: Load) -> list[Row]:
    """A lattice of streets over a region around the city."""
    from wayveil.io.scope_files import read_scope

    city = read_scope(load.folder / "city.toml")
    wider = REGION_KM * 1000 / city.width_m, REGION_KM * 1000 / city.height_m
    half = wider[0] * (city.east - city.west) / 2, wider[1] * (city.north - city.south) / 2
    centre = (city.west + city.east) / 2, (city.south + city.north) / 2
    box = {"west": centre[0] - half[0], "east": centre[0] + half[0]}
    box |= {"south": centre[1] - half[1], "north": centre[1] + half[1]}
    lines = [line for line in (load.folder / "city.toml").read_text(encoding="utf-8").splitlines() if line.strip()]
    kept = [line for line in lines if line.split("=")[0].strip() not in box]
    region = "\n".join([*(f"{name} = {value:.6f}" for name, value in box.items()), *kept]) + "\n"  # before any table
    (load.folder / "region.toml").write_text(region, encoding="utf-8")
    edges = _write_lattice(load.folder / "lattice.parquet", box, load.scaled(EDGES))
    return _synthesize_few(load, "map", "region.toml", f"{edges:,} edges", "--roads", "lattice.parquet")


def _synthesize_few(load: Load, case: str, scope: str, size: str, *options: str) -> list[Row]:
    """Measure all trips and draw few of them under a large input."""
    n = max(1_000, load.scaled(DRAWN))
    return [load.measure(case, scope, "--unit", "trajectory"), load.synthesize(case, size, n, *options)]


def _write_lattice(path: Path, box: dict[str, float], edges: int) -> int:
    """A square lattice with about this many edges, each a road of its own; returns their number."""
    import numpy as np

    from wayveil.core.roads import ROAD_CLASSES, RoadMap
    from wayveil.io.roads import write_roads

    across = round((edges / 2) ** 0.5) + 1
    inset = 0.001  # A map whose outer streets lie on the border of the box would lose them to rounding.
    lon, lat = np.meshgrid(
        np.linspace(box["west"] + inset, box["east"] - inset, across),
        np.linspace(box["south"] + inset, box["north"] - inset, across),
    )
    node = np.arange(across * across).reshape(across, across)
    first = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    last = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    vertex = np.column_stack([first, last]).ravel()
    count = len(first)
    residential = np.full(count, ROAD_CLASSES.index("residential"), np.int8)
    roads = RoadMap(
        np.arange(count + 1, dtype=np.int64) * 2,
        lon.ravel()[vertex],
        lat.ravel()[vertex],
        residential,
        np.zeros(count, np.int8),
        np.full(count, np.nan),
    )
    write_roads(roads, path)
    return count


CASES: dict[str, Callable[[Load], list[Row]]] = {
    "trajectory": trajectory_level,
    "user": user_level,
    "delta": user_level_with_delta,
    "rules": many_rules,
    "map": large_map,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="factor for every size (default 1)")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="only these cases")
    parser.add_argument("--folder", type=Path, help="where the data goes meanwhile (full size: 5 GB)")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wayveil-load-", dir=options.folder) as folder:
        load = Load(Path(folder), options.scale)
        rows = simulate(load)
        for name in options.only:
            rows += CASES[name](load)
    print("\n| case | command | size | CPU s | wall s | peak MB |\n|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row.case} | `{row.command}` | {row.size} | {row.cpu_s} | {row.wall_s} | {row.peak_mb:.0f} |")
    if options.json:
        machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        document = {"scale": options.scale, **machine, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
