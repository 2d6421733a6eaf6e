"""Devices that record every so many seconds, exactly: how many of the synthetic intervals are exact too.

usage: fixed_intervals.py [--n 5000] [--seconds 5,15,60] [--epsilons 0.3,1] [--noises 2]

Trips of the embedded city, seen again at equal intervals. The noise is seeded: nothing made here is private.
"""

import argparse

import numpy as np

from wayveil.core.trajectories import Trajectories
from wayveil.evaluation import evaluate
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.workflow.synthesize import synthesize

METRICS = ("interval", "duration", "top_speed", "density_100")


def every(seconds: float, data: Trajectories) -> Trajectories:
    """The same trips, seen at equal intervals from their first instant on."""
    columns, offsets = [], [0]
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        t = data.t_utc[first:last]
        seen = np.arange(np.rint(t[0]), t[-1], seconds)
        if len(seen) > 1:
            columns.append((np.interp(seen, t, data.lon[first:last]), np.interp(seen, t, data.lat[first:last]), seen))
            offsets.append(offsets[-1] + len(seen))
    return Trajectories(np.array(offsets), *(np.concatenate(column) for column in zip(*columns, strict=True)))


def gaps_of(data: Trajectories) -> np.ndarray:
    inner = np.ones(len(data.t_utc), bool)
    inner[data.offsets[:-1]] = False
    return np.diff(data.t_utc, prepend=0.0)[inner]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--seconds", default="5,15,60")
    parser.add_argument("--epsilons", default="0.3,1")
    parser.add_argument("--noises", type=int, default=2)
    chosen = parser.parse_args()
    city = simulate_city(3)
    trips = simulate_trajectories(city, chosen.n, seed=3)
    print(
        "| every | ε | exact | within a second | "
        + " | ".join(METRICS)
        + " |\n|---|---|---|---|"
        + "---|" * len(METRICS)
    )
    for seconds in map(float, chosen.seconds.split(",")):
        data = every(seconds, trips)
        for epsilon in chosen.epsilons.split(","):
            rows = []
            for seed in range(1, chosen.noises + 1):
                release = measure(data, city.scope, epsilon=epsilon, unit="trajectory", noise=SeededNoise(seed))
                made = synthesize(release, n=len(data), seed=seed).trajectories
                off = np.abs(gaps_of(made) - seconds)
                found = evaluate(data, made, city.scope, metrics=METRICS).values
                rows.append([100 * (off == 0).mean(), 100 * (off <= 1).mean(), *(found[name] for name in METRICS)])
            exact, nearly, *values = np.mean(rows, axis=0)
            told = " | ".join(f"{value:.4f}" for value in values)
            print(f"| {seconds:g} s | {epsilon} | {exact:.0f} % | {nearly:.0f} % | {told} |", flush=True)


if __name__ == "__main__":
    main()
