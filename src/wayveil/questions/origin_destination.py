"""Origin-destination matrices: trajectories from each region to each region, for few regions and for many."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.pyramid import pool
from wayveil.questions.flow import Ends, Flow, region_depth
from wayveil.questions.question import Context, Features, Frame, one_hot

_MERGED_LEVELS = 2
"""Levels of the tree of cuts that the coarse question leaves out: each of its regions is four of the fine question."""


@dataclass(frozen=True)
class OriginDestination(Flow):
    """φ(T) = 1 at (region of the start, region of the end), for many regions."""

    name: ClassVar[str] = "origin_destination/fine"
    meaning: ClassVar[str] = "trips from each region to each region"
    quantity: ClassVar[str] = "origin_destination"
    budget_group: ClassVar[str] = "origin_destination/fine"
    resolution: ClassVar[int] = 1
    one_hot: ClassVar[bool] = True
    shared_norm: ClassVar[float] = 0.06

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.regions, self.regions)

    def of_ends(self, ends: Ends) -> Features:
        region = self.region_of_cell.ravel()
        return one_hot(region[ends.start] * self.regions + region[ends.end])

    @classmethod
    def depth(cls, context: Context) -> int:
        """As many regions as the signal of both questions about them allows."""
        names = (OriginDestinationCoarse.name, OriginDestination.name)
        return region_depth(sum(context.signal(name) for name in names))

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        question = super().from_json(parameters, frame)
        coarse = frame.earlier.get(OriginDestinationCoarse.name)
        if isinstance(coarse, Flow) and question.cuts[: len(coarse.cuts)] != coarse.cuts:
            raise ValueError("cuts")
        return question

    def words(self) -> str:
        return f"{self.meaning} (fine)"


@dataclass(frozen=True)
class OriginDestinationCoarse(OriginDestination):
    """φ(T) = 1 at (region of the start, region of the end), for few regions."""

    name: ClassVar[str] = "origin_destination/coarse"
    budget_group: ClassVar[str] = "origin_destination/coarse"
    shared_norm: ClassVar[float] = 0.22

    @classmethod
    def sized(cls, context: Context) -> Self:
        """The first cuts of the fine question: cuts come in breadth-first order."""
        fine = context.once(OriginDestination.sized)
        return cls(context.scope, fine.cuts[: (fine.regions >> _MERGED_LEVELS) - 1])

    @classmethod
    def summed(cls, context: Context) -> Flow:
        return context.once(OriginDestination.sized)

    def pooled(self, summed: Flow, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        return pool(sums.reshape(summed.shape), summed.regions // self.regions)

    def words(self) -> str:
        return f"{self.meaning} (coarse)"
