"""On which day of the week, and in which part of the day, trajectories start."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins, merge_bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.departure_hour import HOURS, first_hour_of_week
from wayveil.questions.question import Context
from wayveil.questions.table import Table

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

WEEKDAYS = Bins(tuple(float(day) for day in range(8)))
"""Seven days, Monday first."""
PARTS_OF_DAY = (24, 8, 4, 2, 1)
"""Numbers of equal parts into which the question can divide a day."""
_UNITS = 3
"""Minimum signal of each part of each day, in noise units."""


@dataclass(frozen=True)
class DepartureWeek(Table):
    """φ(T) = 1 at (weekday, part of the day) of the first point."""

    scope: Scope
    name: ClassVar[str] = "departure_week"
    meaning: ClassVar[str] = "on which day of the week and at which hour they start"
    axes: ClassVar[tuple[str, str]] = ("weekday", "hour")
    prior: ClassVar[Any] = priors.WeeklyRhythm()

    @classmethod
    def with_bins(cls, rows: Bins, columns: Bins, scope: Scope) -> Self:
        return cls(rows, columns, scope)

    @classmethod
    def finest_bins(cls, scope: Scope) -> tuple[Bins, Bins]:
        return WEEKDAYS, HOURS

    @classmethod
    def sized(cls, context: Context) -> Self:
        parts = parts_of_day(context.signal(cls.name))
        return cls(WEEKDAYS, merge_bins(HOURS, 24 // parts), context.scope)

    def values(self, batch: "Prepared") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        hour = first_hour_of_week(self.scope, batch)
        return hour // 24, hour % 24

    @classmethod
    def possible_bins(cls, scope: Scope) -> tuple[list[Bins], list[Bins]]:
        return [WEEKDAYS], [merge_bins(HOURS, 24 // parts) for parts in PARTS_OF_DAY]

    def words(self) -> str:
        hours = 24 // len(self.columns)
        if hours == 1:
            return self.meaning
        return "on which day of the week they start" + (f" (parts of {hours} hours)" if hours < 24 else "")


def parts_of_day(signal: float) -> int:
    """Number of parts of a day: the largest of 24, 8, 4 and 2 whose parts have three noise units each, otherwise 1."""
    return next((parts for parts in PARTS_OF_DAY[:-1] if signal >= _UNITS * 7 * parts), PARTS_OF_DAY[-1])
