"""Possible times: whole seconds, strictly increasing, no step faster than allowed.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import step_lengths
from wayveil.rules.tolerances import ROUND_OFF_M
from wayveil.synthesis.place.capping import capped_rows


def physical_times(
    offsets: NDArray[np.int64],
    x_m: NDArray[np.float64],
    y_m: NDArray[np.float64],
    t_s: NDArray[np.float64],
    fastest_mps: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return t' with whole Δt' >= max(1 s, length / fastest), the same start and, if possible, the same duration.

    The seconds that fast steps lack are taken from the steps with the most spare time, so that most gaps do not change.
    If the spare time of all steps is not enough, the duration grows.

    Parameters
    ----------
    fastest_mps
        One speed, or one for each point: the limit of the step that ends there.

    Privacy: free (post-processing).
    """
    if len(x_m) == 0:
        return np.zeros(0)
    offsets = np.asarray(offsets, np.int64)
    result = np.empty(len(x_m))
    for first, last in ragged.runs(offsets):
        part = slice(offsets[first], offsets[last])
        own = offsets[first : last + 1] - offsets[first]
        fastest = fastest_mps[part] if isinstance(fastest_mps, np.ndarray) and fastest_mps.ndim else fastest_mps
        need = step_lengths(own, x_m[part], y_m[part])
        need -= ROUND_OFF_M
        need /= fastest
        need = whole_seconds(own, need)
        whole = np.rint(t_s[part])
        duration = np.maximum(whole[own[1:] - 1] - whole[own[:-1]], 0.0)
        result[part] = stretched_times(own, need, whole, duration)
    return result


def whole_times(offsets: NDArray[np.int64], time_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Times since the start in whole seconds: gaps that are whole stay as they are, the sum of the others is rounded.

    Rounding the times themselves would change a gap of exactly one sampling interval by a second now and then.
    """
    gap_s = np.diff(time_s, prepend=0.0)
    gap_s[offsets[:-1]] = 0.0
    nearest = np.rint(gap_s)
    whole = np.abs(gap_s - nearest) < 1e-6
    exact, other = (np.cumsum(np.where(mask, some, 0.0)) for mask, some in ((whole, nearest), (~whole, gap_s)))
    counts = np.diff(offsets)
    exact -= np.repeat(exact[offsets[:-1]], counts)
    other -= np.repeat(other[offsets[:-1]], counts)
    return np.asarray(exact + np.rint(other))


def whole_seconds(offsets: NDArray[np.int64], least_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the whole seconds of each step, at least one; 0 at first points. Overwrites `least_s`."""
    np.ceil(least_s, out=least_s)
    np.maximum(least_s, 1.0, out=least_s)
    least_s[offsets[:-1]] = 0.0
    return least_s


def stretched_times(
    offsets: NDArray[np.int64], need_s: NDArray[np.float64], t_s: NDArray[np.float64], duration_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return t with Δt = need + a share of the step's spare time, so that the duration is max(`duration`, Σ need)."""
    begin, counts = offsets[:-1], np.diff(offsets)
    spare = np.zeros(len(t_s))
    np.subtract(t_s[1:], t_s[:-1], out=spare[1:])
    spare -= need_s
    np.maximum(spare, 0.0, out=spare)
    spare[begin] = 0.0
    left = np.maximum(duration_s - ragged.sums(need_s, offsets), 0.0)
    spare = capped_rows(offsets, spare, left)
    share = left / np.maximum(ragged.sums(spare, offsets), 1e-9)  # 1, except for the error of the cap
    running = np.cumsum(spare)
    running -= np.repeat(running[begin], counts)
    running *= np.repeat(share, counts)
    # Rounding the cumulative sum keeps it monotone and does not change its last value, a whole number.
    np.rint(running, out=running)
    needed = np.cumsum(need_s)
    running += needed
    running += np.repeat(t_s[begin] - needed[begin], counts)
    return running
