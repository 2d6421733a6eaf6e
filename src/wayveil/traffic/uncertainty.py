"""How uncertain a figure is: noise of the release, what the prior leaves open, and the number of synthetic trips.

Every figure rests on several answers of the release and on a prior. Each alone would predict it with a variance: that of
its noise, plus that of dividing a coarse answer into the parts that the figure needs. Predictions are combined by their
precision, 1/v = Σ 1/v_k, so a release of noise leaves the wide spread of the prior. The error of the number of trips, the
sampling of synthetic trips and an error of the model that no ε removes are added.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.answer import Answer
from wayveil.questions.histogram import Histogram
from wayveil.release import Release
from wayveil.release.number import estimate_number
from wayveil.traffic.trips import Asked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SURE = 0.90
"""Probability with which the true figure lies between `low_90` and `high_90`."""


@dataclass(frozen=True)
class Spreads:
    """Relative standard deviations that no answer of the release tells.

    They were chosen on the embedded city, so that about nine tenths of the true figures lie within the stated intervals
    (research/benchmarks/table_coverage.py).
    """

    place: float = 1.2
    """Of the traffic of a zone or street, given the prior alone."""
    pair: float = 0.5
    """Of the trips between two zones, given the trips of each zone."""
    place_hour: float = 0.25
    """Of the part of the day in one place, given that of all trips, where the release has hours of regions."""
    place_hour_unknown: float = 0.45
    """The same where it has none."""
    histogram: float = 1.0
    """Of a bin of lengths, durations or hours, given the prior alone."""
    within: float = 0.45
    """Of a part of a block or region, given the whole."""
    zone_model: float = 0.06
    pair_model: float = 0.15
    street_model: float = 0.35
    histogram_model: float = 0.05
    """Of zones, pairs of zones, streets and bins, with a release without noise."""
    speed: float = 0.5
    """Of the mean speed on a link, given the prior alone."""
    speed_model: float = 0.15
    trip_speed: float = 0.4
    """Of the speeds of single trips on one link."""


SPREADS = Spreads()


@dataclass(frozen=True)
class Scale:
    """From synthetic trips to trips of the private data."""

    number: float
    """Estimated number of trips."""
    number_sd: float
    synthetic: int

    @classmethod
    def of(cls, release: Release, synthetic: int) -> "Scale":
        """The scale of a synthetic file with that many trips."""
        found = estimate_number(release)
        return cls(found.value, found.sd, synthetic)

    @property
    def weight(self) -> float:
        """Trips of the private data for each synthetic trip."""
        return self.number / max(self.synthetic, 1)

    @property
    def relative_sd(self) -> float:
        """Of the number of trips."""
        return self.number_sd / max(self.number, 1e-9)


@dataclass(frozen=True, eq=False)
class Figures:
    """Estimated counts with their standard deviations and 90 % intervals."""

    value: Floats
    sd: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, count: Floats, relative: Floats, scale: Scale) -> "Figures":
        """Scaled figures from synthetic counts and their relative variances.

        The error of the number of trips and the sampling error are added. An empty figure may hold about as much as one
        synthetic trip. The interval is that of a gamma distribution with this mean and standard deviation.
        """
        value = scale.weight * np.asarray(count, float)
        least = np.maximum(value, scale.weight)
        variance = (relative + scale.relative_sd**2) * least**2 + scale.weight * least
        return cls(value, np.sqrt(variance), *interval(value, least, variance))


def interval(value: Floats, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Ends of the interval of a gamma distribution; it always contains the value."""
    from scipy.stats import gamma

    shape, scale = mean**2 / variance, variance / mean
    low, high = (gamma.ppf(tail, shape, scale=scale) for tail in ((1 - SURE) / 2, (1 + SURE) / 2))
    return np.minimum(np.where(value > 0, low, 0.0), value), np.maximum(high, value)


def combined(*variances: Floats | float) -> Floats:
    """1/v = Σ 1/v_k: independent predictions of the same figure."""
    return np.asarray(1 / sum(1 / np.maximum(np.asarray(one, float), 1e-12) for one in variances))


def noise_variance(answer: Answer) -> float:
    """Variance of the noise of one value of an answer, in trajectories."""
    return 2 * answer.noise**2


@dataclass(frozen=True, eq=False)
class Shares:
    """How much of each block (cell, region, pair of regions) belongs to each figure.

    One entry for each figure and block that have synthetic trips in common.
    """

    figure: Ints
    block: Ints
    count: Floats
    """Synthetic trips that they have in common."""
    share: Floats
    """The same as a share of the block's trips."""
    figures: int

    @classmethod
    def of(cls, figure: Ints, block: Ints, weight: Floats, figures: int) -> "Shares":
        """From the figure and the block of each synthetic trip, with its weight."""
        blocks = int(block.max(initial=-1)) + 1
        both, index = np.unique(figure * max(blocks, 1) + block, return_inverse=True)
        count = np.bincount(index, weight, minlength=len(both))
        whole = np.bincount(block, weight, minlength=max(blocks, 1))
        owner, own_block = both // max(blocks, 1), both % max(blocks, 1)
        return cls(owner, own_block, count, count / np.maximum(whole[own_block], 1e-12), figures)

    def relative_variance(self, noise: float | Floats, scale: Scale, within: float) -> Floats:
        """Of each figure, if it is predicted from the answer about these blocks.

        A figure is the sum of parts of blocks: Σ share·answer. The noise adds share²·noise each, and dividing a block
        adds (within · count · (1 − share))².
        """
        own = np.broadcast_to(noise, self.block.shape) if np.ndim(noise) == 0 else np.asarray(noise)[self.block]
        added = self.share**2 * own + (within * scale.weight * self.count * (1 - self.share)) ** 2
        variance = np.bincount(self.figure, added, minlength=self.figures)
        mass = scale.weight * np.bincount(self.figure, self.count, minlength=self.figures)
        # A figure without synthetic trips is known as well as an average block is.
        variance = np.where(mass > 0, variance, float(np.mean(noise)))
        return np.asarray(variance / np.maximum(mass, scale.weight) ** 2)


def histogram_variances(release: Release, asked: Asked, bin_of_trip: Ints, bins: int, scale: Scale) -> Floats:
    """Relative variance of the trips in each bin of a table, from the bins in which the release counts them."""
    prior = SPREADS.histogram**2
    found: list[Floats | float] = [prior]
    if asked.question in release:
        answer = release[asked.question]
        assert isinstance(answer.question, Histogram)
        block = answer.question.bins.index(asked.values)
        shares = Shares.of(bin_of_trip, block, np.ones(len(block)), bins)
        found.append(shares.relative_variance(noise_variance(answer), scale, SPREADS.within))
    return np.broadcast_to(combined(*found), (bins,)) + SPREADS.histogram_model**2
