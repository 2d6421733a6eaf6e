"""The steps of trips, and trips at equal distances and at equal times."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.evaluation.paths import Paths, along
from wayveil.evaluation.trips import rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_SHORTEST_S = 1.0
"""Seconds: two points at the same second are treated as one second apart."""


@dataclass(frozen=True, eq=False)
class Steps:
    """From each point to the next one of the same trip; a trip of one point has none."""

    offsets: Ints
    point: Ints
    """Position of the point where each step begins."""
    dx_m: Floats
    dy_m: Floats
    length_m: Floats
    duration_s: Floats
    """At least one second, so that equal times give a finite speed."""

    @property
    def speed_mps(self) -> Floats:
        """Speed of each step."""
        return self.length_m / self.duration_s

    @property
    def owner(self) -> Ints:
        """Trip of each step."""
        return ragged.owners(np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Line:
    """Trips resampled at equal distances or times."""

    offsets: Ints
    x_m: Floats
    y_m: Floats


def steps_of(paths: Paths) -> Steps:
    """The steps of all trips."""
    point = np.flatnonzero(paths.owner[1:] == paths.owner[:-1])
    dx_m, dy_m = paths.x_m[point + 1] - paths.x_m[point], paths.y_m[point + 1] - paths.y_m[point]
    duration_s = np.maximum(paths.t_utc[point + 1] - paths.t_utc[point], _SHORTEST_S)
    return Steps(rows.shortened(paths.offsets, 1), point, dx_m, dy_m, np.hypot(dx_m, dy_m), duration_s)


def every_metres(paths: Paths, step_m: float) -> Line:
    """The points at 0, 1, 2, … times `step_m` along each trip."""
    counts = np.floor(paths.length_m / step_m).astype(np.int64) + 1
    owner, distance_m = ragged.owners(counts), ragged.ranks(counts).astype(float) * step_m
    x_m, y_m = (along(paths, owner, distance_m, column) for column in (paths.x_m, paths.y_m))
    return Line(ragged.offsets_of(counts), x_m, y_m)


def clocks(paths: Paths, steps: Steps) -> Floats:
    """(points,) seconds of all trips laid end to end, a second apart: one sorted axis for all."""
    waits = np.full(len(paths.x_m), _SHORTEST_S)
    waits[steps.point + 1] = steps.duration_s
    return np.cumsum(waits)


def every_seconds(paths: Paths, steps: Steps, step_s: float) -> Line:
    """The positions at 0, 1, 2, … times `step_s` after each departure."""
    clock = clocks(paths, steps)
    counts = np.floor((clock[paths.last] - clock[paths.first]) / step_s).astype(np.int64) + 1
    at = clock[paths.first][ragged.owners(counts)] + ragged.ranks(counts) * step_s
    return Line(ragged.offsets_of(counts), np.interp(at, clock, paths.x_m), np.interp(at, clock, paths.y_m))


def turns(heading: Floats, offsets: Ints) -> tuple[Floats, Ints]:
    """Signed turns in radians between successive headings of a row, and their offsets."""
    owner = ragged.owners(np.diff(offsets))
    same = owner[1:] == owner[:-1]
    turn = (np.diff(heading)[same] + np.pi) % (2 * np.pi) - np.pi
    return turn, rows.shortened(offsets, 1)


def segments(line: Line) -> tuple[Floats, Floats, Ints]:
    """dx, dy and offsets of the pieces of polylines."""
    owner = ragged.owners(np.diff(line.offsets))
    same = owner[1:] == owner[:-1]
    return np.diff(line.x_m)[same], np.diff(line.y_m)[same], rows.shortened(line.offsets, 1)
