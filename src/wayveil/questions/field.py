"""The kind of question about places: counts on square cells, in coarse blocks first and then in detail.

The coarse blocks are asked first. Their noisy counts decide how the ε of the detail is divided in each block between
middle and fine cells (`detail_weights`). Both questions are one budget group, and the noisy number of
trajectories decides how its ε is divided between them.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid, base_grid, level_shape
from wayveil.core.pyramid import pool
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.detail_weights import FEWEST, MOST, PARTS, coarse_parts, fine_parts, weigh
from wayveil.questions.question import Context, Features, Frame, Question

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

CLEAR_UNITS = 0.8
"""Least signal of a fine cell where trajectories are, in noise units. Tuned on the trial data, one value for all of it
(docs/explanation/method.md)."""
USUALLY_CONCENTRATED = 16.0
"""Assumed ratio of the traffic in a cell where trajectories are to that of the average cell, before anything is known;
tuned with `CLEAR_UNITS`."""
_LARGEST_SIDE = 1 << 20
"""Base cells along the side of a cell; larger numbers in a release are refused."""


@dataclass(frozen=True)
class Levels:
    """Side of a cell at the three levels of a field, in cells of the base grid; each divides the one before it."""

    coarse: int
    middle: int
    fine: int


@dataclass(frozen=True)
class Field(Question):
    """A question about cells of the grid; subclasses say what a trajectory adds to which base cell."""

    grid: Grid
    prior: ClassVar[Any] = priors.Plain()

    @abstractmethod
    def cell_features(self, batch: "Prepared") -> Features:
        """What each trajectory adds to which base cell."""

    @classmethod
    def choose_levels(cls, context: Context) -> Levels:
        """The sides of the cells at which the field is asked."""
        return field_levels(context.grid, context.group_signals[cls.budget_group])


@dataclass(frozen=True)
class Blocks(Field):
    """A field on blocks of `side` × `side` base cells."""

    side: int

    @property
    def shape(self) -> tuple[int, ...]:
        return level_shape(self.grid, self.side)

    def features(self, batch: "Prepared") -> Features:
        found = self.cell_features(batch)
        if self.side == 1:
            return found
        return Features(found.row, _block_of(self.grid, found.column, self.side), found.weight)

    @classmethod
    def finest(cls, scope: Scope) -> "Blocks":
        return cls(base_grid(scope), 1)

    @classmethod
    def sized(cls, context: Context) -> Self:
        return cls(context.grid, cls.choose_levels(context).coarse)

    def pooled(self, summed: "Blocks", sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pooling adds cells up, so a trajectory's L1 norm cannot grow."""
        return pool(sums.reshape(self.grid.rows, self.grid.columns), self.side)

    def of_density(self, density: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a trajectory adds to each value, in trajectories, if its points have this density on the base grid."""
        return np.asarray(pool(density, self.side), np.float64)

    def to_json(self) -> dict[str, Any]:
        return {"side": self.side, "cell_m": self.grid.cell_m}

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        _check_cell(parameters, frame)
        return cls(frame.grid, _side(parameters["side"]))

    @classmethod
    def part_of_group(cls, signal: float, grid: Grid, gaussian: bool = False) -> Fraction:
        if cls.budget_group == cls.name:
            return Fraction(1)
        return Fraction(coarse_parts(signal, grid.cells), PARTS)

    def words(self) -> str:
        return f"{self.meaning} (cells of {_metres(self.side * self.grid.cell_m)})"


@dataclass(frozen=True)
class Detail(Field):
    """Middle and fine cells of a field in one answer, each block with its own weights for the two.

    A trajectory that adds w to a base cell adds w·parts to its fine cell and w·(PARTS − parts) to its middle cell, so
    its L1 norm is PARTS times that of the field, whatever the blocks' weights are.
    """

    levels: Levels
    parts: tuple[tuple[int, ...], ...]
    """Of PARTS, how many go to the fine cells of each coarse block."""
    coarse: ClassVar[type[Blocks]]
    """The question about the coarse blocks of the same field."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(math.prod(level_shape(self.grid, side)) for side in self.sides),)

    @property
    def sides(self) -> tuple[int, int]:
        """Sides of the middle and the fine cells, in base cells."""
        return self.levels.middle, self.levels.fine

    @property
    def weights(self) -> NDArray[np.int64]:
        """`parts` as an array."""
        return np.array(self.parts, np.int64)

    def features(self, batch: "Prepared") -> Features:
        found = self.cell_features(batch)
        middle, fine = (_block_of(self.grid, found.column, side) for side in self.sides)
        of_fine = self.weights.ravel()[_block_of(self.grid, found.column, self.levels.coarse)]
        before = math.prod(level_shape(self.grid, self.levels.middle))
        return Features(
            np.tile(found.row, 2),
            np.r_[middle, before + fine],
            np.r_[found.weight * (PARTS - of_fine), found.weight * of_fine],
        )

    @classmethod
    def finest(cls, scope: Scope) -> Blocks:
        """The sums of the coarse question, so that they are added up once."""
        return cls.coarse.finest(scope)

    @classmethod
    def sized(cls, context: Context) -> Self:
        levels, coarse = cls.choose_levels(context), context.answers[cls.coarse.name]
        # From the noisy blocks, never from the exact ones: the weights are part of the release.
        parts = fine_parts(coarse.counts, (levels.coarse // levels.fine) ** 2, context.noise[cls.name])
        return cls(context.grid, levels, _rows(parts))

    @classmethod
    def example(cls, scope: Scope) -> Self:
        """Weights of every size: the norm must not depend on them."""
        grid, levels = base_grid(scope), Levels(coarse=16, middle=4, fine=1)
        rows, columns = (np.arange(cells) for cells in level_shape(grid, levels.coarse))
        return cls(grid, levels, _rows(FEWEST + (7 * rows[:, None] + 5 * columns) % (MOST - FEWEST + 1)))

    def pooled(self, summed: Blocks, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._weighed(sums.reshape(self.grid.rows, self.grid.columns))

    def of_density(self, density: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a trajectory adds to each value, in trajectories, if its points have this density on the base grid."""
        return np.asarray(self._weighed(density) / PARTS, np.float64)

    def _weighed(self, cells: NDArray[Any]) -> NDArray[Any]:
        levels = self.levels
        ratios = levels.coarse // levels.middle, levels.coarse // levels.fine
        return weigh(pool(cells, levels.middle), pool(cells, levels.fine), self.weights, ratios)

    def to_json(self) -> dict[str, Any]:
        return {
            "sides": list(self.sides),
            "cell_m": self.grid.cell_m,
            "parts": [list(row) for row in self.parts],
        }

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        _check_cell(parameters, frame)
        middle, fine = (_side(side) for side in parameters["sides"])
        coarse = frame.earlier[cls.coarse.name]
        assert isinstance(coarse, Blocks)
        if coarse.side % middle or middle % fine:
            raise ValueError("sides")
        parts, (rows, columns) = parameters["parts"], level_shape(frame.grid, coarse.side)
        if not (isinstance(parts, list) and len(parts) == rows):
            raise ValueError("parts")
        if not all(isinstance(row, list) and len(row) == columns for row in parts):
            raise ValueError("parts")
        if not all(type(part) is int and FEWEST <= part <= MOST for row in parts for part in row):
            raise ValueError("parts")
        return cls(frame.grid, Levels(coarse.side, middle, fine), tuple(tuple(row) for row in parts))

    @classmethod
    def part_of_group(cls, signal: float, grid: Grid, gaussian: bool = False) -> Fraction:
        return 1 - cls.coarse.part_of_group(signal, grid, gaussian)

    def words(self) -> str:
        return f"{self.meaning} (cells of {' and '.join(_metres(side * self.grid.cell_m) for side in self.sides)})"

    @property
    def noise_range(self) -> tuple[float, float]:
        fine = {part for row in self.parts for part in row}
        levels = fine | {PARTS - part for part in fine}
        return PARTS / max(levels), PARTS / min(levels)


def field_levels(grid: Grid, signal: float, concentrated: float = USUALLY_CONCENTRATED) -> Levels:
    """16f, 4f and f base cells (the coarsest at most 64), f the smallest of 1, 2, 4, 8 … with a clear signal.

    A signal is clear if a cell of f × f has `CLEAR_UNITS` noise units in the places where trajectories are.

    Parameters
    ----------
    signal
        m̃·ε_v / c: the signal of the whole field in noise units, with c the unit's sensitivity.
    concentrated
        How much busier the places of trajectories are than the average place, if another noisy answer estimates it.
        Values below the usual one are raised to it: larger cells would be estimated better, but distant sums worse.
    """
    fine = 1
    busier = max(concentrated, USUALLY_CONCENTRATED)
    while fine < 64 and busier * signal * fine * fine < CLEAR_UNITS * grid.cells:
        fine *= 2
    return Levels(min(64, 16 * fine) if fine <= 16 else fine * 4, min(4 * fine, 256), fine)


def _block_of(grid: Grid, cell: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    if side == 1:
        return cell
    row, column = np.divmod(cell, grid.columns)
    result: NDArray[np.int64] = (row // side) * level_shape(grid, side)[1] + column // side
    return result


def _rows(parts: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in parts.tolist())


def _check_cell(parameters: dict[str, Any], frame: Frame) -> None:
    if parameters["cell_m"] != frame.grid.cell_m:
        raise ValueError("cell_m")


def _side(side: Any) -> int:
    if not (type(side) is int and 1 <= side <= _LARGEST_SIDE):
        raise ValueError("side")
    return side


def _metres(size_m: float) -> str:
    return f"{size_m:g} m" if size_m < 1000 else f"{size_m / 1000:g} km"
