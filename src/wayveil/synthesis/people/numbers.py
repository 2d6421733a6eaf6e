"""How many trips people make: from the question about it, from the norms of the count, and from the count.

The distribution of the number of trips is a shape with one peak on the log scale, or differs from such a shape by
independent factors. All observations are linear in the numbers of people with each number of trips and have Gaussian
noise of known size, so the posterior of the number of people and of the factors is known for each shape. The result is
the mean over shapes, weighted by how well they explain all observations together.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.answer import Answer
from wayveil.questions.norms import NormBins
from wayveil.questions.people.rhythm import TRIPS
from wayveil.release import Release
from wayveil.synthesis.people.posterior import shapes
from wayveil.synthesis.trips.draw import stratified

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_TIMES_USED = 2
"""Limit on the number of trips of a person, as a multiple of `max_per_user`, where all trips were counted. Noise hides
how many trips the few people above `max_per_user` make; the limit keeps them from getting a large part of all trips."""
_OCTAVES = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Scales, in octaves, on either side of the distribution of the number of trips."""
_SPREADS = (0.0, 0.3, 1.0)
"""Standard deviations of the factors by which numbers of people differ from a shape."""
_DECAY = 2.0
"""Above `max_per_user` trips, shapes fall by a factor of e for every `max_per_user` / 2 trips."""


@dataclass(frozen=True, eq=False)
class _Observed:
    """Noisy values, divided by their standard deviations, and what one person with each number of trips adds to them.

    People with numbers of trips in the same group add the same, except to the count.
    """

    values: Floats
    of_number: Floats
    """(values, numbers of trips)."""
    group: Integers
    """Group of each number of trips."""


def trip_numbers(
    release: Release, answer: Answer | None, totals: Sequence[tuple[float, float]]
) -> tuple[float, Floats]:
    """(number of people, shares of people with 1, 2, … trips); without `answer`, at most `max_per_user` trips each.

    `totals` are noisy numbers of people with their standard deviations, from other answers.
    """
    most = release.max_per_user
    number = np.arange(1, most * (1 if answer is None else MOST_TIMES_USED) + 1)
    log_edges = np.log2(np.r_[number - 0.5, number[-1] + 0.5])
    bank = shapes(log_edges, np.arange(0.0, log_edges[-1], 1 / 4), _OCTAVES)
    bank = bank * np.exp(-np.maximum(number - most, 0) * _DECAY / most)
    bank /= bank.sum(axis=1, keepdims=True)
    observed = _observed(release, answer, number, totals)
    found = [_posterior(observed, bank, spread) for spread in _SPREADS]
    log_weight = np.concatenate([log_evidence for log_evidence, _ in found])
    weight = np.exp(log_weight - log_weight.max())
    people = weight @ np.concatenate([people for _, people in found]) / weight.sum()
    return max(float(people.sum()), 1.0), people / people.sum()


def _posterior(observed: _Observed, bank: Floats, spread: float) -> tuple[Floats, Floats]:
    """For each shape: its log evidence, and the mean number of people with each number of trips.

    The number of people has a flat prior on the log scale. Its first estimate determines how much variance the factors
    add.
    """
    expected = bank @ observed.of_number.T
    first = np.maximum(expected @ observed.values / (expected**2).sum(axis=1), 1.0)
    member = np.eye(int(observed.group.max()) + 1)[observed.group]
    of_factor = np.einsum("on,sn,ng->sog", observed.of_number, bank, member, optimize=True)
    of_factor *= (spread * first)[:, None, None]
    covariance = np.eye(len(observed.values)) + of_factor @ of_factor.transpose(0, 2, 1)
    sides = np.stack([np.broadcast_to(observed.values, expected.shape), expected], axis=2)
    inverse = np.linalg.solve(covariance, sides)
    precision = (expected * inverse[..., 1]).sum(axis=1)
    people = np.maximum(inverse[..., 1] @ observed.values / precision, 1.0)
    misfit = inverse[..., 0] @ observed.values - people**2 * precision
    log_evidence = -0.5 * (np.linalg.slogdet(covariance)[1] + misfit + np.log(precision)) - np.log(people)
    residual = inverse[..., 0] - people[:, None] * inverse[..., 1]
    factors = 1 + spread * np.einsum("sog,so->sg", of_factor, residual)
    return log_evidence, people[:, None] * bank * np.maximum(factors, 0.0)[:, observed.group]


def _observed(
    release: Release, answer: Answer | None, number: Integers, totals: Sequence[tuple[float, float]]
) -> _Observed:
    """The count, the numbers of people, and the histograms of their numbers of trips."""
    count, most = release["count"], release.max_per_user
    used, clipping = np.minimum(number, most), count.clipping
    added = used if clipping is None else np.minimum(used, clipping.bound / clipping.resolution)
    kept = 1.0 if clipping is None else clipping.kept
    seen: list[tuple[Floats, float, Floats]] = [
        (count.counts.ravel() * kept, count.noise * np.sqrt(2) * kept, np.asarray(added, np.float64)[None])
    ]
    seen += [(np.array([people]), sd, np.ones((1, len(number)))) for people, sd in totals]
    bins = [np.zeros(len(number), np.int64)]
    if clipping is not None and clipping.norms is not None and clipping.norms_scale is not None:
        bins.append(np.searchsorted(NormBins(most, whole=True).edges, used, side="left") - 1)
        seen.append((clipping.norms.astype(np.float64), clipping.norms_scale, _inside(bins[-1], len(clipping.norms))))
    if answer is not None:
        bins.append(TRIPS.index(number.astype(np.float64)))
        seen.append((answer.counts, answer.noise * np.sqrt(2), _inside(bins[-1], len(answer.counts))))
    values, rows = (np.concatenate([one[k] / one[1] for one in seen]) for k in (0, 2))
    return _Observed(values, rows, np.unique(np.stack(bins), axis=1, return_inverse=True)[1].ravel())


def _inside(bin_of: Integers, bins: int) -> Floats:
    """(bins, values): 1 where the value is in the bin."""
    return np.asarray(np.equal.outer(np.arange(bins), bin_of), np.float64)


def draw_numbers(shares: Floats, count: int, people: int, random: np.random.Generator) -> Integers:
    """Numbers of trips of people, drawn from the shares and adjusted in steps of one until they add up to `count`."""
    drawn = random.permutation(stratified(shares, people, random)) + 1
    most = len(shares)
    while (left := count - int(drawn.sum())) != 0:
        step = 1 if left > 0 else -1
        able = np.flatnonzero(drawn < max(most, count)) if step > 0 else np.flatnonzero(drawn > 1)
        if step > 0 and (within := able[drawn[able] < most]).size:
            able = within
        chance = drawn[able] / drawn[able].sum()
        some = random.choice(able, min(abs(left), len(able)), replace=False, p=chance)
        drawn[some] += step
    return np.asarray(drawn, np.int64)
