"""Characteristic points of polylines by minimum description length (Lee, Han, Whang: SIGMOD 2007), all at once."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST = 12
"""Points that one segment may replace; bounds the running time for long trajectories."""


def characteristic(offsets: Ints, x_m: Floats, y_m: Floats) -> tuple[Ints, Floats, Floats]:
    """The polylines reduced to the points where one segment would describe them worse than the points do.

    A segment costs log2 of its length and, for each step that it replaces, log2 of the perpendicular and of the angular
    distance; the points cost log2 of their steps. Each polyline depends on its own points only.

    Privacy: not private (trusted side only).
    """
    keep = np.zeros(len(x_m), bool)
    keep[offsets[:-1]] = keep[offsets[1:] - 1] = True
    step_bits = np.zeros(len(x_m))
    step_bits[:-1] = np.log2(1.0 + np.hypot(np.diff(x_m), np.diff(y_m)))
    bits = np.r_[0.0, np.cumsum(step_bits)]
    anchor, last = offsets[:-1].copy(), offsets[1:] - 1
    current = anchor + 2
    active = np.flatnonzero(current <= last)
    while len(active):
        a, c = anchor[active], current[active]
        worse = _segment_bits(x_m, y_m, a, c) > bits[c] - bits[a]
        cut = worse | (c - a >= LONGEST)
        keep[c[cut] - 1] = True
        anchor[active[cut]] = c[cut] - 1
        current[active] += 1
        active = active[current[active] <= last[active]]
    size = np.add.reduceat(keep, offsets[:-1]) if len(offsets) > 1 else np.zeros(0, np.int64)
    return ragged.offsets_of(size), x_m[keep], y_m[keep]


def _segment_bits(x_m: Floats, y_m: Floats, a: Ints, c: Ints) -> Floats:
    """Cost of the segments from a to c, with the steps that they replace: log2(1 + d) of every length and distance.

    The perpendicular distance of a step is the contraharmonic mean of those of its two points; its angular distance is
    its own length times the sine of the angle, or its whole length if it goes back.
    """
    east, north = x_m[c] - x_m[a], y_m[c] - y_m[a]
    length = np.hypot(east, north)
    safe = np.maximum(length, 1e-9)
    bits: Floats = np.log2(1.0 + length)
    left = np.zeros(len(a))
    for k in range(LONGEST):
        here, after = np.minimum(a + k, c), np.minimum(a + k + 1, c)
        inside = here < c
        if not inside.any():
            break
        right = np.abs((x_m[after] - x_m[a]) * north - (y_m[after] - y_m[a]) * east) / safe
        away = (left**2 + right**2) / np.maximum(left + right, 1e-9)
        step_x, step_y = x_m[after] - x_m[here], y_m[after] - y_m[here]
        across = np.abs(step_x * north - step_y * east) / safe
        turned = np.where(step_x * east + step_y * north >= 0, across, np.hypot(step_x, step_y))
        bits += np.where(inside, np.log2(1.0 + away) + np.log2(1.0 + turned), 0.0)
        left = right
    return bits
