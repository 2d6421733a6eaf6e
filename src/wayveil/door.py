"""door: where exact sums become noisy answers, and nowhere else.

`Cost` says what each view may cost; `Door` draws opendp's noise for it and refuses an answer that would cost more.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil import plan
from wayveil.errors import BudgetError, InputError
from wayveil.privacy.budget import Budget
from wayveil.privacy.fixedpoint import LARGEST_SUM, check_overflow
from wayveil.privacy.noise import NoiseSource
from wayveil.privacy.unit import Unit
from wayveil.questions.detail_weights import PARTS
from wayveil.release import Answer
from wayveil.scope import Scope
from wayveil.views.places import OCCUPANCY_RESOLUTION

_MOST_TRAJECTORIES = 1 << 40


@dataclass(frozen=True)
class Cost:
    """What each view may cost: ε_v of pure privacy, or with a δ, ρ_v = ρ·ε_v/ε of zero-concentrated privacy.

    Privacy: free; it says what may be spent and spends nothing itself.
    """

    budget: Budget
    delta: Fraction
    rho: Fraction | None

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction, unit: Unit) -> "Cost":
        """ε (and δ) divided by the plan's shares; refused where the noise would not fit beside the sums."""
        from wayveil.privacy.zcdp import rho_for

        cost = cls(Budget.split(epsilon, plan.SHARES), delta, rho_for(epsilon, delta) if delta else None)
        finest = PARTS * OCCUPANCY_RESOLUTION
        check_overflow(_MOST_TRAJECTORIES, finest)
        # Sixty-four scales of noise must fit beside the sums; beyond that only noise is left anyway.
        if 64 * finest * max(cost.noise(name, unit) for name in cost.budget.shares) >= LARGEST_SUM:
            raise InputError("epsilon is too small for this --max-per-user: only noise would be left; raise it.")
        return cost

    def rho_of(self, name: str) -> Fraction:
        """ρ_v."""
        assert self.rho is not None
        return self.rho * self.budget[name] / self.budget.epsilon

    def noise(self, name: str, unit: Unit) -> float:
        """Scale of the noise in trajectories, c/ε_v; a Gaussian's as the Laplace of equal variance, c/(2·sqrt(ρ_v))."""
        if self.rho is None:
            return unit.sensitivity / float(self.budget[name])
        return unit.sensitivity / (2.0 * math.sqrt(self.rho_of(name)))


@dataclass(frozen=True)
class Door:
    """What every answer needs on its way out; exact sums become noisy answers here and nowhere else.

    The audit sends exact sums through this same door, so that what it judges is what runs.

    Privacy: spends ε_v (or ρ_v) with each `answer`.
    """

    scope: Scope
    cost: Cost
    unit: Unit
    noise: NoiseSource

    def answer(
        self, name: str, sums: NDArray[np.int64], resolution: int, shape: tuple[int, ...], **parameters: Any
    ) -> Answer:
        """Exact sums in, noisy answer out."""
        share = self.cost.budget[name]
        sensitivity = resolution * self.unit.sensitivity
        flat = np.ascontiguousarray(sums, np.int64).ravel()
        if self.cost.rho is None:
            mechanism, noisy = "laplace", self.noise.laplace(flat, sensitivity, share)
            dear = noisy.epsilon_spent > share
        else:
            # ‖x‖₂ ≤ ‖x‖₁, so the L1 bound serves as the L2 bound.
            rho = self.cost.rho_of(name)
            mechanism, noisy = "gaussian", self.noise.gaussian(flat, float(sensitivity), rho)
            dear = noisy.rho_spent > rho
        if dear:
            raise BudgetError(f"'{name}' would cost more than its share; nothing was released.")
        return Answer(name, parameters, shape, resolution, mechanism, noisy.scale, share, noisy.values)

    def signal(self, name: str, count: float) -> float:
        """m̃·ε_v / c: how many noise units one view's whole answer is worth."""
        return max(count, 1.0) / self.cost.noise(name, self.unit)
