"""`wayveil synthesize` with rules on a GPU and on the same machine's CPU: seconds by stage, violations, metrics.

usage: gpu_synthesis.py [--n 20000] [--seed 0] [--windows 4096,32768] [--json FILE]

The embedded city with its own map and rules is simulated and measured once. Then the function behind the verb
`synthesize` runs in a process of its own for each device, with the same arguments; only JAX_PLATFORMS differs. What
uses jax there is the descent on the coordinates of trajectories that break a rule, in windows of 4,096 points; its
rounds are timed apart, the first one too, which compiles. To see from what size a GPU would pay, refinement alone is
run on trajectories that were drawn without rules, with larger windows.
Needs no GPU to run: without one there is only the line of the CPU.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


def synthesised(folder: Path, n: int, seed: int) -> dict:
    """One synthesis with rules: seconds by stage, steps of descent, device."""
    from wayveil.workflow.synthesize_file import synthesize_file

    begin = last = time.perf_counter()
    stages: dict[str, float] = {}

    def listen(stage: str, done: float) -> None:
        # A stage speaks when a piece of it is done; what passed since the last word belongs to it.
        nonlocal last
        now = time.perf_counter()
        stages[stage] = stages.get(stage, 0.0) + now - last
        last = now

    busy = time.process_time()
    name = os.environ.get("JAX_PLATFORMS", "default")
    with timed_rounds() as rounds:
        made = synthesize_file(
            folder / "city.release.json", folder / f"{name}.parquet", roads=folder / "roads.parquet",
            rules=folder / "rules.geojson", n=n, seed=seed, progress=listen,
        )  # fmt: skip
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    import jax

    return {
        "device": jax.devices()[0].device_kind, "seconds": seconds, "cpu_s": busy,
        "stages": {stage: round(spent, 2) for stage, spent in stages.items()}, **summary(rounds),
        "trajectories": made["trajectories"], "file": f"{name}.parquet",
    }  # fmt: skip


def judged(folder: Path, files: list[str]) -> list[dict]:
    """Violations and headline metrics of each file, and how far its points are from the first file's."""
    from wayveil.evaluation import HEADLINE, METRICS, project
    from wayveil.io.files import read
    from wayveil.io.roads import read_roads
    from wayveil.io.scope_files import read_scope
    from wayveil.rules import count, motion_of, read_rules, with_scope_bounds

    scope = read_scope("demo-city")
    rules = read_rules(folder / "rules.geojson", scope, read_roads(folder / "roads.parquet"))
    rules = with_scope_bounds(rules, scope)
    real = project(read(folder / "city.parquet"), scope)
    first = None
    rows = []
    for name in files:
        made = read(folder / name)
        paths = project(made, scope)
        violations = count(rules, motion_of(made, scope))
        row = {"file": name, "violating_points": sum(each["points"] for each in violations.values())}
        row |= {metric: round(float(METRICS[metric](real, paths)), 4) for metric in HEADLINE}
        if first is not None and len(paths.x_m) == len(first.x_m):
            apart_m = np.hypot(paths.x_m - first.x_m, paths.y_m - first.y_m)
            row |= {"points_elsewhere": int((apart_m > 0.05).sum()), "furthest_m": round(float(apart_m.max()), 2)}
        first = first or paths
        rows.append(row)
    return rows


