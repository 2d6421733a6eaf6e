"""The times of synthetic trips, and what protecting people instead of trips costs.

usage: times_and_users.py DATA [--datasets a,b] [--epsilons 0.5,1] [--noises 4] [--per-user C] [--kmh 8,18]

Without --per-user: every metric of time and pace at trajectory level, with its floor. With it, every C trajectories of
the file are taken as one user (nothing is dropped, the noise grows C-fold), and the five headline metrics are printed
beside the times. With --kmh only trips with such a mean speed are taken. No map. The noise is seeded: nothing made here
is private.
"""

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, select
from wayveil.evaluation import HEADLINE, evaluate
from wayveil.evaluation.datasets import find_datasets
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.rules.motion import ground_lengths, motion_of
from wayveil.workflow.synthesize import synthesize

TIMES = (
    "start_hour",
    "start_week",
    "start_place_hour",
    "duration",
    "relation_time",
    "speed",
    "interval",
    "longest_step",
    "top_speed",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--datasets", default="cabspotting,geolife,tdrive_partial")
    parser.add_argument("--epsilons", default="0.5,1")
    parser.add_argument("--noises", type=int, default=4)
    parser.add_argument("--per-user", type=int)
    parser.add_argument("--kmh")
    chosen = parser.parse_args()
    names = TIMES if chosen.per_user is None else (*HEADLINE, *TIMES)
    print("| | ε | " + " | ".join(names) + " |\n|---|---|" + "---|" * len(names), flush=True)
    for dataset in find_datasets(chosen.data, None, chosen.datasets.split(",")):
        real, scope, unit = dataset.read(), dataset.scope, Unit.trajectory()
        if chosen.kmh is not None:
            real = between(real, scope, *map(float, chosen.kmh.split(",")))
        if chosen.per_user is not None:
            real, unit = replace(real, user=np.arange(len(real)) // chosen.per_user), Unit.user(chosen.per_user)
        for epsilon in chosen.epsilons.split(","):
            rows = []
            for seed in range(1, chosen.noises + 1):
                release = measure(real, scope, epsilon=epsilon, unit=unit, noise=SeededNoise(seed))
                found = evaluate(real, synthesize(release, seed=seed).trajectories, scope, metrics=names)
                rows.append([found.values[name] for name in names])
            print(_row(dataset.name, epsilon, np.mean(rows, axis=0)), flush=True)
        print(_row(dataset.name, "floor", [found.floors[name] for name in names]), flush=True)


def between(data: Trajectories, scope: Scope, slowest_kmh: float, fastest_kmh: float) -> Trajectories:
    motion = motion_of(data, scope)
    length_m, gap_s = ground_lengths(motion, np)
    way, time = (np.add.reduceat(np.r_[0.0, part], data.offsets[:-1]) for part in (length_m, gap_s))
    kmh = 3.6 * way / np.maximum(time, 1.0)
    return select(data, (kmh >= slowest_kmh) & (kmh <= fastest_kmh))


def _row(name: str, epsilon: str, values: Iterable[float]) -> str:
    return f"| {name} | {epsilon} | " + " | ".join(f"{value:.4f}" for value in values) + " |"


if __name__ == "__main__":
    main()
