"""The mechanism: the only place where exact sums become noisy ones.

`Cost` says what each question may cost; `Mechanism` draws opendp's noise for it and refuses an answer that would cost
more.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import BudgetError, InputError
from wayveil.privacy.budget import Budget
from wayveil.privacy.fixedpoint import LARGEST_SUM, check_overflow
from wayveil.privacy.noise import NoiseSource
from wayveil.privacy.unit import Unit
from wayveil.privacy.zcdp import integer_rho, rho_for

_MOST_TRAJECTORIES = 1 << 40
"""Largest number of trajectories; their sums must fit in an integer."""
_SCALES = 64
"""Number of noise scales that must fit on top of the sums; if they do not, the result would be useless anyway."""


@dataclass(frozen=True)
class Cost:
    """What each question may cost: ε_q of pure privacy, or with a δ, ρ_q = ρ·ε_q/ε of zero-concentrated privacy.

    Privacy: free; it says what may be spent and spends nothing itself.
    """

    budget: Budget
    delta: Fraction
    rho: Fraction | None

    @classmethod
    def of(
        cls, epsilon: Fraction, delta: Fraction, unit: Unit, shares: Mapping[str, Fraction], resolution: int
    ) -> "Cost":
        """ε (and δ) divided according to the shares; InputError if the sums and the noise might not fit in an integer.

        `resolution` is the largest of all questions.
        """
        cost = cls(Budget.split(epsilon, shares), delta, rho_for(epsilon, delta) if delta else None)
        check_overflow(_MOST_TRAJECTORIES, resolution)
        if _SCALES * resolution * max(cost.noise(name, unit) for name in cost.budget.shares) >= LARGEST_SUM:
            raise InputError("epsilon is too small for this max_per_user=: only noise would be left; raise it.")
        return cost

    def rho_of(self, name: str) -> Fraction:
        """ρ_q."""
        assert self.rho is not None
        return self.rho * self.budget[name] / self.budget.epsilon

    def noise(self, name: str, unit: Unit) -> float:
        """Scale of the noise in trajectories, c/ε_q; with a δ the largest possible one."""
        if self.rho is None:
            return unit.sensitivity / float(self.budget[name])
        return self.gaussian_noise(name, unit.sensitivity)

    def gaussian_noise(self, name: str, bound: float, part: Fraction = Fraction(1)) -> float:
        """Scale of the Laplace noise that has the variance of the Gaussian noise: B/(2·sqrt(part·ρ_q))."""
        return bound / (2.0 * math.sqrt(part * self.rho_of(name)))


@dataclass(frozen=True, eq=False)
class NoisySums:
    """Noisy sums, with the noise that they got and what they cost."""

    mechanism: str
    """'laplace' or 'gaussian'."""
    scale: float
    epsilon: Fraction
    values: NDArray[np.int64]


@dataclass(frozen=True)
class Mechanism:
    """Exact sums in, noisy sums out.

    The audit sends exact sums through this same mechanism, so it tests the code that runs.

    Privacy: spends ε_q (or ρ_q) with each `answer`.
    """

    cost: Cost
    unit: Unit
    noise: NoiseSource

    def answer(self, name: str, sums: NDArray[np.int64], resolution: int, sensitivity: int | None = None) -> NoisySums:
        """Add Laplace noise to the sums of a question that one trajectory changes by at most `resolution` in L1.

        One unit changes them by at most `sensitivity` times that; the default is its largest number of trajectories.
        """
        assert self.cost.rho is None
        share = self.cost.budget[name]
        flat = np.ascontiguousarray(sums, np.int64).ravel()
        noisy = self.noise.laplace(
            flat, resolution * (self.unit.sensitivity if sensitivity is None else sensitivity), share
        )
        if noisy.epsilon_spent > share:
            raise BudgetError(f"'{name}' would cost more than its share; nothing was released.")
        return NoisySums("laplace", noisy.scale, share, noisy.values)

    def clipped_answer(self, name: str, sums: NDArray[np.int64], bound: int, part: Fraction) -> NoisySums:
        """Gaussian noise for `part` of a question's ρ; one unit moves the sums by at most `bound` in L2."""
        rho = integer_rho(part * self.cost.rho_of(name), bound)
        noisy = self.noise.gaussian(np.ascontiguousarray(sums, np.int64).ravel(), float(bound), rho)
        if noisy.rho_spent > rho:
            raise BudgetError(f"'{name}' would cost more than its share; nothing was released.")
        return NoisySums("gaussian", noisy.scale, self.cost.budget[name], noisy.values)
