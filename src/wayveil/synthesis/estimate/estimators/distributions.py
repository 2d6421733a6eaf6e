"""The estimator of histograms: merged noisy counts → shares of the finest bins.

Privacy: free (post-processing).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.posterior import posterior_mean
from wayveil.questions import priors
from wayveil.questions.answer import Answer
from wayveil.questions.histogram import Histogram
from wayveil.synthesis.estimate.curves import also_by_log, from_bin_to_bin
from wayveil.synthesis.estimate.durations import estimate_durations
from wayveil.synthesis.estimate.estimates import Distribution
from wayveil.synthesis.estimate.estimators.estimation import Estimation
from wayveil.synthesis.estimate.gap_ratios import estimate_gap_ratio
from wayveil.synthesis.estimate.histogram import estimate_histogram, spread_bins
from wayveil.synthesis.estimate.lengths import NoisyLengths, estimate_lengths
from wayveil.synthesis.estimate.settings import INTERVALS
from wayveil.synthesis.estimate.speeds import estimate_speeds
from wayveil.synthesis.estimate.spikes import with_spikes
from wayveil.synthesis.estimate.weekly import estimate_hours
from wayveil.synthesis.place.sampling import is_steady, roundness, whole_seconds_in

Shares = NDArray[np.float64]


def estimate_distribution(known: Estimation, quantity: str) -> dict[str, Distribution]:
    """Shares of each of the finest bins of the quantity's values, adding up to one."""
    answers = known.answers[quantity]
    question = answers[0].question
    assert isinstance(question, Histogram)
    bins = question.value_bins(known.scope)
    return {quantity: Distribution(bins, _BY_PRIOR[type(question.prior)](answers, bins, question.prior, known))}


def _edges(answer: Answer) -> Shares:
    assert isinstance(answer.question, Histogram)
    return np.asarray(answer.question.bins.edges, float)


def _smooth(answers: list[Answer], bins: Bins, prior: priors.Smooth, known: Estimation) -> Shares:
    (answer,) = answers
    edges, kind = _edges(answer), also_by_log if prior.by_ratios else from_bin_to_bin
    middles = bins.geometric_middles if prior.wide_bins else (edges[1:] + edges[:-1]) / 2
    if prior.related is not None:
        (other,) = known.answers[prior.related]
        shares = estimate_lengths(_lengths(answer, known), _lengths(other, known), middles, known.total, kind)
    else:
        shares = estimate_histogram(answer, middles, known.total, kind, prior.starts_anywhere)
    if prior.wide_bins:
        return shares
    return spread_bins(shares, edges, np.asarray(bins.edges))


def _lengths(answer: Answer, known: Estimation) -> NoisyLengths:
    question = answer.question
    assert isinstance(question, Histogram)
    usual_km = question.prior.usual_part * np.hypot(known.scope.width_m, known.scope.height_m) / 1000
    return NoisyLengths(answer.counts, answer.noise, _edges(answer), usual_km, answer.gaussian)


def _lognormal(answers: list[Answer], bins: Bins, prior: priors.LogNormal, known: Estimation) -> Shares:
    (answer,) = answers
    shares = estimate_speeds(answer, _edges(answer), known.total, prior.long_tails)
    return spread_bins(shares, _edges(answer), np.asarray(bins.edges))


def _cut_durations(answers: list[Answer], bins: Bins, prior: priors.CutDurations, known: Estimation) -> Shares:
    """A smooth distribution from the answer in merged bins, with spikes from the answer in narrow bins."""
    merged, spikes = answers
    edges, wide = np.asarray(bins.edges), _edges(merged)
    group = np.searchsorted(wide, edges[:-1] + 1e-9, side="right") - 1
    durations = estimate_durations(merged.counts, merged.noise, wide, known.total, merged.gaussian)
    smooth = spread_bins(durations, wide, edges)
    return with_spikes(smooth, spikes.counts, spikes.noise, known.count, group)


def _around_median(answers: list[Answer], bins: Bins, prior: priors.AroundMedian, known: Estimation) -> Shares:
    (answer,) = answers
    return estimate_gap_ratio(answer, bins, known.total)


def _round_seconds(answers: list[Answer], bins: Bins, prior: priors.RoundSeconds, known: Estimation) -> Shares:
    """Posterior with a prior like the distribution of mean intervals, concentrated on round numbers of seconds."""
    (answer,) = answers
    mean, ratio = known[prior.mean], known[prior.ratio]
    edges = np.asarray(bins.edges)
    running = np.interp(edges, np.asarray(mean.bins.edges), np.r_[0.0, np.cumsum(mean.shares)])
    usual = np.diff(running) + INTERVALS.unusual_share / len(bins)
    steady = is_steady(ratio)
    usual *= [roundness(whole_seconds_in(low, high), steady).max() for low, high in pairwise(edges)]
    usual /= usual.sum()
    first = np.searchsorted(edges, _edges(answer)[:-1] - INTERVALS.same_edge_s)
    expected = np.add.reduceat(usual, first)
    found = posterior_mean(answer, known.count * expected, groups=1)
    shares = usual * np.repeat(found / expected, np.diff(np.r_[first, len(usual)]))
    return np.asarray(shares / shares.sum())


def _daily_rhythm(answers: list[Answer], bins: Bins, prior: priors.DailyRhythm, known: Estimation) -> Shares:
    (answer,) = answers
    return estimate_hours(answer, known.everyone)


_BY_PRIOR: dict[type, Callable[[list[Answer], Bins, Any, Estimation], Shares]] = {
    priors.Smooth: _smooth,
    priors.LogNormal: _lognormal,
    priors.CutDurations: _cut_durations,
    priors.AroundMedian: _around_median,
    priors.RoundSeconds: _round_seconds,
    priors.DailyRhythm: _daily_rhythm,
}
