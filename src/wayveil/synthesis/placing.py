"""Points on routes: where and when each is seen, so that the points fill the estimated density.

A point is drawn at equal steps of ∫ S ds along its route, S the slowness of the place: three updates of S by the ratio
of wanted to realised density bring the points to where time is spent.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.polylines import Polylines, place, runs, steps, vertices_of
from wayveil.pyramid import Field
from wayveil.synthesis.levelling import levelled

_MANY = 1 << 18
_QUANTILES = 1 << 12
_HASTE = 4.0
"""Times its mean speed that a trip may go."""
_UNHURRIED_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Course:
    """Routes with what points are placed by: length and place of the step that ends at each vertex."""

    lines: Polylines
    step_m: NDArray[np.float64]
    cell: NDArray[np.int64]
    """Of the middle of the step."""


def course_of(lines: Polylines, grid: Grid) -> Course:
    """The steps of routes on a grid."""
    middle_x, middle_y = lines.x_m.copy(), lines.y_m.copy()
    for middle in (middle_x, middle_y):
        middle[1:] += middle[:-1].copy()
        middle[1:] *= 0.5
    return Course(lines, steps(lines), grid.index(middle_x, middle_y))


def take_course(course: Course, index: NDArray[np.int64]) -> Course:
    """The routes at the given positions, repeats allowed."""
    offsets, vertex = vertices_of(course.lines.offsets, index)
    lines = Polylines(offsets, course.lines.x_m[vertex], course.lines.y_m[vertex])
    return Course(lines, course.step_m[vertex], course.cell[vertex])


def with_ends(course: Course, ends: NDArray[np.float64], grid: Grid) -> Course:
    """The routes with their first and last vertices at other places: rows start x, start y, end x, end y."""
    lines, step_m, cell = course.lines, course.step_m.copy(), course.cell.copy()
    x, y = lines.x_m.copy(), lines.y_m.copy()
    first, last = lines.offsets[:-1], lines.offsets[1:] - 1
    x[first], y[first], x[last], y[last] = ends
    for vertex in (first + 1, last):
        step_m[vertex] = np.hypot(x[vertex] - x[vertex - 1], y[vertex] - y[vertex - 1])
        cell[vertex] = grid.index((x[vertex] + x[vertex - 1]) / 2, (y[vertex] + y[vertex - 1]) / 2)
    return Course(Polylines(lines.offsets, x, y), step_m, cell)


@dataclass(frozen=True, eq=False)
class Fixes:
    """When each route is seen: at which share of its way and at which share of its time, point by point."""

    offsets: NDArray[np.int64]
    way: NDArray[np.float64]
    time: NDArray[np.float64]


def draw_fixes(
    points: NDArray[np.int64],
    beat: NDArray[np.float64],
    ratio: NDArray[np.float64],
    ratio_edges: NDArray[np.float64],
    random: np.random.Generator,
    least: NDArray[np.float64] | None = None,
) -> Fixes:
    """So many points a route, as irregular as estimated: gaps are told as shares of a trajectory's beat.

    Those in the bin of the beat are exactly that long, and none is drawn shorter than `least`. Where those drawn leave
    time over, one gap takes it all, and the route stands still in it as a device does that lost its signal indoors;
    where they take too much time, the longest are shortened down to the beat, and then all. `beat` and `least` are told
    in mean gaps.
    """
    offsets = np.r_[0, np.cumsum(points)]
    first, gaps = offsets[:-1], np.maximum(points - 1, 1)
    cumulative = np.r_[0.0, np.cumsum(ratio)]
    quantiles = np.interp((np.arange(_QUANTILES) + 0.5) / _QUANTILES, cumulative / cumulative[-1], ratio_edges)
    after = int(np.searchsorted(ratio_edges, 1.0))
    on_beat = (quantiles >= ratio_edges[after - 1]) & (quantiles < ratio_edges[after])
    quantiles = np.where(on_beat, 1.0, quantiles + 1e-3)
    gap = quantiles[random.integers(_QUANTILES, size=offsets[-1], dtype=np.uint16)]
    gap *= np.repeat(beat, points)
    if least is not None:
        np.maximum(gap, np.repeat(np.minimum(least, beat), points), out=gap)
    gap[first] = 0.0
    gap = _shortened(offsets, gap, beat)
    spare = gaps - np.add.reduceat(gap, first)
    pause = first + 1 + (random.random(len(points)) * gaps).astype(np.int64)
    some = (spare > 0) & (points > 1)
    way = _running_shares(offsets, gap)
    gap[pause[some]] += spare[some]
    return Fixes(offsets, way, _running_shares(offsets, gap))


def _shortened(offsets: NDArray[np.int64], gap: NDArray[np.float64], beat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaps that take no more time than there is, as long as none above the beat has to come below it."""
    points = np.diff(offsets)
    base = np.minimum(gap, np.repeat(beat, points))
    left = np.maximum(points - 1 - np.add.reduceat(base, offsets[:-1]), 0.0)
    return base + levelled(offsets, gap - base, left)


