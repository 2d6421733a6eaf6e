"""Way-points: each trajectory as one vector of points at equal arc length."""

import numpy as np
from numpy.typing import NDArray


def waypoints(
    offsets: NDArray[np.int64],
    x_m: NDArray[np.float64],
    y_m: NDArray[np.float64],
    t_s: NDArray[np.float64],
    count: int,
    time_scale_mps: float,
) -> NDArray[np.float64]:
    """(n, count, 3): x, y and scaled elapsed time at `count` equal steps of arc length, ends included.

    A trajectory that stands still has all its way-points where it stands.
    """
    n = len(offsets) - 1
    if n == 0:
        return np.zeros((0, count, 3))
    step = np.zeros(len(x_m))
    np.hypot(np.diff(x_m), np.diff(y_m), out=step[1:])
    step[offsets[:-1]] = 0.0
    arc = _cumulative_within(step, offsets)
    total = arc[offsets[1:] - 1]
    owner = np.repeat(np.arange(n), np.diff(offsets))
    share = np.divide(arc, total[owner], out=np.zeros_like(arc), where=total[owner] > 0)
    wanted = np.broadcast_to(np.linspace(0.0, 1.0, count), (n, count))
    after = _first_at_least(share, owner, offsets, wanted)
    before = np.maximum(after - 1, offsets[:-1, None])
    gap = share[after] - share[before]
    weight = np.clip(np.divide(wanted - share[before], gap, out=np.zeros_like(gap), where=gap > 0), 0.0, 1.0)
    elapsed = (t_s - t_s[offsets[:-1]][owner]) * time_scale_mps
    columns = [c[before] + weight * (c[after] - c[before]) for c in (x_m, y_m, elapsed)]
    return np.stack(columns, axis=-1)


def _cumulative_within(step: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Running sum that restarts at each trajectory.

    It must not depend on the batch: a running sum over everything minus its value at the start would carry the
    rounding of the trajectories before, so rows are summed in rounds over trajectories that are still long enough.
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
    share: NDArray[np.float64], owner: NDArray[np.int64], offsets: NDArray[np.int64], wanted: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Position of the first point of each trajectory whose share reaches the wanted one.

    Shifting each trajectory into its own interval lets one search serve all of them; the shift rounds, so the answer
    is then corrected against the unshifted shares: what a trajectory gets must not depend on its place in the batch.
    """
    first, last = offsets[:-1, None], offsets[1:, None] - 1
    row = 2.0 * np.arange(len(offsets) - 1)[:, None]
    guess = np.searchsorted(share + 2.0 * owner, (wanted + row).ravel(), side="left").reshape(wanted.shape)
    guess = np.clip(guess, first, last)
    while True:
        late = (guess > first) & (share[np.maximum(guess - 1, first)] >= wanted)
        early = (guess < last) & (share[guess] < wanted)
        if not (late.any() or early.any()):
            return guess
        guess = guess - late + (early & ~late)
