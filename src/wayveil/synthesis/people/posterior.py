"""Estimates of small tables from noisy counts: averages over models, each weighted by how well it explains the answer.

A model says which counts are expected and how far the true ones may be from them. The first one is that trips belong to
people at random; its prior probability is one half. The noise is known, so an answer that this model explains about as
well as any other leaves the expected counts of random trips nearly as they are.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SPREADS = (0.0, 0.1, 0.3, 1.0, 3.0)
"""Standard deviations of true counts around those of a model, relative to the mean count. The variance is proportional
to the expected count plus the mean count."""
AS_EXPECTED = 0.5
"""Prior probability that a table is exactly as expected."""
SCALES = (0.15, 0.5, 1.5, 4.0)
"""Scales, in bins, on either side of the centre of a shape."""


@dataclass(frozen=True, eq=False)
class Observed:
    """A noisy table, and what each of several hypotheses expects."""

    noisy: Floats
    sd: float
    expected: Floats
    """(hypotheses, bins) counts."""
    ordered: bool = False
    """Whether bins are in order, so that shapes with one peak are models, too."""


def jointly(tables: Sequence[Observed], prior: Floats) -> list[Floats]:
    """The posterior mean of the counts of each table, if the same hypothesis holds for all of them.

    Given a hypothesis, a table is as expected with probability one half. Otherwise it differs from what is expected, or
    where bins are ordered from a shape, by independent amounts. Every table has the sum that is expected.
    """
    found = [_given(table) for table in tables]
    log_weight = np.log(prior) + sum(log_evidence for log_evidence, _ in found)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    totals = [max(float(weight @ table.expected.sum(axis=1)), 0.0) for table in tables]
    return [projected(weight @ mean, total) for (_, mean), total in zip(found, totals)]


def posterior_mean(expected: Floats, noisy: Floats, sd: float, first: float) -> Floats:
    """The mean of the counts over models that expect these counts (a row per model).

    `first` is the prior probability that they are exactly as the first model expects.
    """
    fit, mean = _fits(expected, noisy, sd)
    prior = np.full(fit.shape, (1 - first) / (fit.size - 1))
    prior[0, 0] = first
    weight = prior * np.exp(fit - fit.max())
    return np.asarray(np.einsum("ms,msk->k", weight, mean) / weight.sum())


def _given(table: Observed) -> tuple[Floats, Floats]:
    """Of each hypothesis: the log evidence of the table, and the posterior mean of its counts."""
    expected, bins = table.expected, table.expected.shape[1]
    fit, mean = _fits(expected, table.noisy, table.sd)
    others = (1 - AS_EXPECTED) / (2 if table.ordered else 1)
    fit = fit + np.log(np.r_[AS_EXPECTED, np.full(len(SPREADS) - 1, others / (len(SPREADS) - 1))])
    of_shapes, mean_of_shapes = np.zeros((0, len(SPREADS))), np.zeros((0, len(SPREADS), bins))
    if table.ordered:
        bank = shapes(np.arange(bins + 1.0) - 0.5, np.arange(-0.5, bins, 0.5), SCALES)
        of_shapes, mean_of_shapes = _fits(bank * max(float(expected.sum(axis=1).mean()), 0.0), table.noisy, table.sd)
        of_shapes = of_shapes + np.log(others / of_shapes.size)
    fit = np.hstack([fit, np.broadcast_to(of_shapes.ravel(), (len(fit), of_shapes.size))])
    most = fit.max(axis=1, keepdims=True)
    weight = np.exp(fit - most)
    whole = weight.sum(axis=1, keepdims=True)
    own, of_bank = np.split(weight / whole, [len(SPREADS)], axis=1)
    result = np.einsum("ms,msk->mk", own, mean) + of_bank @ mean_of_shapes.reshape(-1, bins)
    return np.asarray((most + np.log(whole))[:, 0]), np.asarray(result)


def _fits(expected: Floats, noisy: Floats, sd: float) -> tuple[Floats, Floats]:
    """The log likelihood (models, spreads) of each model with each spread, and the posterior mean of the counts."""
    mean = expected[:, None, :]
    average = mean.mean(axis=2, keepdims=True)
    variance = np.square(SPREADS)[None, :, None] * (mean + average) * average
    whole, left = np.square(sd) + variance, noisy - mean
    return -0.5 * (left**2 / whole + np.log(whole)).sum(axis=2), mean + left * variance / whole


def shapes(edges: Floats, centres: Floats, scales: tuple[float, ...]) -> Floats:
    """Shares in bins of asymmetric Laplace distributions; the first and the last bin take the tails."""
    centre, left, right = (grid.ravel()[:, None] for grid in np.meshgrid(centres, scales, scales, indexing="ij"))
    apart = np.asarray(edges)[None, 1:-1] - centre
    below = left / (left + right) * np.exp(np.minimum(apart, 0.0) / left)
    above = right / (left + right) * np.exp(-np.maximum(apart, 0.0) / right)
    running = np.where(apart < 0, below, 1 - above)
    return np.asarray(np.diff(running, axis=1, prepend=0.0, append=1.0))


def projected(values: Floats, total: float) -> Floats:
    """The nearest values that are not negative and add up to `total`: max(y − λ, 0)."""
    order = np.sort(values)[::-1]
    running = (np.cumsum(order) - total) / np.arange(1, len(order) + 1)
    last = int(np.flatnonzero(order > running)[-1]) if total > 0 else 0
    return np.asarray(np.maximum(values - running[last], 0.0))
