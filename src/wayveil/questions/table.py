"""The kind of question that counts each trajectory in one cell of a table of two quantities."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.edges import read_edges
from wayveil.questions.question import Context, Features, Frame, Question, one_hot

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class Table(Question):
    """φ(T) = 1 at (bin of the row's value, bin of the column's value), so the L1 norm is 1 by construction."""

    rows: Bins
    columns: Bins
    resolution: ClassVar[int] = 1
    one_hot: ClassVar[bool] = True
    shared_norm: ClassVar[float] = 0.1
    axes: ClassVar[tuple[str, str]]
    """Names of the two quantities. A histogram of the catalogue with such a name is a marginal of the table."""
    prior: ClassVar[Any] = priors.Independent()

    @classmethod
    @abstractmethod
    def finest_bins(cls, scope: Scope) -> tuple[Bins, Bins]:
        """The finest bins of the rows and of the columns that the question can have."""

    @abstractmethod
    def values(self, batch: "Prepared") -> tuple[NDArray[Any], NDArray[Any]]:
        """The row's and the column's value of each trajectory."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.rows), len(self.columns))

    def features(self, batch: "Prepared") -> Features:
        row, column = self.values(batch)
        return one_hot(self.rows.index(row) * len(self.columns) + self.columns.index(column))

    @classmethod
    def with_bins(cls, rows: Bins, columns: Bins, scope: Scope) -> Self:
        """The question with the given bins."""
        return cls(rows, columns)

    @classmethod
    def finest(cls, scope: Scope) -> "Table":
        return cls.with_bins(*cls.finest_bins(scope), scope)

    @classmethod
    def sized(cls, context: Context) -> Self:
        """The question with its finest bins; a table that can be coarser overrides this."""
        return cls.with_bins(*cls.finest_bins(context.scope), context.scope)

    def pooled(self, summed: "Table", sums: NDArray[np.int64]) -> NDArray[np.int64]:
        table = sums.reshape(summed.shape)
        for axis, (own, finest) in enumerate(((self.rows, summed.rows), (self.columns, summed.columns))):
            starts = np.searchsorted(np.asarray(finest.edges), np.asarray(own.edges[:-1]))
            table = np.add.reduceat(table, starts, axis=axis)
        return table

    def to_json(self) -> dict[str, Any]:
        rows, columns = self.axes
        return {f"{rows}_edges": list(self.rows.edges), f"{columns}_edges": list(self.columns.edges)}

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        edges = [parameters[f"{axis}_edges"] for axis in cls.axes]
        rows, columns = (read_edges(*pair) for pair in zip(edges, cls.possible_bins(frame.scope), strict=True))
        return cls.with_bins(rows, columns, frame.scope)

    @classmethod
    def possible_bins(cls, scope: Scope) -> tuple[list[Bins], list[Bins]]:
        """All bins that the rows can have, and all that the columns can have."""
        rows, columns = cls.finest_bins(scope)
        return [rows], [columns]
