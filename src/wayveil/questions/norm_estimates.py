"""Estimates of the norms of units from their noisy histogram, and the best clipping bound for them.

Privacy: free (post-processing).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.norms import SETTINGS, NormBins
from wayveil.questions.question import Question

Floats = NDArray[np.float64]

_MIN_UNCLIPPED = 0.05
"""Minimum share of the units that the bound leaves unclipped."""
_MIN_KEPT = 0.01
"""Minimum estimate of the share that clipping leaves."""
_MODEL_SD = 0.3
"""Relative standard deviation of the true histogram around the fitted shape."""
_SPREADS = (0.1, 0.4, 1.2)
"""Candidate scales, in octaves, for each side of the distribution of norms."""
_OWN_OCTAVES, _SHARED_OCTAVES = 1.0, 1.0
"""Standard deviations, in octaves, of the guesses `own_norm` and `shared_norm`."""
_NUMBER_SD = 0.3
"""Relative standard deviation of the number of units, where it is known from another answer."""


@dataclass(frozen=True, eq=False)
class Norms:
    """Estimated number of units by norm, from the noisy histogram and public guesses.

    Privacy: free (post-processing).
    """

    bins: NormBins
    units: Floats
    """Expected number of units in each bin."""
    mass: Floats
    """Expected number of trajectories of these units."""

    def kept(self, bound: float) -> float:
        """Share of the total that clipping leaves."""
        left = np.minimum(bound / self.bins.middles, 1.0)
        left[self.bins.edges[1:] <= bound * (1 + 1e-9)] = 1.0
        return float(np.clip(self.mass @ left / self.mass.sum(), _MIN_KEPT, 1.0))

    def best_bound(self, noise: float, bias: float) -> float:
        """The edge B with the least (noise·B/kept)² + (bias·(1 − kept))², in trajectories.

        Parameters
        ----------
        noise
            L2 norm of the noise on all values for a bound of 1, as a share of the number of trajectories.
        bias
            Error from clipping, as a share of the clipped amount: dividing by the share kept overweights units that
            were not clipped.
        """
        least = self.quantile(_MIN_UNCLIPPED)  # with a lower bound, signal and noise shrink in the same proportion
        edges = self.bins.edges[1:][self.bins.edges[1:] >= least]
        kept = np.array([self.kept(edge) for edge in edges])
        return float(edges[int(np.argmin((noise * edges / kept) ** 2 + (bias * (1 - kept)) ** 2))])

    def quantile(self, share: float) -> float:
        """The edge below which at least this share of the units lies, in trajectories."""
        running = np.cumsum(self.units) / self.units.sum()
        return float(self.bins.edges[1 + int(np.searchsorted(running, share - 1e-9))])


@dataclass(frozen=True, eq=False)
class Noisy:
    """A noisy histogram and the standard deviation of its noise."""

    counts: NDArray[np.int64]
    sd: float


def trajectories_per_unit(bins: NormBins, noisy: Noisy) -> Norms:
    """Number of units by number of trajectories, with asymmetric Laplace distributions of the logarithm as shapes.

    Privacy: free (post-processing).
    """
    log_edges = np.log2(bins.edges)
    centres = np.arange(log_edges[0] - 1, log_edges[-1] + 1 / 8, 1 / 8)
    centre, left, right = (grid.ravel() for grid in np.meshgrid(centres, _SPREADS, _SPREADS, indexing="ij"))
    shares = _laplace_shares(log_edges, centre, left, right)
    units = _posterior(noisy, shares, np.zeros(len(shares)), None)
    return Norms(bins, units, units * bins.middles)


def one_trajectory_each(units: float) -> Norms:
    """The number of trajectories per unit if the unit is a trajectory: always one."""
    bins, number = NormBins(1, whole=True), np.array([max(units, 1.0)])
    return Norms(bins, number, number)


def estimate_norms(question: Question, bins: NormBins, noisy: Noisy, per_unit: Norms, centred: bool = False) -> Norms:
    """The norms of a question, around sqrt(k·a + k·(k − 1)·b) for units of k trajectories.

    `own_norm` a and `shared_norm` b are guesses, which the noisy histogram corrects: the clearer its signal, the more.
    If units are clipped around a centre (`centred`), b is smaller.

    Privacy: free (post-processing).
    """
    log_edges, known = np.log2(bins.edges), per_unit.units > 0
    k, weight = per_unit.bins.middles[known], per_unit.units[known] / per_unit.units.sum()
    factors = 2.0 ** np.arange(-3, 3.01, 0.25)
    own, shared, left, right = (
        grid.ravel()
        for grid in np.meshgrid(
            [1.0] if question.one_hot and not centred else factors,
            [1.0] if k.max() <= 1 else factors,
            _SPREADS if k.max() <= 1 else _SPREADS[:2],
            _SPREADS if k.max() <= 1 else _SPREADS[:2],
            indexing="ij",
        )
    )
    in_common = question.shared_norm * (SETTINGS.left if centred else 1.0)
    squared = np.outer(own, k * question.own_norm) + np.outer(shared, k * (k - 1) * in_common)
    centre = np.log2(np.clip(np.sqrt(squared), bins.edges[0], np.maximum(k, bins.edges[0])))
    # Axes: shapes, numbers of trajectories per unit, bins.
    joint = weight[:, None] * np.stack(
        [_laplace_shares(log_edges, centre[:, i], left, right) for i in range(len(k))], axis=1
    )
    shares = joint.sum(axis=1)
    prior = -((np.log2(own) / _OWN_OCTAVES) ** 2 + (np.log2(shared) / _SHARED_OCTAVES) ** 2) / 2
    units, of_shape = _posterior_with_weights(noisy, shares, prior, float(per_unit.units.sum()))
    mass = np.einsum("s,skb,k->b", of_shape, joint, k) / np.maximum(of_shape @ shares, 1e-300)
    return Norms(bins, units, units * mass)


def _posterior(noisy: Noisy, shares: Floats, prior: Floats, number: float | None) -> Floats:
    return _posterior_with_weights(noisy, shares, prior, number)[0]


def _posterior_with_weights(
    noisy: Noisy, shares: Floats, prior: Floats, expected: float | None
) -> tuple[Floats, Floats]:
    """The posterior mean number of units in each bin, and the posterior weight of each shape.

    A residual that no shape explains is kept in proportion to its variance in excess of the noise. `expected` is a
    prior estimate of the number of units, if there is one.
    """
    known, trust = (0.0, 0.0) if expected is None else (expected, 1 / (_NUMBER_SD * expected) ** 2)
    precision = (shares**2).sum(axis=1) / noisy.sd**2 + trust
    number = np.maximum((shares @ noisy.counts / noisy.sd**2 + known * trust) / precision, 1.0)
    misfit = ((noisy.counts - number[:, None] * shares) ** 2).sum(axis=1) / noisy.sd**2 + trust * (number - known) ** 2
    score = prior - (misfit + np.log(precision)) / 2
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    found = number[:, None] * shares
    mean = weight @ found
    # Four standard errors above the mean square of the noise: noise alone hardly ever exceeds that.
    noise_bound = noisy.sd**2 * (1 + 4 * math.sqrt(2 / len(mean)))
    unexplained = max(float(((noisy.counts - mean) ** 2).mean()) - noise_bound, 0.0)
    variance = weight @ (found - mean) ** 2 + (_MODEL_SD * mean) ** 2 + unexplained
    units = np.maximum(mean + (noisy.counts - mean) * variance / (variance + noisy.sd**2), 0.0)
    return (units if units.sum() >= 1 else np.maximum(mean, 1e-9)), weight


def _laplace_shares(log_edges: Floats, centre: Floats, left: Floats, right: Floats) -> Floats:
    """Shares of the bins under asymmetric Laplace distributions, one per row; the outer bins include the tails."""
    left, right = left[:, None], right[:, None]
    away = log_edges[None, 1:-1] - centre[:, None]
    running = np.where(
        away < 0,
        left * np.exp(np.minimum(away, 0) / left),
        left - right * np.expm1(-np.maximum(away, 0) / right),
    ) / (left + right)
    result: Floats = np.diff(running, axis=1, prepend=0.0, append=1.0)
    return result
