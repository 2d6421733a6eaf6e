"""How many trajectories there are: the first question, which sets the size of all others."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.questions.question import Context, Features, Frame, Question, one_hot

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class Count(Question):
    """φ(T) = 1."""

    name: ClassVar[str] = "count"
    meaning: ClassVar[str] = "how many trajectories there are"
    resolution: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ()
    one_hot: ClassVar[bool] = True
    shared_norm: ClassVar[float] = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return (1,)

    def features(self, batch: "Prepared") -> Features:
        return one_hot(np.zeros(len(batch), np.int64))

    @classmethod
    def finest(cls, scope: Scope) -> Self:
        return cls()

    @classmethod
    def sized(cls, context: Context) -> Self:
        return cls()

    def pooled(self, summed: Question, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        return sums

    def to_json(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        return cls()
