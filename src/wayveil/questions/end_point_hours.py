"""Regions in which trajectories start and end by time of day, and how far they go towards or away from the centre.

This question's ε is a part of that of the end points. The numbers of regions and of parts of the day follow from the
signal.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid, base_grid
from wayveil.core.regions import cut_regions
from wayveil.core.scope import Scope
from wayveil.core.week import NUMBERS_OF_PARTS, part_of_hour
from wayveil.questions import priors
from wayveil.questions.end_points import EndPoints, hours_part
from wayveil.questions.flow import MOST_REGIONS, Ends, Flow, end_point_mass, read_cuts
from wayveil.questions.question import Context, Features, Frame

_STEPS = 1 << 12
"""Integer steps of a distance from the centre."""
_LEAST_LEAVES = 64
"""Least number of leaves of the tree of cuts: the estimator describes places in more detail than the answer has."""
_FAR_SHARE = 0.95
"""The distance within which this share of the end points lies is scaled to 1; places beyond it also have distance 1."""
CLEAR_UNITS = 10.0
"""Least signal of the answer per region and part of the day, in noise units."""
SIZES = ((2, 2), (4, 2), (4, 5), (8, 5), (16, 5), (32, 5), (64, 5), (64, 16), (MOST_REGIONS, 16))
"""(regions, parts of the day or week) that may be asked, from coarse to fine. Chosen together with `CLEAR_UNITS` by
noise on the margins of two trial datasets; neighbouring sizes are only slightly worse (research/log.md)."""


@dataclass(frozen=True)
class EndPointHours(Flow):
    """φ(T) = b at T's part of the day, (1 − |b|)/2 at (start's region, part) and (1 − |b|)/2 at (end's region, part).

    b = d(start) − d(end) is how far T goes inward, with d the distance from the centre, from 0 to 1. Few trips go far
    inward or outward, so |b| is mostly small and the regions get nearly all of the weight.
    Regions, centre and the distance that counts as one come from the noisy end points.
    """

    name: ClassVar[str] = "end_points/hours"
    meaning: ClassVar[str] = "in which regions they start and end, and how far inward they go, at which time of day"
    quantity: ClassVar[str] = "end_point_hours"
    budget_group: ClassVar[str] = EndPoints.budget_group
    resolution: ClassVar[int] = 2 * _STEPS
    optional: ClassVar[bool] = True
    adds_up: ClassVar[bool] = False
    own_norm: ClassVar[float] = 0.41
    shared_norm: ClassVar[float] = 0.04
    prior: ClassVar[Any] = priors.RegionalHours()

    groups: int
    """Number of regions of the answer; the leaves of the tree of cuts are merged until it is reached."""
    parts: int
    """Parts of the day or week."""
    centre: tuple[int, int]
    """Column and row of the base cell in the middle of the end points."""
    radius: int
    """Distance from the centre that counts as one, in base cells."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Starts by region, ends by region, and the balance of inward and outward in the last row."""
        return (2 * self.groups + 1, self.parts)

    @cached_property
    def distance_steps(self) -> NDArray[np.int64]:
        """Distance of each base cell from the centre, from 0 to `_STEPS`."""
        grid = base_grid(self.scope)
        row, column = np.divmod(np.arange(grid.cells), grid.columns)
        away = np.hypot(column - self.centre[0], row - self.centre[1]) / self.radius
        return np.asarray(np.minimum(away * _STEPS, _STEPS), np.int64)

    @property
    def distance(self) -> NDArray[np.float64]:
        """Distance of each base cell from the centre, from 0 to 1."""
        return self.distance_steps / _STEPS

    @property
    def group_of_leaf(self) -> NDArray[np.int64]:
        """Region of each leaf; siblings have neighbouring labels."""
        return np.arange(self.regions) // (self.regions // self.groups)

    def of_ends(self, ends: Ends) -> Features:
        part = part_of_hour(self.parts)[ends.hour]
        inward = 2 * (self.distance_steps[ends.start] - self.distance_steps[ends.end])
        rest = (self.resolution - np.abs(inward)) // 2
        group = self.group_of_leaf[self.region_of_cell.ravel()]
        row = np.r_[group[ends.start], self.groups + group[ends.end], np.full(len(ends), 2 * self.groups)]
        trip = np.tile(np.arange(len(ends)), 3)
        return Features(trip, row * self.parts + np.tile(part, 3), np.r_[rest, rest, inward])

    @classmethod
    def depth(cls, context: Context) -> int:
        groups, _ = hours_size(context.signal(cls.name))
        return _depth(groups)

    @classmethod
    def sized(cls, context: Context) -> Self:
        return cls._cut(context.scope, context.once(end_point_mass), *hours_size(context.signal(cls.name)))

    @classmethod
    def example(cls, scope: Scope) -> Self:
        """Eight regions of equal area and five parts of the day."""
        grid = base_grid(scope)
        return cls._cut(scope, np.ones((grid.rows, grid.columns)), 8, 5)

    @classmethod
    def _cut(cls, scope: Scope, mass: NDArray[np.float64], groups: int, parts: int) -> Self:
        cuts = tuple(cut_regions(mass, _depth(groups)))
        return cls(scope, cuts, groups, parts, *_middle(mass))

    def to_json(self) -> dict[str, Any]:
        size = {"regions": self.groups, "parts": self.parts}
        return {**super().to_json(), **size, "centre": list(self.centre), "radius": self.radius}

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        cuts = read_cuts(parameters["cuts"], frame.grid)
        groups, parts, (column, row), radius = (parameters[name] for name in ("regions", "parts", "centre", "radius"))
        if any(type(value) is not int for value in (groups, parts, column, row, radius)):
            raise TypeError("size")
        if (groups, parts) not in SIZES or len(cuts) + 1 != 2 ** _depth(groups):
            raise ValueError("regions")
        if not (0 <= column < frame.grid.columns and 0 <= row < frame.grid.rows):
            raise ValueError("centre")
        if not 1 <= radius <= frame.grid.rows + frame.grid.columns:
            raise ValueError("radius")
        return cls(frame.scope, cuts, groups, parts, (column, row), radius)

    @classmethod
    def part_of_group(cls, signal: float, grid: Grid, gaussian: bool = False) -> Fraction:
        return hours_part(signal, gaussian)

    @property
    def period(self) -> str:
        """What the parts are parts of: "day", or "week" where a weekend day has parts of its own."""
        return "week" if self.parts == NUMBERS_OF_PARTS[-1] else "day"

    def words(self) -> str:
        return f"{self.meaning} ({self.groups} regions, {self.parts} parts of the {self.period})"


def hours_size(signal: float) -> tuple[int, int]:
    """(regions, parts): the finest of `SIZES` for which the signal suffices; the coarsest if it suffices for none.

    Privacy: free (the signal follows from the noisy count).
    """
    enough = [(groups, parts) for groups, parts in SIZES if signal >= CLEAR_UNITS * groups * parts]
    return enough[-1] if enough else SIZES[0]


def _depth(groups: int) -> int:
    """Depth of the tree of cuts."""
    return max(groups, _LEAST_LEAVES).bit_length() - 1


def _middle(mass: NDArray[np.float64]) -> tuple[tuple[int, int], int]:
    """Column and row of the centre of mass, and the distance within which `_FAR_SHARE` of the mass lies, in cells."""
    rows, columns = mass.shape
    share = mass / mass.sum() if mass.sum() > 0 else np.full(mass.shape, 1 / mass.size)
    column = round(float(share.sum(axis=0) @ np.arange(columns)))
    row = round(float(share.sum(axis=1) @ np.arange(rows)))
    away = np.hypot(np.arange(columns) - column, (np.arange(rows) - row)[:, None]).ravel()
    order = np.argsort(away, kind="stable")
    last = min(int(np.searchsorted(np.cumsum(share.ravel()[order]), _FAR_SHARE)), mass.size - 1)
    return (column, row), max(round(float(away[order[last]])), 1)
