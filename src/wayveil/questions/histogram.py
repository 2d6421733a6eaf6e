"""Base class of questions that count each trajectory in one bin of one quantity, or spread it over the bins."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins, merge_bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.edges import read_edges
from wayveil.questions.question import Context, Features, Frame, Question, one_hot

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class Merging:
    """Neighbouring bins are merged until their mean is `units` noise units, or until at most `coarse` bins remain.

    If the mean is then still below `least_units`, merging continues, down to `coarsest` bins. The lowest `valueless`
    bins count trajectories that have no value; they are never merged and do not count as bins here.
    """

    units: float = 3.0
    coarse: int = 24
    valueless: int = 0
    least_units: float = 2.0
    coarsest: int = 6


_RUNS = (1, 2, 4, 8, 16, 32, 64)
"""Possible numbers of neighbouring bins that are merged into one."""
NEVER = Merging(coarse=1 << 30, coarsest=1 << 30)
"""Bins that are never merged."""
NARROW_SPIKES = Merging(units=0.5, coarse=12, coarsest=12)
"""For devices that record at one or two fixed intervals: merging bins blurs such a spike more than noise does, unless
the noise hides it."""


@dataclass(frozen=True)
class Histogram(Question):
    """φ(T) = 1 in the bin of T's value and 0 elsewhere, so the L1 norm is 1 by construction."""

    bins: Bins
    resolution: ClassVar[int] = 1
    one_hot: ClassVar[bool] = True
    merging: ClassVar[Merging] = Merging()
    prior: ClassVar[Any] = priors.Smooth()

    @classmethod
    @abstractmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """The narrowest bins that a release may have."""

    @classmethod
    def value_bins(cls, scope: Scope) -> Bins:
        """The finest bins without those for trajectories that have no value."""
        return Bins(cls.finest_bins(scope).edges[cls.merging.valueless :])

    @abstractmethod
    def values(self, batch: "Prepared") -> NDArray[Any]:
        """The value of each trajectory."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.bins),)

    def features(self, batch: "Prepared") -> Features:
        return one_hot(self.bins.index(self.values(batch)))

    @classmethod
    def with_bins(cls, bins: Bins, scope: Scope) -> Self:
        """The question with the given bins."""
        return cls(bins)

    @classmethod
    def finest(cls, scope: Scope) -> "Histogram":
        return cls.with_bins(cls.finest_bins(scope), scope)

    @classmethod
    def sized(cls, context: Context) -> Self:
        bins = merged_bins(cls.finest_bins(context.scope), context.signal(cls.name), cls.merging)
        return cls.with_bins(bins, context.scope)

    def pooled(self, summed: "Histogram", sums: NDArray[np.int64]) -> NDArray[np.int64]:
        starts = np.searchsorted(np.asarray(summed.bins.edges), np.asarray(self.bins.edges[:-1]))
        return np.add.reduceat(sums, starts)

    def to_json(self) -> dict[str, Any]:
        return {"edges": list(self.bins.edges)}

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        possible = possible_bins(cls.finest_bins(frame.scope), cls.merging)
        return cls.with_bins(read_edges(parameters["edges"], possible), frame.scope)


def merged_bins(bins: Bins, signal: float, merging: Merging) -> Bins:
    """The bins of a histogram whose signal is `signal` noise units."""
    if len(bins) - merging.valueless <= merging.coarse:
        return bins
    most = min(merging.coarse, max(merging.coarsest, signal / merging.least_units))
    return _merged(bins, max(most, signal / merging.units), merging.valueless)


def possible_bins(bins: Bins, merging: Merging) -> list[Bins]:
    """All the bins that a histogram can have, whatever its signal."""
    values = len(bins) - merging.valueless
    if values <= merging.coarse:
        return [bins]
    return list(dict.fromkeys(_merged(bins, max(merging.coarsest, values / run), merging.valueless) for run in _RUNS))


def _merged(bins: Bins, most: float, valueless: int) -> Bins:
    values = Bins(bins.edges[valueless:])
    run = next((run for run in _RUNS if len(values) / run <= most), _RUNS[-1])
    return Bins((*bins.edges[:valueless], *merge_bins(values, run).edges))
