"""Spikes in the durations of recordings that were cut at the same length, from a second, finer answer.

Devices and archives cut recordings, for example, after an hour. Then most durations are in one narrow bin, and the
distribution decays on both sides of it, more steeply than a smooth curve through merged bins can show.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.estimate.settings import SPIKES


def with_spikes(
    shares: NDArray[np.float64], counts: NDArray[np.float64], noise: float, total: float, group: NDArray[np.int64]
) -> NDArray[np.float64]:
    """A smooth estimate, refined inside its merged bins by a second, finer answer; `group` is each bin's merged bin.

    There are two hypotheses. If recordings were not cut, the smooth shape is right everywhere. If they were, a group
    may have a slope, and a share of it may be in one bin (a spike). The weight of a shape is its prior probability
    times e^(−Σ|count − expected| / noise), and the result is the weighted mean. The sum of each group does not change,
    because the first answer determines it better.

    Privacy: free (post-processing).
    """
    cut, log_odds = shares.copy(), np.log(SPIKES.cut_chance / (1 - SPIKES.cut_chance))
    for number in np.unique(group):
        member = np.flatnonzero(group == number)
        mass = float(shares[member].sum())
        if len(member) > 1 and mass > 0:
            shape, gain = _cut_shape(shares[member] / mass, counts[member], noise, total * mass)
            cut[member] = mass * shape
            log_odds += gain
    likely = 1 / (1 + np.exp(-np.clip(log_odds, -SPIKES.most_nats, SPIKES.most_nats)))
    result = (1 - likely) * shares + likely * cut
    return np.asarray(result / result.sum())


def _cut_shape(
    smooth: NDArray[np.float64], counts: NDArray[np.float64], noise: float, total: float
) -> tuple[NDArray[np.float64], float]:
    """Mean shape of a group if recordings were cut, and its log evidence minus that of `smooth`."""
    shapes, chances = _shapes(smooth)
    log_weight = np.log(chances) - np.abs(counts - total * shapes).sum(axis=1) / noise
    top = log_weight.max()
    weight = np.exp(log_weight - top)
    unchanged = -np.abs(counts - total * smooth).sum() / noise
    return weight @ shapes / weight.sum(), float(top + np.log(weight.sum()) - unchanged)


def _shapes(smooth: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each slope without a spike, then with a spike of each size in each bin; and their prior probabilities."""
    bins, sizes, slopes = len(smooth), np.array(SPIKES.spike_shares), np.array(SPIKES.slopes)
    tilted = smooth * np.exp(slopes[:, None] * (np.arange(bins) - (bins - 1) / 2))
    tilted /= tilted.sum(axis=1, keepdims=True)
    slope_chance = np.full(len(slopes), (1 - SPIKES.level_chance) / (len(slopes) - 1))
    slope_chance[0] = SPIKES.level_chance
    size = sizes[:, None, None, None]
    spiked = (1 - size) * tilted[:, None, :] + size * np.eye(bins)
    each = np.broadcast_to(slope_chance[:, None] * SPIKES.spike_chance / (len(sizes) * bins), spiked.shape[:3])
    shapes = np.vstack([tilted, spiked.reshape(-1, bins)])
    return shapes, np.r_[slope_chance * (1 - SPIKES.spike_chance), each.ravel()]
