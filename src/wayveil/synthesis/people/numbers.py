"""How many trips people make: from the question about it, from the norms of the count, and from the count.

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
from wayveil.synthesis.people.posterior import Models, shapes
from wayveil.synthesis.trips.draw import systematic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_TIMES_USED = 2
"""Maximum number of trips of a person where all trips were counted, divided by `max_per_user`. Noise hides how many
trips the few people make who have more than were used; this keeps them from getting a large part of all trips."""
_OCTAVES = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Scales, in octaves, on either side of the distribution of the number of trips."""
_SPREADS = (0.1, 0.3)
"""Relative standard deviations of the true distribution around a shape."""
_PEOPLE_SD = 0.2
"""Relative standard deviation of the number of people that the count and the best shapes give."""
_DECAY = 4.0
"""Above `max_per_user` trips the shapes fall by a factor of e with every quarter of it."""


@dataclass(frozen=True, eq=False)
class _Observed:
    """A noisy histogram of people by number of trips, or a noisy total; `bin_of` has the bin of each number."""

    noisy: Floats
    sd: float
    bin_of: Integers


def trip_numbers(
    release: Release, answer: Answer | None, totals: Sequence[tuple[float, float]]
) -> tuple[float, Floats]:
    """(number of people, shares of people with 1, 2, … trips); without an answer about all trips, of used trips.

    `totals` are noisy numbers of people with their standard deviations. Numbers have shapes with one peak on the log
    scale; the count and the mean of a shape give the number of people. Each shape is weighted by how well it explains
    what was observed.
    """
    most = release.max_per_user
    number = np.arange(1, most * (1 if answer is None else MOST_TIMES_USED) + 1)
    used = np.minimum(number, most)
    log_edges = np.log2(np.r_[number - 0.5, number[-1] + 0.5])
    bank = shapes(log_edges, np.arange(0.0, log_edges[-1], 1 / 8), _OCTAVES)
    bank = bank * np.exp(-(number - used) * _DECAY / most)
    bank /= bank.sum(axis=1, keepdims=True)
    count = max(float(release["count"].counts.sum()), 1.0)
    people, observed = count / (bank @ used), _observed(release, answer, number, used)
    weight = np.zeros(len(bank))
    for one in observed:
        weight += _models(one, bank).estimate(one.noisy, one.sd, people)[1]
    chance = np.exp(weight - weight.max())
    chance /= chance.sum()
    whole = _combined([(float(chance @ people), _PEOPLE_SD * float(chance @ people)), *totals])
    result = np.asarray(chance @ bank)
    for one in observed:
        counts, _ = _models(one, result[None]).estimate(one.noisy, one.sd, whole)
        expected = np.bincount(one.bin_of, weights=result, minlength=len(counts))
        result = result * (counts / np.maximum(expected, 1e-300))[one.bin_of]
        result = _with_mean(result / result.sum(), used, count / whole)
    return whole, result


def _combined(found: Sequence[tuple[float, float]]) -> float:
    """The mean of values with these standard deviations, weighted by their precision; at least one."""
    weight = np.array([1 / sd**2 for _, sd in found])
    return max(float(weight @ [value for value, _ in found] / weight.sum()), 1.0)


def _models(observed: _Observed, shares: Floats) -> Models:
    """Distributions of the number of trips, as models of an observed histogram."""
    bins = [np.bincount(observed.bin_of, weights=row, minlength=len(observed.noisy)) for row in shares]
    return Models(np.array(bins), np.full(len(bins), 1 / len(bins)), _SPREADS, smooth=True)


def _with_mean(shares: Floats, values: Integers, mean: float) -> Floats:
    """The shares p·exp(t·value), normalised, with t such that the mean value is as given, where that is possible."""
    low, high = -1.0, 1.0
    for _ in range(40):
        t = (low + high) / 2
        tilted = shares * np.exp(t * (values - float(values.max()) * (t > 0)))
        tilted /= tilted.sum()
        low, high = (t, high) if tilted @ values < mean else (low, t)
    return np.asarray(tilted)


def _observed(release: Release, answer: Answer | None, number: Integers, used: Integers) -> list[_Observed]:
    clipping, found = release["count"].clipping, []
    if clipping is not None and clipping.norms is not None and clipping.norms_scale is not None:
        edges = NormBins(release.max_per_user, whole=True).edges
        bins = np.searchsorted(edges, used, side="left") - 1
        found.append(_Observed(clipping.norms.astype(float), clipping.norms_scale, bins))
    if answer is not None:
        found.append(_Observed(answer.counts, answer.noise * np.sqrt(2), TRIPS.index(number.astype(np.float64))))
    return found


def draw_numbers(shares: Floats, count: int, people: int, random: np.random.Generator) -> Integers:
    """Numbers of trips of people, drawn from the shares and adjusted in steps of one until they add up to `count`."""
    drawn = random.permutation(systematic(shares, people, random)) + 1
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
