"""Possible times: whole seconds, strictly increasing, no step faster than allowed.

Privacy: free (post-processing).
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wayveil.polylines import step_lengths
from wayveil.rules.accuracy import ROUND_OFF_M
from wayveil.synthesis.levelling import levelled

_BLOCK = 1 << 15
"""Points at a time: what is computed together stays in the processor's cache."""


def physical_times(
    offsets: NDArray[np.int64],
    x_m: NDArray[np.float64],
    y_m: NDArray[np.float64],
    t_s: NDArray[np.float64],
    fastest_mps: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return t' with whole Δt' >= max(1 s, length / fastest), the same start and, if possible, the same duration.

    The seconds that fast steps lack are taken from the steps that can spare most, so that most gaps stay the same. If
    all steps together cannot spare enough, the duration grows.

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
    # Blocks of whole trajectories that fit into the processor's cache take a third of the time.
    cuts = np.unique(np.searchsorted(offsets, np.arange(0, len(x_m), _BLOCK)))
    cuts = np.r_[cuts[cuts < len(offsets) - 1], len(offsets) - 1]
    for first, last in pairwise(cuts.tolist()):
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


def whole_seconds(offsets: NDArray[np.int64], least_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the whole seconds of each step, at least one; 0 at first points. Overwrites `least_s`."""
    np.ceil(least_s, out=least_s)
    np.maximum(least_s, 1.0, out=least_s)
    least_s[offsets[:-1]] = 0.0
    return least_s


def stretched_times(
    offsets: NDArray[np.int64], need_s: NDArray[np.float64], t_s: NDArray[np.float64], duration_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return t with Δt = need + a part of what a step can spare, so that the duration is max(`duration`, Σ need)."""
    begin, counts = offsets[:-1], np.diff(offsets)
    spare = np.zeros(len(t_s))
    np.subtract(t_s[1:], t_s[:-1], out=spare[1:])
    spare -= need_s
    np.maximum(spare, 0.0, out=spare)
    spare[begin] = 0.0
    left = np.maximum(duration_s - np.add.reduceat(need_s, begin), 0.0)
    spare = levelled(offsets, spare, left)
    share = left / np.maximum(np.add.reduceat(spare, begin), 1e-9)  # 1, except for the error of the level
    running = np.cumsum(spare)
    running -= np.repeat(running[begin], counts)
    running *= np.repeat(share, counts)
    # Rounding the running sum keeps it monotone and its last value, a whole number, as it is.
    np.rint(running, out=running)
    needed = np.cumsum(need_s)
    running += needed
    running += np.repeat(t_s[begin] - needed[begin], counts)
    return running