def descents(folder: Path, windows: list[int]) -> list[dict]:
    """Seconds of the descent alone on trajectories that were drawn without rules, for each size of the windows."""
    from dataclasses import replace

    import jax

    from wayveil.io.files import read
    from wayveil.io.roads import read_roads
    from wayveil.io.scope_files import read_scope
    from wayveil.rules import read_rules
    from wayveil.synthesis.obey import descent
    from wayveil.synthesis.obey.refine import refine
    from wayveil.synthesis.place.track_columns import Tracks

    scope = read_scope("demo-city")
    rules = read_rules(folder / "rules.geojson", scope, read_roads(folder / "roads.parquet"))
    free = read(folder / "free.parquet")
    x_m, y_m = scope.to_metres(free.lon, free.lat)
    rows = []
    for window in windows:
        descent.DESCENT = replace(descent.DESCENT, windows=(window,))
        begin = time.perf_counter()
        with timed_rounds() as rounds:
            fine = refine(Tracks(free.offsets, x_m, y_m, free.t_utc), rules, scope, random=np.random.default_rng(0))
        rows.append({"device": jax.devices()[0].device_kind, "window": window, **summary(rounds),
                     "refine_s": round(time.perf_counter() - begin, 2), "moved": fine.moved,
                     "unresolved": len(fine.unresolved)})  # fmt: skip
    return rows


@contextmanager
def timed_rounds() -> Iterator[list[float]]:
    """Seconds of every round of the descent, transfers included."""
    from wayveil.synthesis.obey import descent

    inside, spent = descent._round, []

    def timed(*arguments):
        begin = time.perf_counter()
        result = inside(*arguments)
        spent.append(time.perf_counter() - begin)
        return result

    descent._round = timed
    try:
        yield spent
    finally:
        descent._round = inside


def summary(rounds: list[float]) -> dict:
    """The first round compiles, so it stands apart."""
    others = 1e3 * float(np.mean(rounds[1:])) if len(rounds) > 1 else 0.0
    return {"rounds": len(rounds), "first_round_s": round(rounds[0], 2) if rounds else 0.0,
            "other_rounds_ms": round(others, 2)}  # fmt: skip


def child(platform: str | None, folder: Path, what: str, *arguments: object) -> object:
    """A function of this file in a process of its own, on the device that jax chooses or on the CPU."""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    if platform is not None:
        environment["JAX_PLATFORMS"] = platform
    command = [sys.executable, __file__, "--child", json.dumps([what, str(folder), *arguments])]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def prepare(folder: Path, n: int, seed: int, free: bool) -> None:
    """The city, its release, and trajectories drawn without rules."""
    from wayveil.io.atomic import write_text
    from wayveil.io.roads import write_roads
    from wayveil.measurement import measure
    from wayveil.release import write_release
    from wayveil.simulate import rules_text, simulate_city, simulate_to_parquet
    from wayveil.workflow.synthesize_file import synthesize_file

    city = simulate_city(0)
    write_roads(city.roadmap, folder / "roads.parquet")
    write_text(folder / "rules.geojson", rules_text(city))
    simulate_to_parquet(folder / "city.parquet", n, seed, city=city)
    write_release(
        measure(folder / "city.parquet", "demo-city", epsilon=1, unit="trajectory"), folder / "city.release.json"
    )
    if free:
        synthesize_file(folder / "city.release.json", folder / "free.parquet", n=n, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--windows", default="4096,32768", help="points a window of refinement alone; empty: none")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        what, folder, *arguments = json.loads(options.child)
        functions = {"synthesised": synthesised, "judged": judged, "descents": descents}
        print(json.dumps(functions[what](Path(folder), *arguments)))
        return
    windows = [int(window) for window in options.windows.split(",") if window]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, options.n, options.seed, free=bool(windows))
        # The map's cache is filled by the first run; each device is run once before it is timed.
        child("cpu", folder, "synthesised", 500, options.seed)
        report: dict = {"n": options.n, "synthesize": [], "judged": [], "descent": []}
        for platform in ("cpu", None):
            report["synthesize"].append(child(platform, folder, "synthesised", options.n, options.seed))
            print(json.dumps(report["synthesize"][-1]), flush=True)
        report["judged"] = child("cpu", folder, "judged", [line["file"] for line in report["synthesize"]])
        for row in report["judged"]:
            print(json.dumps(row), flush=True)
        for platform in ("cpu", None) if windows else ():
            report["descent"] += child(platform, folder, "descents", windows)
    for row in report["descent"]:
        print(json.dumps(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
