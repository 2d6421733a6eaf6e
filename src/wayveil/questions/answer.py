"""Answer: a question, and the noisy sums that answer it."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.norms import WEIGHT_PARTS, Centre
from wayveil.questions.question import Question


@dataclass(frozen=True, eq=False)
class Clipping:
    """How the contributions of units were clipped before they were added up (Gaussian mode).

    Privacy: free (its cost was charged when it was measured).
    """

    resolution: int
    """Resolution of the clipped sums: integer units per trajectory."""
    bound: int
    """L2 bound on one unit's contribution, in these units."""
    kept: float
    """Estimated share of the sums that remains after clipping."""
    norms: NDArray[np.int64] | None = None
    """The noisy histogram of norms from which the bound follows; None where the bound is public."""
    norms_scale: float | None = None
    """σ of the noise on `norms`."""


@dataclass(frozen=True, eq=False)
class Centred:
    """A second draw of the same question, for the difference between contributions and a centre from the first draw.

    Privacy: free (it has been paid for).
    """

    centre: Centre
    count: float
    """The noisy number of trajectories, by which the centre is multiplied before it is added back."""
    scale: float
    """σ of the noise on `noisy`."""
    noisy: NDArray[np.int64]
    clipping: Clipping

    @property
    def weights(self) -> NDArray[np.float64]:
        """The factor by which each difference was multiplied before it was clipped."""
        weights = self.centre.weights
        return np.ones(len(self.noisy)) if weights is None else np.asarray(weights / WEIGHT_PARTS)

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviation of the noise of each value, in trajectories."""
        return np.asarray(self.scale / (self.clipping.resolution * self.clipping.kept * self.weights))

    def beyond(self) -> NDArray[np.float64]:
        """The noisy differences from the centre in units of one trajectory; their sum is zero.

        A trajectory's contribution has the same sum as the centre, so the sum of the differences is noise alone. It is
        distributed over the differences in proportion to their variances, and subtracted.
        """
        found = self.noisy / (self.clipping.resolution * self.clipping.kept * self.weights)
        variance = self.weights**-2.0
        return np.asarray(found - found.sum() * variance / variance.sum())


@dataclass(frozen=True, eq=False)
class Answer:
    """The noisy answer to one question: Σ φ(T) + integer noise of the given scale.

    Where contributions were clipped around a centre, `counts` has the centre added back.

    Privacy: free (it has been paid for).
    """

    question: Question
    mechanism: str
    """'laplace' or 'gaussian'."""
    scale: float
    """Scale of the noise on `noisy`, in the same integer units: b of a Laplace, σ of a Gaussian."""
    epsilon: Fraction
    """The question's part of ε; with Gaussian noise, ρ is divided in the same proportions."""
    noisy: NDArray[np.int64]
    clipping: Clipping | None = None
    """None with Laplace noise."""
    centred: Centred | None = None
    """The second draw, where there is one."""

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
        """Integer units per trajectory, times the share that clipping keeps, so that `counts` is not too small."""
        if self.clipping is None:
            return self.question.resolution
        return self.clipping.resolution * self.clipping.kept

    @property
    def counts(self) -> NDArray[np.float64]:
        """Noisy answers in units of one trajectory, in the question's shape; with two draws, their weighted mean."""
        first = self.noisy / self.resolution
        if self.centred is None:
            return first.reshape(self.shape)
        # The second draw adds up to the noisy count, so the first one is made to add up to it, too.
        shares = self.centred.centre.shares(self.question)
        second = self.centred.count * shares + self.centred.beyond()
        first = first + (self.centred.count - first.sum()) * shares / max(float(shares.sum()), 1e-9)
        return np.asarray((first + self._weight * second) / (1 + self._weight)).reshape(self.shape)

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.mechanism == "gaussian"

    @property
    def noise(self) -> float:
        """Scale of the noise in units of one trajectory; a Gaussian is given as the Laplace of equal variance.

        Where values differ in noise, it is the scale whose precision is the mean precision.
        """
        return self._first_noise / math.sqrt(1 + float(np.mean(self._weight)))

    @property
    def has_weights(self) -> bool:
        """Whether values differ in noise because of the weights of a second draw."""
        return self.centred is not None and self.centred.centre.weights is not None

    @property
    def noises(self) -> NDArray[np.float64]:
        """The scale of the noise of each value, in the question's shape."""
        noises = self._first_noise / np.sqrt(1 + self._weight)
        return np.asarray(np.broadcast_to(noises, len(self.noisy)).reshape(self.shape))

    @property
    def noise_range(self) -> tuple[float, float]:
        """The least and the most noise of one value, as factors of `noise`."""
        least, most = self.question.noise_range
        if not self.has_weights:
            return least, most
        noises = self.noises / self.noise
        return least * float(noises.min()), most * float(noises.max())

    @property
    def _first_noise(self) -> float:
        return self.scale / self.resolution / (1.0 if self.mechanism == "laplace" else math.sqrt(2.0))

    @property
    def _weight(self) -> NDArray[np.float64]:
        """Precision of each value of the second draw relative to the first."""
        if self.centred is None:
            return np.zeros(1)
        return np.asarray((self.scale / self.resolution / self.centred.sd) ** 2)

    def as_one_draw(self) -> "Answer":
        """The same counts and noise as if they came from one draw."""
        if self.centred is None:
            return self
        assert self.clipping is not None
        clipping = replace(self.clipping, kept=1.0)
        return replace(
            self,
            noisy=np.rint(self.counts.ravel() * clipping.resolution).astype(np.int64),
            scale=self.noise * math.sqrt(2.0) * clipping.resolution,
            clipping=clipping,
            centred=None,
        )
