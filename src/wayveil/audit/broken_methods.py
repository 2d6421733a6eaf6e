"""Methods with deliberate mistakes, for the audit to find.

A small sound method, and the same method with one mistake: its box or its count is taken from the data. It stands for
all methods that sample from a noisy grid, and is so simple that only the mistake can cause a conviction. There is also
a reader that compares ids by subtraction, which can overflow.
"""

from fractions import Fraction
from typing import Any, Literal

import numpy as np

from wayveil.core.grid import Grid
from wayveil.core.prepare import prepare
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.io.options import ReadOptions
from wayveil.io.readers.dispatch import origin_of, read_points
from wayveil.io.readers.points import usable
from wayveil.io.source import MemorySource, Source
from wayveil.privacy.noise import NoiseSource
from wayveil.questions.count import Count
from wayveil.questions.occupancy import Occupancy
from wayveil.questions.question import batch_sums

Mistake = Literal["box from data", "count from data"]
ACROSS = 8
"""Cells of the sampler's grid along the longer side of the box."""


def box_of(data: Trajectories, scope: Scope) -> Scope:
    """The scope with the bounding box of the data: the mistake that several published methods make.

    Privacy: not private; the outermost points determine it.
    """
    bounds = {"south": data.lat.min(), "north": data.lat.max(), "west": data.lon.min(), "east": data.lon.max()}
    return scope.model_copy(update={side: float(value) for side, value in bounds.items()})


def grid_sampler(
    data: Trajectories,
    scope: Scope,
    epsilon: Fraction,
    noise: NoiseSource,
    rng: np.random.Generator,
    mistake: Mistake | None = None,
) -> Trajectories:
    """Noisy count (ε/10) and noisy occupancy of an 8 × 8 grid (9ε/10); then two-point trajectories drawn from it.

    Privacy: spends ε if `noise` is private and no mistake is chosen; otherwise not private.
    """
    frame = box_of(data, scope) if mistake == "box from data" else scope
    cell_m = max(frame.width_m, frame.height_m) / ACROSS
    across = int(np.ceil(frame.width_m / cell_m)), int(np.ceil(frame.height_m / cell_m))
    grid = Grid(cell_m, *across, frame.width_m, frame.height_m)
    occupancy = Occupancy(grid, 1)
    total, cells = batch_sums([Count(), occupancy], prepare(data, frame))
    noisy_count = noise.laplace(total, 1, epsilon / 10).values[0]
    noisy_cells = noise.laplace(cells, occupancy.resolution, epsilon * Fraction(9, 10)).values
    size = len(data) if mistake == "count from data" else max(1, int(noisy_count))
    weight = np.maximum(noisy_cells, 0) + 1e-9
    cell = rng.choice(grid.cells, 2 * size, p=weight / weight.sum())
    x_m = np.minimum((cell % grid.columns + rng.random(2 * size)) * cell_m, frame.width_m)
    y_m = np.minimum((cell // grid.columns + rng.random(2 * size)) * cell_m, frame.height_m)
    lon, lat = frame.to_degrees(x_m, y_m)
    return Trajectories(2 * np.arange(size + 1), lon, lat, np.tile([0.0, 600.0], size))


STATISTICS = ("number of trajectories", "westernmost point", "easternmost point", "southernmost point",
              "northernmost point", "share of points near the canary")  # fmt: skip


def statistics(synthetic: Trajectories, canary: Trajectories, scope: Scope, near_m: float) -> list[float]:
    """Statistics of a synthetic file: its size, its box, and the share of its points near the canary."""
    x_m, y_m = scope.to_metres(synthetic.lon, synthetic.lat)
    (x0, *_), (y0, *_) = scope.to_metres(canary.lon, canary.lat)
    near = np.hypot(x_m - x0, y_m - y0) <= near_m
    return [len(synthetic), x_m.min(), x_m.max(), y_m.min(), y_m.max(), near.mean()]


def subtracting_reader(data: Any, unit: Literal["trajectory", "user"]) -> Source:
    """A reader like `measured_source`, except that it subtracts ids to find out whether rows need sorting.

    The difference of two 64-bit ids can overflow; then rows are not sorted, and every run of rows becomes a trajectory.

    Privacy: not private; one trajectory may be counted many times.
    """
    options = ReadOptions(measured_unit=unit)
    points = usable(read_points(data, options), options, origin_of(data))
    code = points.label.code
    step, earlier = np.diff(code), np.diff(points.t_utc) < 0
    if (step < 0).any() or (earlier & (step == 0)).any():
        points = points.take(np.lexsort((points.t_utc, code)))
        code = points.label.code
    starts = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])[: len(code)]
    return MemorySource(Trajectories(np.r_[starts, len(code)], points.lon, points.lat, points.t_utc))
