"""Waypoints: each trajectory as one vector of points at equal steps of arc length."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import step_lengths


def waypoints(
    offsets: NDArray[np.int64],
    x_m: NDArray[np.float64],
    y_m: NDArray[np.float64],
    t_s: NDArray[np.float64],
    count: int,
    time_scale_mps: float,
) -> NDArray[np.float64]:
    """(n, count, 3): x, y and scaled elapsed time at `count` equal steps of arc length, ends included.

    All waypoints of a trajectory that does not move are at its position.
    """
    n = len(offsets) - 1
    if n == 0:
        return np.zeros((0, count, 3))
    arc = _cumulative_within(step_lengths(offsets, x_m, y_m), offsets)
    total = arc[offsets[1:] - 1]
    owner = ragged.owners(np.diff(offsets))
    share = np.divide(arc, total[owner], out=np.zeros_like(arc), where=total[owner] > 0)
    target = np.broadcast_to(np.linspace(0.0, 1.0, count), (n, count))
    after = _first_at_least(share, owner, offsets, target)
    before = np.maximum(after - 1, offsets[:-1, None])
    gap = share[after] - share[before]
    weight = np.clip(np.divide(target - share[before], gap, out=np.zeros_like(gap), where=gap > 0), 0.0, 1.0)
    elapsed = (t_s - t_s[offsets[:-1]][owner]) * time_scale_mps
    columns = [c[before] + weight * (c[after] - c[before]) for c in (x_m, y_m, elapsed)]
    return np.stack(columns, axis=-1)


def _cumulative_within(step: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Running sum that restarts at each trajectory.

    The result must not depend on the batch. A cumulative sum over all points minus its value at each start would
    depend on the rounding errors of earlier trajectories. So each round adds one point of every trajectory that has
    enough points.
    """
    arc = step.copy()
    counts = np.diff(offsets)
    order = np.argsort(-counts, kind="stable")
    first, counts = offsets[:-1][order], counts[order]
    longest = int(counts[0]) if len(counts) else 1
    alive = np.searchsorted(-counts, -np.arange(1, longest), side="left")
    for k, several in enumerate(alive, start=1):
        position = first[:several] + k
        arc[position] += arc[position - 1]
    return arc


def _first_at_least(
    share: NDArray[np.float64], owner: NDArray[np.int64], offsets: NDArray[np.int64], target: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Position of the first point of each trajectory whose share reaches the target share.

    Each trajectory is shifted into its own interval, so that one search serves all. The shift causes rounding errors,
    so the result is corrected with the unshifted shares: it must not depend on a trajectory's position in the batch.
    """
    first, last = offsets[:-1, None], offsets[1:, None] - 1
    row = 2.0 * np.arange(len(offsets) - 1)[:, None]
    guess = np.searchsorted(share + 2.0 * owner, (target + row).ravel(), side="left").reshape(target.shape)
    guess = np.clip(guess, first, last)
    while True:
        late = (guess > first) & (share[np.maximum(guess - 1, first)] >= target)
        early = (guess < last) & (share[guess] < target)
        if not (late.any() or early.any()):
            return guess
        guess = guess - late + (early & ~late)
