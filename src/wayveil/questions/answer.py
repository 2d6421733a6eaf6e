"""Answer: a question, and the noisy sums that answer it."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.question import Question


@dataclass(frozen=True, eq=False)
class Answer:
    """The noisy answer to one question: Σ φ(T) + integer noise of the given scale.

    Privacy: free (it has been paid for).
    """

    question: Question
    mechanism: str
    """'laplace' or 'gaussian'."""
    scale: float
    """Of the noise on `noisy`, in the same integer units: b of a Laplace, σ of a Gaussian."""
    epsilon: Fraction
    noisy: NDArray[np.int64]

    @property
    def name(self) -> str:
        """The question's name."""
        return self.question.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The question's shape."""
        return self.question.shape

    @property
    def resolution(self) -> int:
        """The question's resolution: integer units per trajectory."""
        return self.question.resolution

    @property
    def counts(self) -> NDArray[np.float64]:
        """Noisy answers in units of one trajectory, in the question's shape."""
        return (self.noisy / self.resolution).reshape(self.shape)

    @property
    def noise(self) -> float:
        """Scale of the noise in units of one trajectory; a Gaussian is given as the Laplace of equal variance."""
        return self.scale / self.resolution / (1.0 if self.mechanism == "laplace" else math.sqrt(2.0))
