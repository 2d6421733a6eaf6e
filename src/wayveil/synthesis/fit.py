"""fit: weights of the candidates, by descent on the noise-weighted misfit.

    min over w   Σ_v Σ_k (m̃·(F_v w)_k − ŷ_vk)² / (2 σ_vk²)  +  κ·m̃·KL(w ‖ uniform)  +  Σ_j μ_j ⟨w, P_j⟩

ŷ is the estimate of view v's answer, σ² its noise variance plus the sampling variance of a count, P_j the penalty of
rule j. Descent runs on log w (mirror descent), each bin preconditioned by its own curvature: the step is
log(ŷ / m̃Fw) times the trust ŷ / (ŷ + σ²_noise), so a bin drowned in noise moves nothing.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 40
_HEAVIEST = 2.5
_LIGHTEST = -4.0
_PULL_BACK = 0.02
"""κ in units of a step: how much of each log-weight is forgotten a round."""


@dataclass(frozen=True, eq=False)
class HardView:
    """Each candidate is in one bin."""

    name: str
    bin_of: NDArray[np.int64]
    target: NDArray[np.float64]
    noise: float
    step: float

    def shares(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.bincount(self.bin_of, weight, minlength=len(self.target)), np.float64)

    def back(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        return change[self.bin_of]

    def factor(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """exp(back(change)), by an exponential a bin instead of one a candidate."""
        return np.exp(change)[self.bin_of]


@dataclass(frozen=True, eq=False)
class SoftView:
    """Each candidate is spread over several bins: a sparse matrix with rows that add up to one."""

    name: str
    features: Any
    target: NDArray[np.float64]
    noise: float
    step: float

    def shares(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.features.T @ weight)

    def back(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.features @ change)

    def factor(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """exp(back(change))."""
        return np.exp(self.back(change))


@dataclass(frozen=True, eq=False)
class Fit:
    """Weights that add up to one, and how well they fit."""

    weight: NDArray[np.float64]
    loss: dict[str, float]
    """Mean over a view's bins of misfit² / σ²: about one is as good as the noise allows."""
    effective_sample_share: float


def fit_weights(
    views: Sequence[HardView | SoftView], count: float, candidates: int, forbidden: NDArray[np.bool_] | None = None
) -> Fit:
    """Weights for the candidates; `forbidden` ones (a rule's penalty is positive) get none while others are left.

    A violated rule costs μ⟨w, P⟩ with μ as large as it takes, which in the limit is weight zero.
    """
    log_weight = np.zeros(candidates)
    barred = np.ones(candidates)
    if forbidden is not None and forbidden.any() and not forbidden.all():
        barred[forbidden] = np.exp(-60.0)
    weight = barred / barred.sum()
    for _ in range(_ROUNDS):
        for view in views:
            change = view.step * _wanted_change(view, weight, count)
            log_weight += view.back(change)
            # The same step on the weights themselves.
            weight *= view.factor(change)
            weight /= weight.sum()
        log_weight *= 1 - _PULL_BACK
        plain = np.exp(log_weight)
        log_weight -= np.log(plain.mean())
        np.clip(log_weight, _LIGHTEST, _HEAVIEST, out=log_weight)
        weight = np.clip(plain / plain.mean(), np.exp(_LIGHTEST), np.exp(_HEAVIEST))
        weight *= barred
        weight /= weight.sum()
    loss = {view.name: _loss(view, weight, count) for view in views}
    return Fit(weight, loss, float(1 / (weight**2).sum() / candidates))


def _wanted_change(view: HardView | SoftView, weight: NDArray[np.float64], count: float) -> NDArray[np.float64]:
    floor = 1e-6
    ratio = np.log((view.target + floor) / (view.shares(weight) + floor))
    expected = count * view.target
    # The estimate has already been shrunk; what is left of the noise after smoothing is about a tenth of its variance.
    trust = expected / (expected + 0.2 * view.noise**2 / max(expected.mean(), 1e-12) + 1e-12)
    return np.clip(ratio, -1.0, 1.0) * trust


def _loss(view: HardView | SoftView, weight: NDArray[np.float64], count: float) -> float:
    expected = count * view.target
    misfit = count * view.shares(weight) - expected
    return float(np.mean(misfit**2 / (2 * view.noise**2 + expected + 1e-9)))
