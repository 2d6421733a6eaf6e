"""When to trust the network: its estimate must explain the release about as well as the Bayesian one does.

There are two steps, both post-processing. First, the network's estimate is the prior mean of the block sums of the
coarsest level, and blocks are scaled halfway to the posterior mean. Second, the log-likelihood of all noisy counts,
−Σ|count − estimate| / noise, is compared with that of the Bayesian estimate; if it is clearly lower, the two are mixed.

The rule was revised after runs on real data, where an earlier version rejected the network too often; its constants
were set on simulated releases only (docs/explanation/model-card.md).

Privacy: free (post-processing).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from wayveil.core.density import NoisyLevel
from wayveil.core.posterior import posterior_mean
from wayveil.core.pyramid import Field, pool, spread


@dataclass(frozen=True)
class GuardSettings:
    """When the network's estimate is used. The values were set on simulated releases only."""

    shares: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25)
    """Shares of the network in the mixture that are tried, the largest first."""
    tolerance_nats: float = 35.0
    """Nats by which the network's likelihood may be lower. On 120 simulated releases where its estimate was better, the
    loss was at most 31."""
    tolerance_nats_per_unit: float = 0.06
    """Further nats for each noise unit of `field_signal`. The loss was at most .04 where the network's estimate was
    better, and .2 to 1.3 for an estimate shifted by three cells."""
    least_signal: float = 1e-4
    """Least mean signal of a base cell, in noise units; the range that training covered."""
    most_signal: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({"occupancy": 7.0, "end_points": 5.5})
    )
    """Largest mean signal, by kind of field, a little above the range of training. On four simulated campuses the
    network was better than Bayes up to this value and worse at 10, which the likelihood does not detect
    (research/training/strong_campus.py)."""
    fewest_units: float = 150.0
    """Least total signal of the end points without a map, in noise units. Below it, the network was better on average
    but worse in 10 of 35 simulated releases; from 300 on it was worse in none of 122. The network for Gaussian noise,
    which was trained with weaker signals, has no such limit."""
    towards_coarse: float = 0.5
    """Power of posterior / estimate by which the blocks of the coarsest level are scaled: halfway."""


GUARD = GuardSettings()


def field_signal(levels: Sequence[NoisyLevel], total: float) -> float:
    """total · Σ(1 / noise): the signal of the whole field in noise units."""
    return total * sum(1 / level.mean_noise for level in levels)


def towards_coarse(levels: Sequence[NoisyLevel], estimate: Field) -> Field:
    """Blocks scaled by (posterior / estimate)^½ at the coarsest level, with the same total."""
    coarse = levels[0]
    mean = pool(estimate, coarse.side)
    posterior = posterior_mean(coarse, mean)
    factor = (
        np.divide(posterior, mean, out=np.ones_like(mean), where=(mean > 0) & (posterior > 0)) ** GUARD.towards_coarse
    )
    moved = estimate * spread(factor, coarse.side, estimate.shape)
    result: Field = moved * (estimate.sum() / max(moved.sum(), 1e-300))
    return result


def log_likelihood(levels: Sequence[NoisyLevel], estimate: Field) -> float:
    """−Σ|count − estimate| / noise over all levels, in nats; for Gaussian noise −Σ((count − estimate) / (2·noise))²."""
    nats = 0.0
    for level in levels:
        misfit = np.abs(level.counts - pool(estimate, level.side)) / level.noise
        nats -= float((misfit**2 / 4 if level.gaussian else misfit).sum())
    return nats


def mix(bayes: Field, learned: Field, share: float) -> Field:
    """bayes^(1 − share) · learned^share, with the same total."""
    if share >= 1.0:
        return learned
    mixed = np.where(bayes > 0, np.maximum(bayes, 1e-300) ** (1 - share) * np.maximum(learned, 1e-300) ** share, 0.0)
    result: Field = mixed * (bayes.sum() / max(mixed.sum(), 1e-300))
    return result


def trusted_share(levels: Sequence[NoisyLevel], bayes: Field, learned: Field) -> float:
    """The largest share of the network in the mixture with about the likelihood of the Bayesian estimate."""
    tolerance = GUARD.tolerance_nats + GUARD.tolerance_nats_per_unit * field_signal(levels, float(bayes.sum()))
    least = log_likelihood(levels, bayes) - tolerance
    for share in GUARD.shares:
        if log_likelihood(levels, mix(bayes, learned, share)) >= least:
            return share
    return 0.0
