"""Answer: a question, and the noisy sums that answer it."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.question import Question


@dataclass(frozen=True, eq=False)
class Clipping:
    """How the contributions of units were clipped before they were added up (Gaussian mode).

    Privacy: free (it has been paid for).
    """

    resolution: int
    """Integer units per trajectory of the clipped sums."""
    bound: int
    """L2 bound on one unit's contribution, in these units."""
    kept: float
    """Estimated share of the sums that clipping has left."""
    norms: NDArray[np.int64] | None = None
    """The noisy histogram of norms from which the bound follows; None where the bound is public."""
    norms_scale: float | None = None
    """σ of the noise on `norms`."""


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
    """Its part of ε; with Gaussian noise its part of ρ, in proportion."""
    noisy: NDArray[np.int64]
    clipping: Clipping | None = None
    """None with Laplace noise."""

    @property
    def name(self) -> str:
        """The question's name."""
        return self.question.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The question's shape."""
        return self.question.shape

    @property
    def resolution(self) -> float:
        """Integer units per trajectory; with clipping, of what it has left of one on average."""
        if self.clipping is None:
            return self.question.resolution
        return self.clipping.resolution * self.clipping.kept

    @property
    def counts(self) -> NDArray[np.float64]:
        """Noisy answers in units of one trajectory, in the question's shape."""
        return (self.noisy / self.resolution).reshape(self.shape)

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.mechanism == "gaussian"

    @property
    def noise(self) -> float:
        """Scale of the noise in units of one trajectory; a Gaussian is given as the Laplace of equal variance."""
        return self.scale / self.resolution / (1.0 if self.mechanism == "laplace" else math.sqrt(2.0))
