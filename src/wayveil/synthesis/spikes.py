"""spikes: durations of recordings that were cut at the same length, from a second, finer answer.

Devices and archives cut recordings at the hour: most durations stand in one narrow bin, the others fall away from it on
both sides, steeper than a smooth curve through merged bins can tell.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

_CUT_CHANCE = 0.05
"""That recordings were cut at all; all groups of bins together have to say so."""
_SPIKE_CHANCE = 0.25
_SPIKE_SIZES = np.linspace(0.1, 0.95, 12)
_LEANINGS = np.array([0.0, -1.2, -0.6, -0.3, 0.3, 0.6, 1.2])
_UPRIGHT_CHANCE = 0.5
"""If they were: chances of a spike in a group, and of a group that leans to neither side (by e^leaning a bin)."""
_SUREST = 50.0


def with_spikes(
    shares: NDArray[np.float64], counts: NDArray[np.float64], noise: float, total: float, group: NDArray[np.int64]
) -> NDArray[np.float64]:
    """A smooth estimate with what a second, finer answer says inside the bins of the first; `group` is that bin.

    Either nothing was cut, and the smooth shape is right everywhere; or recordings were cut, and then a group may lean
    to one side, and a part of it may stand in one bin. Each shape weighs chance · e^(−Σ|count − expected| / noise), and
    the result is the mean of all. The sum of a group stays: the first answer knows it better.

    Privacy: free (post-processing).
    """
    cut, log_odds = shares.copy(), np.log(_CUT_CHANCE / (1 - _CUT_CHANCE))
    for each in np.unique(group):
        member = np.flatnonzero(group == each)
        mass = float(shares[member].sum())
        if len(member) > 1 and mass > 0:
            shape, gain = _cut_shape(shares[member] / mass, counts[member], noise, total * mass)
            cut[member] = mass * shape
            log_odds += gain
    likely = 1 / (1 + np.exp(-np.clip(log_odds, -_SUREST, _SUREST)))
    result = (1 - likely) * shares + likely * cut
    return np.asarray(result / result.sum())


def _cut_shape(
    smooth: NDArray[np.float64], counts: NDArray[np.float64], noise: float, total: float
) -> tuple[NDArray[np.float64], float]:
    """Mean shape of a group if recordings were cut, and by how much that explains the counts better than `smooth`."""
    shapes, chances = _shapes(smooth)
    log_weight = np.log(chances) - np.abs(counts - total * shapes).sum(axis=1) / noise
    top = log_weight.max()
    weight = np.exp(log_weight - top)
    as_it_is = -np.abs(counts - total * smooth).sum() / noise
    return weight @ shapes / weight.sum(), float(top + np.log(weight.sum()) - as_it_is)


def _shapes(smooth: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each leaning without a spike, then with a spike of each size in each bin; and the chance of each."""
    bins = len(smooth)
    leaning = smooth * np.exp(_LEANINGS[:, None] * (np.arange(bins) - (bins - 1) / 2))
    leaning /= leaning.sum(axis=1, keepdims=True)
    leaning_chance = np.full(len(_LEANINGS), (1 - _UPRIGHT_CHANCE) / (len(_LEANINGS) - 1))
    leaning_chance[0] = _UPRIGHT_CHANCE
    size = _SPIKE_SIZES[:, None, None, None]
    spiked = (1 - size) * leaning[:, None, :] + size * np.eye(bins)
    each = np.broadcast_to(leaning_chance[:, None] * _SPIKE_CHANCE / (len(_SPIKE_SIZES) * bins), spiked.shape[:3])
    shapes = np.vstack([leaning, spiked.reshape(-1, bins)])
    return shapes, np.r_[leaning_chance * (1 - _SPIKE_CHANCE), each.ravel()]