def _running_shares(offsets: NDArray[np.int64], gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ of the gaps so far / Σ of all, from 0 to 1 in each part."""
    running, points = np.cumsum(gap), np.diff(offsets)
    begin = running[offsets[:-1]]
    whole = running[offsets[1:] - 1] - begin
    running -= np.repeat(begin, points)
    running /= np.repeat(np.maximum(whole, 1e-12), points)
    return running


def slowness_weight(course: Course, slowness: Field, haste: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """∫ S ds over the step that ends at each vertex: S of the step's middle, at least a quarter of the route's mean.

    S is the same for all that pass, and a place that many routes cross for a few people's time would be jumped over by
    every one of them. Who is on the whole fast passes it faster than who is slow, but nobody at more than about four
    times the speed of the whole trip, and where `haste` is given at no more than so many times.
    """
    offsets = course.lines.offsets
    weight = slowness.ravel()[course.cell]
    taken = np.add.reduceat(weight * course.step_m, offsets[:-1])
    mean = taken / np.maximum(np.add.reduceat(course.step_m, offsets[:-1]), 1e-9)
    np.maximum(weight, np.repeat(mean / _HASTE, np.diff(offsets)), out=weight)
    if haste is not None:
        weight = _unhurried(course, weight, haste)
    weight *= course.step_m
    return weight


def _unhurried(course: Course, weight: NDArray[np.float64], haste: NDArray[np.float64]) -> NDArray[np.float64]:
    """The slowness at each vertex with no place passed at more than `haste` times the route's mean speed.

    Whoever passes one place more slowly is later everywhere else: a few rounds, until hardly anybody is too fast.
    """
    offsets, counts = course.lines.offsets, np.diff(course.lines.offsets)
    length = np.maximum(np.add.reduceat(course.step_m, offsets[:-1]), 1e-9)
    for _ in range(_UNHURRIED_ROUNDS):
        mean = np.add.reduceat(weight * course.step_m, offsets[:-1]) / length
        np.maximum(weight, np.repeat(mean / haste, counts), out=weight)
    return weight


def histogram(lines: Polylines, grid: Grid, weight: NDArray[np.float64] | NDArray[np.int64] | None = None) -> Field:
    """Σ over trajectories of the share of its points in each cell, times the trajectory's weight."""
    count = np.diff(lines.offsets)
    each = 1.0 / count if weight is None else weight / count
    cells = np.zeros(grid.cells)
    for first, last in runs(lines.offsets, _MANY):
        part = slice(lines.offsets[first], lines.offsets[last])
        share = np.repeat(each[first:last], count[first:last])
        cells += np.bincount(grid.index(lines.x_m[part], lines.y_m[part]), share, minlength=grid.cells)
    return cells.reshape(grid.rows, grid.columns)


def fit_slowness(
    course: Course,
    points: NDArray[np.int64],
    offsets: NDArray[np.int64],
    fraction: NDArray[np.float64],
    target: Field,
    grid: Grid,
    rounds: int = 3,
    power: float = 0.8,
    start: Field | None = None,
) -> Field:
    """S such that points at equal steps of ∫ S ds have the target density: S ← S·(target / realised)^power.

    `points` is how many each route will have in the end, where `fraction` tries fewer of a long one's.
    """
    slowness = np.ones_like(target) if start is None else start
    for _ in range(rounds):
        placed = place(course.lines, slowness_weight(course, slowness), offsets, fraction)
        realised = histogram(placed, grid, points)
        realised *= target.sum() / realised.sum()
        slowness = adjusted(slowness, target, realised, power)
    return slowness


def adjusted(slowness: Field, target: Field, realised: Field, power: float = 0.8) -> Field:
    """S·(target / realised)^power, within limits; `realised` has the target's sum."""
    softening = 0.02 * target.mean() + 0.05 * target.sum() / 20_000 + 1e-300
    return np.asarray(np.clip(slowness * ((target + softening) / (realised + softening)) ** power, 0.02, 50.0))
