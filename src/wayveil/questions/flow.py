"""The kind of question about regions: large areas of about equal traffic, cut from the noisy end points.

Regions are known only after noise has been drawn. What these questions need of each trajectory (the cells of its ends
and its hour) is stored while the data is read, so that the data need not be read again.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.density import estimate_field
from wayveil.core.grid import Grid, base_grid
from wayveil.core.regions import Cut, cut_regions, label_regions
from wayveil.core.scope import Scope
from wayveil.core.week import hour_of_day_or_weekend
from wayveil.questions import priors
from wayveil.questions.end_points import EndPoints, EndPointsDetail, cells_at
from wayveil.questions.levels import noisy_levels
from wayveil.questions.question import Context, Features, Frame, Question

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

MOST_REGIONS = 128
"""Maximum number of regions: the table of pairs then has at most 128² entries."""
_EXAMPLE_DEPTH = 4
"""Depth of the tree of regions in the example for audit and tests: 16 regions."""


@dataclass(frozen=True)
class Flow(Question):
    """A question about the regions in which trajectories start and end."""

    scope: Scope
    cuts: tuple[Cut, ...]
    """2^depth − 1 cuts of the grid, in breadth-first order."""
    needs: ClassVar[tuple[str, ...]] = ("count", "end_points/coarse", "end_points/detail")
    prior: ClassVar[Any] = priors.Gravity()

    @abstractmethod
    def of_ends(self, ends: "Ends") -> Features:
        """The features, from what is remembered of each trajectory."""

    @classmethod
    @abstractmethod
    def depth(cls, context: Context) -> int:
        """Depth of the tree of cuts."""

    @property
    def regions(self) -> int:
        """Number of regions."""
        return len(self.cuts) + 1

    @cached_property
    def region_of_cell(self) -> NDArray[np.int64]:
        """(rows, columns) region of each base cell."""
        return label_regions(base_grid(self.scope), list(self.cuts))

    def features(self, batch: "Prepared") -> Features:
        return self.of_ends(Ends.of(batch, base_grid(self.scope), self.scope))

    @classmethod
    def finest(cls, scope: Scope) -> None:
        """None: its regions are cut from noisy answers."""
        return None

    @classmethod
    def sized(cls, context: Context) -> Self:
        return cls(context.scope, tuple(cut_regions(context.once(end_point_mass), cls.depth(context))))

    @classmethod
    def summed(cls, context: Context) -> "Flow":
        return context.once(cls.sized)

    @classmethod
    def example(cls, scope: Scope) -> Self:
        """Sixteen regions of equal area."""
        grid = base_grid(scope)
        return cls(scope, tuple(cut_regions(np.ones((grid.rows, grid.columns)), _EXAMPLE_DEPTH)))

    def pooled(self, summed: "Flow", sums: NDArray[np.int64]) -> NDArray[np.int64]:
        return sums

    def to_json(self) -> dict[str, Any]:
        return {"cuts": [[axis, at] for axis, at in self.cuts]}

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        return cls(frame.scope, read_cuts(parameters["cuts"], frame.grid))


@dataclass(frozen=True, eq=False)
class Ends:
    """What is remembered of each trajectory for the questions about regions.

    Privacy: not private (trusted side only).
    """

    start: NDArray[np.int32]
    """Base cell of the first point."""
    end: NDArray[np.int32]
    """Base cell of the last point."""
    hour: NDArray[np.int8]
    """Hour of the first point, 0 to 47: of a working day or of a weekend day."""

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def of(cls, batch: "Prepared", grid: Grid, scope: Scope) -> "Ends":
        """The ends of each trajectory of a batch."""
        start, end = (cells_at(grid, batch, at).astype(np.int32) for at in (batch.first, batch.last))
        hour = hour_of_day_or_weekend(scope.local_seconds(batch.t_utc[batch.first]))
        return cls(start, end, hour.astype(np.int8))

    @classmethod
    def joined(cls, parts: "list[Ends]") -> "Ends":
        """All parts, one after the other."""
        none = cls(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int8))
        columns = ([getattr(part, name) for part in (none, *parts)] for name in ("start", "end", "hour"))
        return cls(*(np.concatenate(column) for column in columns))


def region_depth(signal: float) -> int:
    """Depth of the k-d tree of regions: 2^depth of them, 2^depth ≤ sqrt(2·signal), from 4 to MOST_REGIONS."""
    return int(np.clip(np.floor(np.log2(np.sqrt(max(2.0 * signal, 1.0)))), 2, np.log2(MOST_REGIONS)))


def end_point_mass(context: Context) -> NDArray[np.float64]:
    """A rough density from the two coarser noisy levels: good enough to cut regions of about equal mass."""
    answers = [context.answers[question.name] for question in (EndPoints, EndPointsDetail)]
    flat = np.ones((context.grid.rows, context.grid.columns))
    return estimate_field(noisy_levels(answers)[:2], context.count, flat, neighbours=False)


def read_cuts(cuts: Any, grid: Grid) -> tuple[Cut, ...]:
    """Cuts of a full binary tree, all inside the grid; ValueError for anything else."""
    if not isinstance(cuts, list) or len(cuts) >= MOST_REGIONS or (len(cuts) + 1) & len(cuts):
        raise ValueError("cuts")
    for cut in cuts:
        if not (isinstance(cut, list) and len(cut) == 2 and cut[0] in ("x", "y") and type(cut[1]) is int):
            raise ValueError("cuts")
        if not 0 <= cut[1] <= (grid.columns if cut[0] == "x" else grid.rows):
            raise ValueError("cuts")
    return tuple((axis, at) for axis, at in cuts)
