"""The floor of a metric: the score of a new sample of the same population, estimated from the real data only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.evaluation.metrics import Metric
from wayveil.evaluation.paths import Paths
from wayveil.evaluation.tally import GROUPS, Tally

FEWEST = 20
"""With fewer trajectories on either side, intervals and floors are meaningless."""
_SPLITS = 8
"""Random splits of the real data per floor."""
_MORE_SPLITS = 32
"""Splits if one takes little time, for a smaller standard error."""
_SMALL = 8
"""A synthetic file this many times smaller than the real one is compared with samples of its own size."""


@dataclass(frozen=True)
class Floor:
    """The floor, the standard error of a value around it, and the best expected value without copied records."""

    value: float
    error: float
    best: float


def similar_sizes(n_real: int, n_synthetic: int) -> bool:
    """Whether the scaling law of the sampling error holds for these sizes; otherwise the floor is measured."""
    return 2 * n_synthetic >= n_real


def in_samples(real: Paths, size: int) -> Paths | None:
    """The real paths in groups of `size`, or None if equally large groups can be combined into such a sample."""
    return replace(real, sample_size=size) if 0 < _SMALL * size <= len(real) else None


def floor_of(metric: Metric, tally: Tally, n_real: int, n_synthetic: int, sampled: Tally | None = None) -> Floor:
    """The metric between disjoint samples of the real data, scaled to the compared sizes; and its standard error.

    Pairs of disjoint samples, each with an eighth, a quarter or a half of the real data, are compared in repeated
    splits. The sampling error depends on h = 2 / (1/n_real + 1/n_synthetic). So the mean loss is interpolated at h on
    the log-log line through these sizes, and extrapolated with the outermost slope. This scaling law holds for similar
    sizes.

    If the synthetic data has less than half as many trajectories as the real data, the floor is measured directly:
    samples of that size are compared with all other real trajectories, and the line only corrects for these being
    fewer than all. `sampled` is the tally of `in_samples`, which a small sample needs.

    If the synthetic data has more trajectories than the real data, the floor cannot be measured: the real data does
    not show how far a saturated loss falls. The best expected value then falls with 1/h from equal sizes on, the
    fastest rate of any sampling error. A metric with the floor 0 by construction (`unbiased`) is not scaled, but its
    error is.
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
        if not similar_sizes(n_real, n_synthetic):
            orders = [rng.permutation(used) for _ in range(_MORE_SPLITS)]
            halves = np.array([tally.split(order[: used // 2], order[used // 2 :]) for order in orders])
        error = float(np.std(halves, ddof=1)) * _wider(metric, n_real, n_synthetic)
        return Floor(float(means[-1]), error, float(means[-1]))
    trajectories = np.array(sizes) * (n_real / used)
    if similar_sizes(n_real, n_synthetic):
        loss = best = _on_log_line(trajectories, means, at)
        if n_synthetic > n_real:
            best = _on_log_line(trajectories, means, n_real) * n_real / at
        # The standard deviation of one comparison (larger for halves than for all data), and that of the mean over
        # the scaled splits.
        scaled = [_on_log_line(trajectories, split, at) for split in losses]
        spread, mean_spread = np.std(losses[:, -1], ddof=1), np.std(scaled, ddof=1) / np.sqrt(_SPLITS)
    else:
        size, values = _sample_losses(metric, tally, n_real, n_synthetic, sampled)
        whole, measured = (_on_log_line(trajectories, means, h) for h in (at, _equal_size(n_real - size, size)))
        values = values * (whole / measured if measured > 0 else 1.0)
        loss = best = float(values.mean())
        spread = np.std(values, ddof=1)
        mean_spread = spread / np.sqrt(_SPLITS)  # the samples may overlap, so more of them add little information
    error = float(np.hypot(spread, mean_spread))
    return Floor(1.0 - loss, error, 1.0 - best) if metric.higher_is_better else Floor(loss, error, best)


def _equal_size(one: float, other: float) -> float:
    """The size of two equal samples with the same sampling error as two samples of these sizes."""
    return 2.0 / (1.0 / one + 1.0 / other)


def _wider(metric: Metric, n_real: int, n_synthetic: int) -> float:
    """Standard deviation of an unbiased metric at these sizes over that between halves: its error scales with 1/h."""
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
        values = [tally.split(order[part:], order[:part]) for order in orders]
    else:
        size = float(n_synthetic)
        everything = np.arange(GROUPS)
        whole_groups = min(GROUPS - 1, n_real // n_synthetic)
        values = [sampled.split(np.delete(everything, g), everything[g : g + 1]) for g in range(whole_groups)]
    losses = np.array(values)
    return size, 1.0 - losses if metric.higher_is_better else losses


def _split_losses(metric: Metric, tally: Tally, order: NDArray[np.int64], sizes: Sequence[int]) -> list[float]:
    """Mean loss between disjoint samples of each size (in groups), at most two pairs of each."""
    losses = []
    for size in sizes:
        pairs = range(0, min(len(order) - 2 * size, 2 * size) + 1, 2 * size)
        values = [tally.split(order[at : at + size], order[at + size : at + 2 * size]) for at in pairs]
        losses.append(float(np.mean(values)))
    return [1.0 - loss for loss in losses] if metric.higher_is_better else losses


def _on_log_line(size: np.ndarray, loss: np.ndarray, at: float) -> float:
    if (loss <= 0).any() or len(size) < 2:
        return float(max(loss[-1], 0.0))
    x, y, to = np.log(size), np.log(loss), np.log(at)
    if to >= x[-1]:
        # As the loss leaves saturation, its slope steepens by the same amount with each doubling (a parabola in
        # log-log), but never beyond 1/n, the rate of sparse sampling error.
        slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
        bend = slope - (y[-2] - y[-3]) / (x[-2] - x[-3]) if len(size) > 2 else 0.0
        slope = float(np.clip(slope + min(bend, 0.0), -1.0, 0.0))
        return float(np.exp(y[-1] + slope * (to - x[-1])))
    if to <= x[0]:
        slope = float(np.clip((y[1] - y[0]) / (x[1] - x[0]), -1.0, 0.0))
        return float(np.exp(y[0] + slope * (to - x[0])))
    return float(np.exp(np.interp(to, x, y)))
