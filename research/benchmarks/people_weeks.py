"""Pictures of the weeks of ten real and ten synthetic people: a map and a time line for each.

    python research/benchmarks/people_weeks.py REAL SYNTHETIC --scope SCOPE -o weeks.png

Both files need users. Without files, the simulated city of `people.py` is measured (ε = 1, δ = 1e-6, c = 50) and drawn.
A picture of real people shows their homes: it is not for publication.
"""

import argparse
import sys
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import wayveil
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.evaluation.people.measures import people_trips
from wayveil.privacy.noise import SeededNoise

SHOWN, FEWEST = 10, 4


def draw(sides: dict[str, Trajectories], scope: Scope, seed: int, picture: Path) -> None:
    """One row of maps and one of time lines per side; people with at least `FEWEST` trips, drawn at random."""
    figure, axes = plt.subplots(4, SHOWN, figsize=(2.2 * SHOWN, 9), constrained_layout=True)
    for row, (name, side) in enumerate(sides.items()):
        trips = people_trips(side, scope)
        able = np.flatnonzero(trips.trips >= FEWEST)
        some = np.random.default_rng(seed).choice(able, min(SHOWN, len(able)), replace=False)
        for column, who in enumerate(some.tolist()):
            own = np.flatnonzero(trips.person == who)
            place, line = axes[2 * row, column], axes[2 * row + 1, column]
            ends = np.column_stack([trips.x0[own], trips.x1[own], trips.y0[own], trips.y1[own]]) / 1000
            place.plot(ends[:, :2].T, ends[:, 2:].T, "o-", lw=0.8, ms=3, alpha=0.6)
            place.set(xlim=(0, scope.width_m / 1000), ylim=(0, scope.height_m / 1000), aspect="equal")
            place.set_title(f"{name}: {len(own)} trips", fontsize=8)
            day = trips.day[own] - trips.day[own].min()
            hours = trips.local0_s[own] % 86_400 / 3600
            lasts = np.maximum((trips.t1[own] - trips.t0[own]) / 3600, 0.1)
            line.barh(day, lasts, left=hours, height=0.7)
            line.set(xlim=(0, 24), xticks=(0, 6, 12, 18, 24), ylim=(max(day.max(), 7) + 0.5, -0.5))
            line.set_xlabel("hour", fontsize=7)
            line.set_ylabel("day" if column == 0 else "", fontsize=7)
            for axis in (place, line):
                axis.tick_params(labelsize=6)
    figure.savefig(picture, dpi=70)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--scope")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path("weeks.png"))
    given = parser.parse_args()
    if given.files:
        real, made = (wayveil.read(name) for name in given.files)
        scope = wayveil.read_scope(given.scope)
    else:
        sys.path.insert(0, str(Path(__file__).parent))
        from people import simulated_people

        warnings.simplefilter("ignore")
        real, scope = simulated_people()
        promise = {"epsilon": 1, "delta": "1e-6", "unit": "user", "max_per_user": 50}
        release = wayveil.measure(real, scope, noise=SeededNoise(given.seed), **promise)
        made = wayveil.synthesize(release, n=5_000, seed=given.seed).trajectories
    draw({"real": real, "synthetic": made}, scope, given.seed, given.output)


if __name__ == "__main__":
    main()
