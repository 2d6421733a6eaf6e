"""When to trust the network: its estimate must explain the release about as well as the Bayesian one does.

Two steps, both free. First the noisy coarse level has its say: the network's estimate is the prior mean, the posterior
under the known noise moves whole blocks, halfway. Then the log-likelihood of all noisy counts,
−Σ|count − estimate| / noise, is compared with the Bayesian estimate's; where it is clearly lower the two are mixed.

The rule was reworked after runs on real data, where an earlier one stepped back too often; its constants were set on
simulated releases only (docs/explanation/model-card.md).

Privacy: free (post-processing).
"""

from collections.abc import Sequence

import numpy as np

from wayveil.density import NoisyLevel
from wayveil.posterior import posterior_mean
from wayveil.pyramid import Field, pool, spread

SHARES = (1.0, 0.75, 0.5, 0.25)
TOLERANCE_NATS, TOLERANCE_A_UNIT = 35.0, 0.06
"""Nats that the network may lose, and nats for each noise unit that the whole field is worth. On 120 simulated releases
where the second stage was right it lost at most 31 nats or .04 a unit; shifted by three cells .2 to 1.3 a unit."""
LEAST_WORTH = 1e-4
MOST_WORTH = {"occupancy": 7.0, "end_points": 5.5}
"""Noise units a base cell is worth on average: the range that training covered, and a little more. On four simulated
campuses the network was better than Bayes up to here and lost at 10; the likelihood alone does not catch such losses
(research/training/strong_campus.py)."""
FEWEST_UNITS = 150.0
"""Noise units that all end points together must be worth without a map: below, on simulated cities, the network gained
on average but lost in 10 of 35 releases that the likelihood cannot tell apart; from 300 on it lost in none of 122."""
_TOWARDS_COARSE = 0.5


def worth(levels: Sequence[NoisyLevel], total: float) -> float:
    """total · Σ(1 / noise): how many noise units the whole field is worth."""
    return total * sum(1 / level.mean_noise for level in levels)


def towards_coarse(levels: Sequence[NoisyLevel], estimate: Field) -> Field:
    """Blocks scaled by (posterior / estimate)^½ at the coarsest level, with the same total."""
    coarse = levels[0]
    mean = pool(estimate, coarse.side)
    posterior = posterior_mean(coarse.counts, mean, coarse.noise)
    factor = np.divide(posterior, mean, out=np.ones_like(mean), where=(mean > 0) & (posterior > 0)) ** _TOWARDS_COARSE
    moved = estimate * spread(factor, coarse.side, estimate.shape)
    return moved * (estimate.sum() / max(moved.sum(), 1e-300))


def log_likelihood(levels: Sequence[NoisyLevel], estimate: Field) -> float:
    """−Σ|count − estimate| / noise over all levels, in nats."""
    return -sum(float((np.abs(level.counts - pool(estimate, level.side)) / level.noise).sum()) for level in levels)


def mix(bayes: Field, learned: Field, share: float) -> Field:
    """bayes^(1 − share) · learned^share, with the same total."""
    if share >= 1.0:
        return learned
    mixed = np.where(bayes > 0, np.maximum(bayes, 1e-300) ** (1 - share) * np.maximum(learned, 1e-300) ** share, 0.0)
    return mixed * (bayes.sum() / max(mixed.sum(), 1e-300))


def trusted_share(levels: Sequence[NoisyLevel], bayes: Field, learned: Field) -> float:
    """The largest share of the network at which the release is explained about as well as by the Bayesian estimate."""
    tolerance = TOLERANCE_NATS + TOLERANCE_A_UNIT * worth(levels, float(bayes.sum()))
    least = log_likelihood(levels, bayes) - tolerance
    for share in SHARES:
        if log_likelihood(levels, mix(bayes, learned, share)) >= least:
            return share
    return 0.0
