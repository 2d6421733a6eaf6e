"""What an area that is closed at some hours costs where the data obeys: the metrics with the rule and without.

usage: closed_hours.py [DATA --dataset cabspotting] [--n 10000] [--epsilon 1] [--size 1200]

The busiest square of the data (of SIZE metres) is closed from 7 to 19, from 7 to 18, and from Monday to Friday; trips
that break that are left out of the data first. Without DATA: the embedded city. The noise is seeded: nothing made here
is private.
"""

import argparse
from pathlib import Path

import numpy as np
import shapely

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, select
from wayveil.evaluation import HEADLINE, evaluate
from wayveil.evaluation.datasets import find_datasets
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.rules import Closed, area_in_metres, count, hours, motion_of, violating_trajectories
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.workflow.synthesize import synthesize

METRICS = (*HEADLINE, "start_hour", "start_week")
CLOSED = {"7 to 19": hours("07:00", "19:00"), "7 to 18": hours("07:00", "18:00"), "Mon to Fri": hours(days="mon-fri")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--dataset", default="cabspotting")
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--size", type=float, default=1200.0)
    chosen = parser.parse_args()
    if chosen.data is None:
        city = simulate_city(3)
        scope, data = city.scope, simulate_trajectories(city, chosen.n, seed=3)
    else:
        (found,) = find_datasets(chosen.data, None, [chosen.dataset])
        scope, data = found.scope, found.read()
    print("| closed | rule | points inside | violations | " + " | ".join(METRICS) + " |")
    print("|---|---|---|---|" + "---|" * len(METRICS), flush=True)
    for name, when in CLOSED.items():
        compare(name, Closed(area_in_metres(busiest(data, scope, chosen.size)), when), scope, data, chosen.epsilon)


def compare(name: str, rule: Closed, scope: Scope, data: Trajectories, epsilon: str) -> None:
    data = select(data, ~violating_trajectories([rule], motion_of(data, scope)))
    release = measure(data, scope, epsilon=epsilon, unit="trajectory", noise=SeededNoise(1))
    print(f"| {name} | the data | {inside(rule, data, scope):.2f} % | 0 |" + " |" * len(METRICS), flush=True)
    for text, rules in (("no", ()), ("yes", (rule,))):
        made = synthesize(release, rules=rules, seed=1).trajectories
        values = evaluate(data, made, scope, metrics=METRICS).values
        broken = count([rule], motion_of(made, scope))["closed"]["points"]
        cells = " | ".join(f"{values[metric]:.4f}" for metric in METRICS)
        print(f"| {name} | {text} | {inside(rule, made, scope):.2f} % | {broken} | {cells} |", flush=True)


def busiest(data: Trajectories, scope: Scope, size_m: float) -> shapely.Polygon:
    x, y = scope.to_metres(data.lon, data.lat)
    within = (x > 0) & (x < scope.width_m) & (y > 0) & (y < scope.height_m)
    column, row = (np.floor(at[within] / size_m).astype(int) for at in (x, y))
    across = int(scope.width_m // size_m) + 1
    row, column = divmod(int(np.bincount(row * across + column).argmax()), across)
    return shapely.box(column * size_m, row * size_m, (column + 1) * size_m, (row + 1) * size_m)


def inside(rule: Closed, data: Trajectories, scope: Scope) -> float:
    return float(100 * rule.area.inside(*scope.to_metres(data.lon, data.lat)).mean())


if __name__ == "__main__":
    main()
