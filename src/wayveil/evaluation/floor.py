"""The floor of a metric: what a fresh sample of the same population would score, measured on the real data alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.evaluation.metrics import Metric
from wayveil.evaluation.paths import Paths
from wayveil.evaluation.tally import GROUPS, Tally

FEWEST = 20
"""Of fewer trajectories on either side no interval and no floor is worth showing."""
_SPLITS = 8
_MORE_SPLITS = 32
_SMALL = 8


@dataclass(frozen=True)
class Floor:
    """The floor, the error of a value about it, and the best that an honest value could be expected to be."""

    value: float
    error: float
    best: float


def alike(n_real: int, n_synthetic: int) -> bool:
    """Whether the law of sampling error holds between these sizes; smaller samples are measured instead."""
    return 2 * n_synthetic >= n_real


def in_samples(real: Paths, size: int) -> Paths | None:
    """The real paths in groups of `size`, or None where so large a sample is better put together of equal groups."""
    return replace(real, sample_size=size) if 0 < _SMALL * size <= len(real) else None


def floor_of(metric: Metric, tally: Tally, n_real: int, n_synthetic: int, sampled: Tally | None = None) -> Floor:
    """The metric between disjoint samples of the real data, at the sizes compared; and a value's error about it.

    Disjoint samples of an eighth, a quarter and a half of the real data each are compared (repeated splits). Sampling
    error depends on h = 2 / (1/n_real + 1/n_synthetic), so the mean loss is read at h on the log-log line through
    those sizes: between them inside, by the outermost slope outside. That law holds for sizes that are alike. Of
    synthetic data with less than half as many trajectories the floor is measured as it is: samples of that size, each
    against all other real trajectories, and the line only makes up for those being fewer than all. `sampled` is the
    tally of `in_samples`, which such a small sample needs. Of synthetic data with more trajectories than the real data
    nothing can be measured: how far a saturated loss falls is not to be seen in the real data, so the best to expect
    falls with 1/h from equal sizes on, as fast as any sampling error does. A metric whose floor is 0 by construction
    (`unbiased`) is not scaled, but its error is.
    """
    used = min(GROUPS, n_real)
    if used < 2:
        perfect = 1.0 if metric.higher_is_better else 0.0
        return Floor(perfect, 0.0, perfect)
    sizes = sorted({max(1, used // part) for part in (8, 4, 2)})
    rng = np.random.default_rng(7)
    losses = np.array([_split_losses(metric, tally, rng.permutation(used), sizes) for _ in range(_SPLITS)])
    means = losses.mean(0)
    at = _equal_size(n_real, n_synthetic)
    if metric.unbiased:
        halves = losses[:, -1]
        if not alike(n_real, n_synthetic):
            orders = [rng.permutation(used) for _ in range(_MORE_SPLITS)]
            halves = np.array([tally.split(order[: used // 2], order[used // 2 :]) for order in orders])
        error = float(np.std(halves, ddof=1)) * _wider(metric, n_real, n_synthetic)
        return Floor(float(means[-1]), error, float(means[-1]))
    trajectories = np.array(sizes) * (n_real / used)
    if alike(n_real, n_synthetic):
        loss = best = _on_log_line(trajectories, means, at)
        if n_synthetic > n_real:
            best = _on_log_line(trajectories, means, n_real) * n_real / at
        # How far one comparison strays (a half strays more than the whole), and how far the mean of the scaled splits
        # does.
        scaled = [_on_log_line(trajectories, split, at) for split in losses]
        strays, mean_strays = np.std(losses[:, -1], ddof=1), np.std(scaled, ddof=1) / np.sqrt(_SPLITS)
    else:
        size, found = _sample_losses(metric, tally, n_real, n_synthetic, sampled)
        whole, measured = (_on_log_line(trajectories, means, h) for h in (at, _equal_size(n_real - size, size)))
        found = found * (whole / measured if measured > 0 else 1.0)
        loss = best = float(found.mean())
        strays = np.std(found, ddof=1)
        mean_strays = strays / np.sqrt(_SPLITS)  # the samples may overlap, so more of them say little more
    error = float(np.hypot(strays, mean_strays))
    return Floor(1.0 - loss, error, 1.0 - best) if metric.higher_is_better else Floor(loss, error, best)


def _equal_size(one: float, other: float) -> float:
    """The size of two equal samples that err as much as two of these sizes."""
    return 2.0 / (1.0 / one + 1.0 / other)


def _wider(metric: Metric, n_real: int, n_synthetic: int) -> float:
    """How much more than between halves an unbiased metric strays at these sizes: its error goes with 1/h."""
    most = metric.draws or max(n_real, n_synthetic)
    real, synthetic = min(n_real, most), min(n_synthetic, most)
    return max(1.0, (real / 2) / _equal_size(real, synthetic))


def _sample_losses(
    metric: Metric, tally: Tally, n_real: int, n_synthetic: int, sampled: Tally | None
) -> tuple[float, NDArray[np.float64]]:
    """Size of a sample about as large as the synthetic data, and the losses of some of them against all others."""
    if sampled is None:
        used = min(GROUPS, n_real)
        part = max(1, round(used * n_synthetic / n_real))
        size = part * n_real / used
        rng = np.random.default_rng(8)
        orders = [rng.permutation(used) for _ in range(_MORE_SPLITS)]
        found = [tally.split(order[part:], order[:part]) for order in orders]
    else:
        size = float(n_synthetic)
        everything = np.arange(GROUPS)
        whole_groups = min(GROUPS - 1, n_real // n_synthetic)
        found = [sampled.split(np.delete(everything, g), everything[g : g + 1]) for g in range(whole_groups)]
    losses = np.array(found)
    return size, 1.0 - losses if metric.higher_is_better else losses


def _split_losses(metric: Metric, tally: Tally, order: NDArray[np.int64], sizes: Sequence[int]) -> list[float]:
    """Mean loss between disjoint samples of each size (in groups), at most two pairs of each."""
    losses = []
    for size in sizes:
        pairs = range(0, min(len(order) - 2 * size, 2 * size) + 1, 2 * size)
        found = [tally.split(order[at : at + size], order[at + size : at + 2 * size]) for at in pairs]
        losses.append(float(np.mean(found)))
    return [1.0 - loss for loss in losses] if metric.higher_is_better else losses


def _on_log_line(size: np.ndarray, loss: np.ndarray, at: float) -> float:
    if (loss <= 0).any() or len(size) < 2:
        return float(max(loss[-1], 0.0))
    x, y, to = np.log(size), np.log(loss), np.log(at)
    if to >= x[-1]:
        # The slope itself steepens by the same amount a doubling where the loss leaves saturation (a parabola in
        # log-log), but never beyond 1/n, the law of sparse sampling error.
        slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
        bend = slope - (y[-2] - y[-3]) / (x[-2] - x[-3]) if len(size) > 2 else 0.0
        slope = float(np.clip(slope + min(bend, 0.0), -1.0, 0.0))
        return float(np.exp(y[-1] + slope * (to - x[-1])))
    if to <= x[0]:
        slope = float(np.clip((y[1] - y[0]) / (x[1] - x[0]), -1.0, 0.0))
        return float(np.exp(y[0] + slope * (to - x[0])))
    return float(np.exp(np.interp(to, x, y)))
