"""Positions and times of points on routes, such that the points have the estimated density.

Points are placed at equal steps of ∫ S ds along a route, where S is the slowness (1 / speed) of a cell. Three updates
of S by the ratio of target to realised density fit it.

Privacy: free (post-processing).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, place, steps
from wayveil.core.pyramid import Field
from wayveil.synthesis.place.capping import capped_rows
from wayveil.synthesis.place.settings import POINTS


@dataclass(frozen=True, eq=False)
class Course:
    """Routes with the length and the cell of the step that ends at each vertex, by which points are placed."""

    lines: Polylines
    step_m: NDArray[np.float64]
    cell: NDArray[np.int64]
    """Base cell of the middle of the step."""
    turn_m: NDArray[np.float64] | None = None
    """What the turns at both ends of the step cost, in metres at the usual pace (`with_speeds`)."""

    @property
    def effort_m(self) -> NDArray[np.float64]:
        """Length of each step, with what its turns cost."""
        return self.step_m if self.turn_m is None else self.step_m + self.turn_m


def course_of(lines: Polylines, grid: Grid) -> Course:
    """The steps of routes on a grid."""
    middle_x, middle_y = lines.x_m.copy(), lines.y_m.copy()
    for middle in (middle_x, middle_y):
        middle[1:] += middle[:-1].copy()
        middle[1:] *= 0.5
    return Course(lines, steps(lines), grid.index(middle_x, middle_y))


def take_course(course: Course, index: NDArray[np.int64]) -> Course:
    """The routes at the given positions, repeats allowed."""
    offsets, vertex = ragged.take(course.lines.offsets, index)
    lines = Polylines(offsets, course.lines.x_m[vertex], course.lines.y_m[vertex])
    turn_m = None if course.turn_m is None else course.turn_m[vertex]
    return Course(lines, course.step_m[vertex], course.cell[vertex], turn_m)


def with_speeds(course: Course, speed_mps: NDArray[np.float64]) -> Course:
    """The routes with what turns cost trips of the given mean speeds.

    Slowing down from v to v·(1 − sin(θ/2)) before a turn of θ and speeding up after it, at acceleration a, costs as
    much time as (1 − cos θ)/2 · v²/a metres at speed v: nothing straight ahead, v²/a for a U-turn, and little for
    walkers.
    """
    offsets, step_m = course.lines.offsets, course.step_m
    dx, dy = np.diff(course.lines.x_m), np.diff(course.lines.y_m)
    sharp = np.zeros(len(step_m))
    long = (step_m[1:-1] > 0) & (step_m[2:] > 0)
    cosine = np.divide(
        dx[1:] * dx[:-1] + dy[1:] * dy[:-1], step_m[1:-1] * step_m[2:], where=long, out=np.ones(len(long))
    )
    sharp[1:-1] = np.clip((1 - cosine) / 2, 0.0, 1.0)
    sharp[offsets[:-1]] = sharp[offsets[1:] - 1] = 0.0
    each_m = np.minimum(speed_mps**2 / POINTS.comfortable_mps2, POINTS.most_turn_m) / 2
    turn_m = sharp
    turn_m[1:] += sharp[:-1].copy()
    turn_m[offsets[:-1]] = 0.0
    return replace(course, turn_m=turn_m * np.repeat(each_m, np.diff(offsets)))


def with_ends(course: Course, ends: NDArray[np.float64], grid: Grid) -> Course:
    """The routes with new first and last vertices; the rows of `ends` are start x, start y, end x, end y."""
    lines, step_m, cell = course.lines, course.step_m.copy(), course.cell.copy()
    x, y = lines.x_m.copy(), lines.y_m.copy()
    first, last = lines.offsets[:-1], lines.offsets[1:] - 1
    x[first], y[first], x[last], y[last] = ends
    for vertex in (first + 1, last):
        step_m[vertex] = np.hypot(x[vertex] - x[vertex - 1], y[vertex] - y[vertex - 1])
        cell[vertex] = grid.index((x[vertex] + x[vertex - 1]) / 2, (y[vertex] + y[vertex - 1]) / 2)
    return replace(course, lines=Polylines(lines.offsets, x, y), step_m=step_m, cell=cell)


@dataclass(frozen=True, eq=False)
class Fixes:
    """Fixes (recorded points) of each route: the shares of its moving time and of its duration passed at each fix."""

    offsets: NDArray[np.int64]
    moving_share: NDArray[np.float64]
    time_share: NDArray[np.float64]


def draw_fixes(
    points: NDArray[np.int64],
    interval: NDArray[np.float64],
    ratio: NDArray[np.float64],
    ratio_edges: NDArray[np.float64],
    random: np.random.Generator,
    least: NDArray[np.float64] | None = None,
) -> Fixes:
    """Draw the fixes of each route: gaps are multiples of its sampling interval.

    Gaps drawn from the bin that contains the interval equal it, and none is shorter than `least`. Time that is left
    over is added to one gap without movement, as when a device loses its signal indoors. If the gaps take too much
    time, the longest are shortened down to the interval; then the end of the trip cuts the last gap, or all are
    shortened alike.
    `interval` and `least` are relative to the mean gap.
    """
    offsets = ragged.offsets_of(points)
    first, gaps = offsets[:-1], np.maximum(points - 1, 1)
    cumulative = np.r_[0.0, np.cumsum(ratio)]
    quantiles = np.interp(
        (np.arange(POINTS.gap_quantiles) + 0.5) / POINTS.gap_quantiles, cumulative / cumulative[-1], ratio_edges
    )
    after = int(np.searchsorted(ratio_edges, 1.0))
    at_interval = (quantiles >= ratio_edges[after - 1]) & (quantiles < ratio_edges[after])
    quantiles = np.where(at_interval, 1.0, quantiles + 1e-3)
    gap = quantiles[random.integers(POINTS.gap_quantiles, size=offsets[-1], dtype=np.uint16)]
    gap *= np.repeat(interval / _medians(offsets, gap), points)
    if least is not None:
        np.maximum(gap, np.repeat(np.minimum(least, interval), points), out=gap)
    gap[first] = 0.0
    gap = _shortened(offsets, gap, interval)
    spare = gaps - ragged.sums(gap, offsets)
    last = offsets[1:] - 1
    cut = (spare < 0) & (gap[last] + spare > POINTS.least_last * interval)
    gap[last[cut]] += spare[cut]
    pause = first + 1 + (random.random(len(points)) * gaps).astype(np.int64)
    some = (spare > 0) & (points > 1)
    moving_share = running_shares(offsets, gap)
    gap[pause[some]] += spare[some]
    return Fixes(offsets, moving_share, running_shares(offsets, gap))


def _medians(offsets: NDArray[np.int64], gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lower median of the gaps of each short row, and 1 for long rows, whose median hardly varies.

    A ratio is relative to the median gap of its own trajectory, so the ratios of a trajectory have the median 1.
    """
    gaps = np.diff(offsets) - 1
    result = np.ones(len(gaps))
    some = np.flatnonzero((gaps > 0) & (gaps <= POINTS.few_gaps))
    own, at = ragged.take(offsets, some)
    value = gap[at]
    value[own[:-1]] = -1.0  # first points have no gap and are sorted first
    value = value[np.lexsort((value, ragged.owners(np.diff(own))))]
    result[some] = value[own[:-1] + 1 + (gaps[some] - 1) // 2]
    return result


def _shortened(
    offsets: NDArray[np.int64], gap: NDArray[np.float64], interval: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Gaps with the longest clipped until their sum fits the duration, but to no less than the sampling interval."""
    points = np.diff(offsets)
    base = np.minimum(gap, np.repeat(interval, points))
    left = np.maximum(points - 1 - ragged.sums(base, offsets), 0.0)
    return base + capped_rows(offsets, gap - base, left)


def running_shares(offsets: NDArray[np.int64], gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative sum of the gaps divided by their sum, from 0 to 1 in each row."""
    running, points = np.cumsum(gap), np.diff(offsets)
    begin = running[offsets[:-1]]
    whole = running[offsets[1:] - 1] - begin
    running -= np.repeat(begin, points)
    running /= np.repeat(np.maximum(whole, 1e-12), points)
    return running


def slowness_weight(
    course: Course, slowness: Field, most_ratio: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """∫ S ds over the step that ends at each vertex: S of the step's middle, at least a quarter of the route's mean.

    S is the same for all routes through a cell. If many routes cross a cell with a low target density, S is low, and
    every route would jump over the cell. So no route passes a cell at more than about four times its own mean speed, or
    at more than `most_ratio` times, if given.
    """
    offsets = course.lines.offsets
    weight = slowness.ravel()[course.cell]
    taken = ragged.sums(weight * course.step_m, offsets)
    mean = taken / np.maximum(ragged.sums(course.step_m, offsets), 1e-9)
    np.maximum(weight, np.repeat(mean / POINTS.most_speed_ratio, np.diff(offsets)), out=weight)
    if most_ratio is not None:
        weight = _with_speed_cap(course, weight, most_ratio)
    weight *= course.effort_m
    return weight


def _with_speed_cap(
    course: Course, weight: NDArray[np.float64], most_ratio: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The slowness at each vertex, raised so that no cell is passed at more than `most_ratio` times the mean speed.

    More time in one cell leaves less for the others, so a few rounds are needed until hardly any step is too fast.
    """
    offsets, counts = course.lines.offsets, np.diff(course.lines.offsets)
    length = np.maximum(ragged.sums(course.step_m, offsets), 1e-9)
    for _ in range(POINTS.speed_rounds):
        mean = ragged.sums(weight * course.effort_m, offsets) / length
        np.maximum(weight, np.repeat(mean / most_ratio, counts), out=weight)
    return weight


def histogram(lines: Polylines, grid: Grid, weight: NDArray[np.float64] | NDArray[np.int64] | None = None) -> Field:
    """Σ over trajectories of the trajectory's weight times the share of its points in each cell."""
    count = np.diff(lines.offsets)
    each = 1.0 / count if weight is None else weight / count
    cells = np.zeros(grid.cells)
    for first, last in ragged.runs(lines.offsets, POINTS.histogram_points):
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
    rounds: int = POINTS.slowness_rounds,
    start: Field | None = None,
) -> Field:
    """S such that points at equal steps of ∫ S ds have the target density: S ← S·(target / realised)^power.

    `points` is the final number of points of each route; `fraction` may have fewer for a long route.
    """
    slowness = np.ones_like(target) if start is None else start
    for _ in range(rounds):
        placed = place(course.lines, slowness_weight(course, slowness), offsets, fraction)
        realised = histogram(placed, grid, points)
        realised *= target.sum() / realised.sum()
        slowness = adjusted(slowness, target, realised)
    return slowness


def adjusted(slowness: Field, target: Field, realised: Field) -> Field:
    """S·(target / realised)^power, within limits; `realised` has the target's sum."""
    softening = POINTS.soft_mean * target.mean() + POINTS.soft_trajectories * target.sum() / POINTS.soft_among + 1e-300
    ratio = ((target + softening) / (realised + softening)) ** POINTS.slowness_power
    return np.asarray(np.clip(slowness * ratio, *POINTS.slowness_bounds))
