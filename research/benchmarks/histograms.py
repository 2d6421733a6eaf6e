"""How well durations, lengths and speeds are heard: divergence of the estimated shares from the true ones.

usage: histograms.py [DATA] [--datasets a,b] [--epsilons 0.1,0.3,1] [--noises 16]

The embedded city (300, 2,000 and 5,000 trips) and the datasets of DATA. Exact counts in the bins that a release of that
ε would have, with fresh noise each time: as shipped, and with curves that are smooth from bin to bin alone. The mean
over the noises and, after the slash, the worst of them. The noise is seeded: nothing made here is private.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.divergence import jsd
from wayveil.core.posterior import Noisy
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.evaluation.datasets import find_datasets
from wayveil.measurement import measure
from wayveil.privacy.noise import Noisy as NoisySums
from wayveil.privacy.noise import SeededNoise
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.synthesis.estimate.curves import Total, also_by_log
from wayveil.synthesis.estimate.durations import estimate_durations
from wayveil.synthesis.estimate.histogram import ShapePrior, estimate_among, estimate_histogram
from wayveil.synthesis.estimate.speeds import estimate_speeds, lognormal_shapes

VIEWS = ("length", "duration", "mean_speed", "top_speed")
SIZES = (300, 2000, 5000)
Floats = NDArray[np.float64]


class NoNoise(SeededNoise):
    """The scale of the noise, and the exact sums."""

    def laplace(self, sums: NDArray[np.int64], *how: Any) -> NoisySums:
        return replace(super().laplace(sums, *how), values=np.asarray(sums))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--datasets", default="cabspotting,geolife,tdrive_partial")
    parser.add_argument("--epsilons", default="0.1,0.3,1")
    parser.add_argument("--noises", type=int, default=16)
    chosen = parser.parse_args()
    print("| | ε | " + " | ".join(VIEWS) + " |\n|---|---|" + "---|" * len(VIEWS), flush=True)
    for name, scope, data in sources(chosen.data, chosen.datasets.split(",")):
        for epsilon in chosen.epsilons.split(","):
            release = measure(data, scope, epsilon=epsilon, unit="trajectory", noise=NoNoise(0))
            cells = [heard(release, view, chosen.noises) for view in VIEWS]
            print(f"| {name} | {epsilon} | " + " | ".join(cells) + " |", flush=True)


def sources(folder: Path | None, names: list[str]) -> Iterator[tuple[str, Scope, Trajectories]]:
    for size in SIZES:
        city = simulate_city(size)
        yield f"embedded city, {size:,}", city.scope, simulate_trajectories(city, size, seed=size)
    for dataset in find_datasets(folder, None, names) if folder else ():
        yield dataset.name, dataset.scope, dataset.read()


def heard(release: Any, view: str, noises: int) -> str:
    """Smooth from bin to bin → as shipped."""
    answer, count = release[view], release["count"]
    true, edges = np.asarray(answer.counts, float), np.asarray(answer.question.bins.edges, float)
    found = []
    for seed in range(noises):
        random = np.random.default_rng(seed)
        noisy = true + random.laplace(0, answer.noise, len(true))
        total = Total(max(float(count.counts[0]) + random.laplace(0, count.noise), 1.0), count.noise)
        found.append([jsd(true, estimate(view, noisy, answer.noise, edges, total)) for estimate in (_before, _shipped)])
    return " → ".join(f"{mean:.4f} / {worst:.4f}" for mean, worst in zip(np.mean(found, 0), np.max(found, 0)))


def _shipped(view: str, noisy: Floats, noise: float, edges: Floats, total: Total) -> Floats:
    if view == "duration":
        return estimate_durations(noisy, noise, edges, total)
    if "speed" in view:
        return estimate_speeds(Noisy(noisy, noise), edges, total, long_tails=view == "mean_speed")
    return estimate_histogram(Noisy(noisy, noise), (edges[1:] + edges[:-1]) / 2, total, also_by_log)


def _before(view: str, noisy: Floats, noise: float, edges: Floats, total: Total) -> Floats:
    middles = (edges[1:] + edges[:-1]) / 2
    if "speed" in view:
        return estimate_among(Noisy(noisy, noise), middles, total, ShapePrior(lognormal_shapes(edges)))
    return estimate_histogram(Noisy(noisy, noise), middles, total)


if __name__ == "__main__":
    main()
