"""Descent of finished coordinates towards the estimated occupancy: whether closing the realisation gap pays.

usage: coordinate_descent.py DATA [--datasets a,b] [--epsilons .1,1] [--seed 1]

Every inner point follows the slope of ln(wanted / realised), both smoothed over σ base cells, coarse to fine; moves are
averaged along 300 m of each track, so that tracks stay smooth, and fade out towards the ends, which stay. A row before
the descent and one after each σ:

    gap      JSD of the points' density from the estimated field: what is descended
    density  JSD of the points' density from the truth (100 m): what it is for
    length   JSD of the lengths from the truth
    km       mean length, as a ratio to the one before

The first line of each cell also says how far the estimated field itself is from the truth. The noise is seeded: nothing
made here is private.
"""

import argparse
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wayveil.core.divergence import jsd
from wayveil.core.grid import Grid, base_grid
from wayveil.core.polylines import Polylines, lengths
from wayveil.core.trajectories import Trajectories, concatenate
from wayveil.evaluation.datasets import find_datasets
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.synthesis.model import make_model
from wayveil.synthesis.recipe import draw_shards
from wayveil.synthesis.request import Request

Floats = NDArray[np.float64]
SCHEDULE = ((4.0, 6), (2.0, 8), (1.0, 12), (0.5, 12))
"""σ in base cells, and steps at it."""
ALONG_M = 300.0
FURTHEST_M = 40.0
PACE_M = 25.0
LENGTH_BINS = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--datasets", default="cabspotting,geolife,tdrive_partial")
    parser.add_argument("--epsilons", default="0.1,1")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for dataset in find_datasets(options.data, None, options.datasets.split(",")):
        scope, real, grid = dataset.scope, dataset.read(), base_grid(dataset.scope)
        truth = Tracks(real.offsets, *scope.to_metres(real.lon, real.lat), grid)
        for epsilon in options.epsilons.split(","):
            noise = SeededNoise(options.seed)
            release = measure(real, scope, epsilon=Fraction(epsilon), unit=Unit.trajectory(), noise=noise)
            wanted = Request(release, n=len(truth.offsets) - 1, seed=options.seed)
            model = make_model(wanted)
            made: Trajectories = concatenate([shard.trajectories for shard in draw_shards(model, wanted)])
            tracks = Tracks(made.offsets, *scope.to_metres(made.lon, made.lat), grid)
            wanted = model.estimates.occupancy
            print(f"{dataset.name} epsilon {epsilon}: estimate {jsd(wanted, truth.density()):.4f} from the truth")
            descend(tracks, wanted / wanted.sum() * len(tracks.x_m), truth)


@dataclass(eq=False)
class Tracks:
    """Points of all tracks in metres."""

    offsets: NDArray[np.int64]
    x_m: Floats
    y_m: Floats
    grid: Grid

    def density(self) -> Floats:
        cells = np.bincount(self.grid.index(self.x_m, self.y_m), minlength=self.grid.cells)
        return cells.reshape(self.grid.rows, self.grid.columns).astype(float)

    def lengths_m(self) -> Floats:
        return lengths(Polylines(self.offsets, self.x_m, self.y_m))


def descend(tracks: Tracks, wanted: Floats, truth: Tracks) -> None:
    """All steps of the schedule, a line after each σ."""
    from scipy.ndimage import gaussian_filter, map_coordinates

    grid, soft = tracks.grid, 0.05 * wanted.mean()
    before, began = tracks.lengths_m(), time.process_time()
    points = np.diff(tracks.offsets)
    owner = np.repeat(np.arange(len(points)), points)
    window = np.clip(ALONG_M * np.maximum(points - 1, 1) / np.maximum(before, 1.0), 1, 60).astype(np.int64)[owner]
    position = np.arange(len(owner)) - tracks.offsets[owner]
    fading = np.minimum(1.0, np.minimum(position, points[owner] - 1 - position) / window)
    reach = (
        np.maximum(position - window, 0) + tracks.offsets[owner],
        np.minimum(position + window + 1, points[owner]) + tracks.offsets[owner],
    )
    _say("before", tracks, wanted, truth, before, began)
    for sigma, steps in SCHEDULE:
        for _ in range(steps):
            ratio = (gaussian_filter(wanted, sigma) + soft) / (gaussian_filter(tracks.density(), sigma) + soft)
            slope_y, slope_x = np.gradient(gaussian_filter(np.log(ratio), 0.5))
            at = (tracks.y_m / grid.cell_m - 0.5, tracks.x_m / grid.cell_m - 0.5)
            for name, slope, most in (("x_m", slope_x, grid.width_m), ("y_m", slope_y, grid.height_m)):
                running = np.r_[0.0, np.cumsum(map_coordinates(slope, at, order=1, mode="nearest"))]
                along = (running[reach[1]] - running[reach[0]]) / (reach[1] - reach[0])
                move = fading * np.clip(PACE_M * np.sqrt(sigma) * along, -FURTHEST_M, FURTHEST_M)
                setattr(tracks, name, np.clip(getattr(tracks, name) + move, 0.0, most))
        _say(f"σ = {sigma:g}", tracks, wanted, truth, before, began)


def _say(when: str, tracks: Tracks, wanted: Floats, truth: Tracks, before: Floats, began: float) -> None:
    density, now, real = tracks.density(), tracks.lengths_m(), truth.lengths_m()
    edges = np.linspace(0, real.max(), LENGTH_BINS + 1)
    found, right = (np.histogram(np.clip(each, 0, edges[-1]), edges)[0].astype(float) for each in (now, real))
    print(
        f"{when:>10}  gap {jsd(density, wanted):.4f}  density {jsd(density, truth.density()):.4f}  "
        f"length {jsd(found, right):.4f}  km x{now.mean() / before.mean():.3f}  {time.process_time() - began:5.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
