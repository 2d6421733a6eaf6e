"""Weights of the candidates, by mirror descent on the squared misfit divided by its variance.

    min over w   Σ_v Σ_k (m̃·(F_v w)_k − ŷ_vk)² / (2 σ_vk²)  +  κ·m̃·KL(w ‖ uniform)  +  Σ_j μ_j ⟨w, P_j⟩

ŷ is the estimate of view v's answer, σ² its noise variance plus the sampling variance of a count, P_j the penalty of
rule j. The descent is on log w (mirror descent), and each bin is preconditioned by its own curvature: the step is log(ŷ
/ m̃Fw) times the trust ŷ / (ŷ + σ²_noise), so a bin dominated by noise has no effect. Without noise this is raking.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.fit.settings import FIT


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

    def of_candidates(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """The change of each candidate, given that of each bin."""
        return change[self.bin_of]

    def factor(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """exp(of_candidates(change)), with one exponential per bin instead of one per candidate."""
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

    def of_candidates(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """The change of each candidate, given that of each bin."""
        return np.asarray(self.features @ change)

    def factor(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """exp(of_candidates(change))."""
        return np.exp(self.of_candidates(change))


@dataclass(frozen=True, eq=False)
class Fit:
    """Weights that add up to one, and how well they fit."""

    weight: NDArray[np.float64]
    loss: dict[str, float]
    """Mean over a view's bins of misfit² / σ²; about one means that the misfit is of the size of the noise."""
    effective_sample_share: float
    """1 / Σ weight², as a share of the number of candidates."""


def fit_weights(
    views: Sequence[HardView | SoftView], count: float, candidates: int, forbidden: NDArray[np.bool_] | None = None
) -> Fit:
    """Weights for the candidates; `forbidden` ones (with a positive penalty of a rule) get a negligible weight.

    This approximates the limit of the penalty μ⟨w, P⟩ for large μ. If all candidates are forbidden, it is not applied.
    """
    log_weight = np.zeros(candidates)
    prior_weight = np.ones(candidates)
    if forbidden is not None and forbidden.any() and not forbidden.all():
        prior_weight[forbidden] = np.exp(FIT.forbidden_log_weight)
    weight = prior_weight / prior_weight.sum()
    for _ in range(FIT.rounds):
        for view in views:
            change = view.step * _log_step(view, weight, count)
            log_weight += view.of_candidates(change)
            # The same step, computed on the weights instead of their logarithms.
            weight *= view.factor(change)
            weight /= weight.sum()
        log_weight *= 1 - FIT.pull_back
        plain = np.exp(log_weight)
        log_weight -= np.log(plain.mean())
        np.clip(log_weight, *FIT.log_weight_bounds, out=log_weight)
        weight = np.clip(plain / plain.mean(), *np.exp(FIT.log_weight_bounds))
        weight *= prior_weight
        weight /= weight.sum()
    loss = {view.name: _loss(view, weight, count) for view in views}
    return Fit(weight, loss, float(1 / (weight**2).sum() / candidates))


def _log_step(view: HardView | SoftView, weight: NDArray[np.float64], count: float) -> NDArray[np.float64]:
    ratio = np.log((view.target + FIT.floor) / (view.shares(weight) + FIT.floor))
    expected = count * view.target
    trust = expected / (expected + FIT.noise_left * view.noise**2 / max(expected.mean(), 1e-12) + 1e-12)
    result: NDArray[np.float64] = np.clip(ratio, -FIT.most_log_ratio, FIT.most_log_ratio) * trust
    return result


def _loss(view: HardView | SoftView, weight: NDArray[np.float64], count: float) -> float:
    expected = count * view.target
    misfit = count * view.shares(weight) - expected
    return float(np.mean(misfit**2 / (2 * view.noise**2 + expected + 1e-9)))
