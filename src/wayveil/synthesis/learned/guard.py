"""When to trust the network: its estimate must fit the release no worse than the Bayesian one does.

If an estimate were the truth, |count − estimate| / noise would be 1 on average at every level; an error of e noise units
adds about e²/2. So the average tells, at no cost, which of two estimates lies nearer to the truth where the release can
tell them apart at all. The network's estimate is mixed towards the Bayesian one until it fits.

Privacy: free (post-processing).
"""

from collections.abc import Sequence

import numpy as np

from wayveil.synthesis.field import NoisyLevel
from wayveil.synthesis.pyramid import Field, pool

SHARES = (1.0, 0.75, 0.5, 0.25)
TOLERANCE = 3.0
"""In standard errors of the average misfit of the truth."""
LEAST_WORTH, MOST_WORTH = 1e-4, 10.0
"""Noise units a base cell is worth on average: the range that training covered, and a little more."""


def worth_of_a_cell(levels: Sequence[NoisyLevel], total: float, area: Field) -> float:
    """total · Σ(1 / noise) / cells."""
    return total * sum(1 / level.noise for level in levels) / max(area.sum(), 1.0)


def misfit(levels: Sequence[NoisyLevel], estimate: Field) -> list[float]:
    """(mean |count − estimate| / noise − 1) · √n at each level: near 0 for the truth, larger the farther from it."""
    result = []
    for level in levels:
        away = np.abs(level.counts - pool(estimate, level.side)) / level.noise
        result.append(float((away.mean() - 1) * np.sqrt(away.size)))
    return result


def mix(bayes: Field, learned: Field, share: float) -> Field:
    """bayes^(1 − share) · learned^share, with the same total."""
    if share >= 1.0:
        return learned
    mixed = np.where(bayes > 0, np.maximum(bayes, 1e-300) ** (1 - share) * np.maximum(learned, 1e-300) ** share, 0.0)
    return mixed * (bayes.sum() / max(mixed.sum(), 1e-300))


def trusted_share(levels: Sequence[NoisyLevel], bayes: Field, learned: Field) -> float:
    """The largest share of the network at which no level fits worse than the Bayesian estimate by more than noise."""
    before = misfit(levels, bayes)
    for share in SHARES:
        after = misfit(levels, mix(bayes, learned, share))
        if all(new <= max(old, 0.0) + TOLERANCE for old, new in zip(before, after)):
            return share
    return 0.0
