"""In which regions trajectories start and end at which time of day.

Asked only where there are many end points; its ε is then a part of theirs.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from wayveil.core.grid import Grid
from wayveil.core.week import PARTS_OF_WEEK
from wayveil.questions import priors
from wayveil.questions.end_points import EndPoints, hours_part
from wayveil.questions.flow import Ends, Flow, region_depth
from wayveil.questions.question import Context, Features, Frame


@dataclass(frozen=True)
class EndPointHours(Flow):
    """φ(T) = ½ at (start, its region, T's part of the week) + ½ at (end, its region, the same part of the week)."""

    name: ClassVar[str] = "end_points/hours"
    meaning: ClassVar[str] = "in which regions they start and end at which time of day"
    quantity: ClassVar[str] = "end_point_hours"
    line: ClassVar[str] = EndPoints.line
    resolution: ClassVar[int] = 2
    optional: ClassVar[bool] = True
    own_norm: ClassVar[float] = 0.5
    shared_norm: ClassVar[float] = 0.03
    prior: ClassVar[Any] = priors.RegionalHours()

    @property
    def shape(self) -> tuple[int, ...]:
        return (2, self.regions, PARTS_OF_WEEK)

    def of_ends(self, ends: Ends) -> Features:
        region_of_cell = self.region_of_cell.ravel()
        region = np.r_[region_of_cell[ends.start], self.regions + region_of_cell[ends.end]]
        column = region * PARTS_OF_WEEK + np.tile(ends.part, 2)
        return Features(np.tile(np.arange(len(ends)), 2), column, np.ones(len(column), np.int64))

    @classmethod
    def depth(cls, context: Context) -> int:
        return region_depth(context.signal(cls.name))

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        question = super().from_json(parameters, frame)
        if question.regions < 2:
            raise ValueError("cuts")
        return question

    @classmethod
    def part_of_line(cls, signal: float, grid: Grid) -> Fraction:
        return hours_part(signal)
