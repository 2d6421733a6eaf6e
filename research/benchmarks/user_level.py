"""The headline metrics at user level with a δ, and which answers the error comes from.

usage: user_level.py SHARED [--datasets cabspotting] [--per-user 50] [--epsilon 1] [--delta 1e-6] [--noises 4]
                     [--clear "" | --clear "*" | --clear "occupancy/*,end_points/*"]

Users are those of the table of trips beside the data. No map; as many trips as the data has. Answers whose names match
`--clear` get a ten-thousandth of their noise, so the difference is what their noise costs; with '*', what is left comes
from clipping, the cap per user and synthesis. The noise is seeded by question and run, so that two versions of the code
get the same noise, up to its scale. Nothing made here is private.
"""

import argparse
import warnings
import zlib
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatch
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from plan_errors import SCOPES, with_users

import wayveil
from wayveil.evaluation import HEADLINE, headline
from wayveil.measurement import measure
from wayveil.privacy.mechanism import Mechanism, NoisySums
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit

CLEARER = 10**8
"""Factor on the precision of answers that are to be clear."""


class NoiseByName:
    """Replaces the drawing of noise by one that depends on the question, the run and the draw."""

    def __init__(self, clear: list[str]) -> None:
        self._clear, self._drawn, self.run = clear, Counter[tuple[str, int]](), 0

    def start(self, run: int) -> None:
        self.run = run
        self._drawn.clear()

    def __call__(
        self, mechanism: Mechanism, name: str, sums: NDArray[np.int64], bound: int, part: Fraction
    ) -> NoisySums:
        self._drawn[name, sums.size] += 1
        noise = SeededNoise(zlib.crc32(f"{self.run}/{name}/{self._drawn[name, sums.size]}".encode()))
        factor = CLEARER if any(fnmatch(name, pattern) for pattern in self._clear) else 1
        drawn = noise.gaussian(sums.ravel(), float(bound), factor * part * mechanism.cost.rho_of(name))
        return NoisySums("gaussian", drawn.scale, mechanism.cost.budget[name], drawn.values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shared", type=Path)
    parser.add_argument("--datasets", default="cabspotting")
    parser.add_argument("--per-user", type=int, default=50, help="0: trajectory level")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default="1e-6")
    parser.add_argument("--noises", type=int, default=4)
    parser.add_argument("--clear", default="")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    noise = NoiseByName([name for name in chosen.clear.split(",") if name])
    Mechanism.clipped_answer = lambda *arguments: noise(*arguments)  # type: ignore[method-assign]
    unit = Unit.user(chosen.per_user) if chosen.per_user else Unit.trajectory()
    print(f"| data | noise | {' | '.join(HEADLINE)} |\n|---|---|" + "---|" * len(HEADLINE))
    for name in chosen.datasets.split(","):
        data, scope = with_users(chosen.shared / "data", name), wayveil.read_scope(SCOPES[name])
        data = data if chosen.per_user else replace(data, user=None)
        rows = []
        for run in range(1, chosen.noises + 1):
            noise.start(run)
            promise = {"epsilon": chosen.epsilon, "delta": chosen.delta, "unit": unit, "accept_low_signal": True}
            release = measure(data, scope, noise=SeededNoise(run), **promise)
            scores = headline(data, wayveil.synthesize(release, n=len(data), seed=run).trajectories, scope)
            rows.append([scores[metric] for metric in HEADLINE])
            print(f"| {name} | {run} | " + " | ".join(f"{value:.4f}" for value in rows[-1]) + " |", flush=True)
        print(f"| {name} | mean | " + " | ".join(f"{value:.4f}" for value in np.mean(rows, axis=0)) + " |", flush=True)


if __name__ == "__main__":
    main()
