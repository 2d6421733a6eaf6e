"""Characteristic points of polylines by minimum description length (Lee, Han, Whang: SIGMOD 2007), all at once."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST = 12
"""Points that one segment may replace; bounds the time of long trajectories."""


def characteristic(offsets: Ints, x_m: Floats, y_m: Floats) -> tuple[Ints, Floats, Floats]:
    """The polylines reduced to the points where one segment would describe them worse than the points do.

    A segment costs log2 of its length, and log2 of the distances and turns of the points that it replaces; the points
    cost log2 of their steps. Each polyline depends on its own points only.

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
    """Cost of the segments from a to c, with the points between them."""
    east, north = x_m[c] - x_m[a], y_m[c] - y_m[a]
    length = np.hypot(east, north)
    safe = np.maximum(length, 1e-9)
    away, turned = np.zeros(len(a)), np.zeros(len(a))
    for k in range(1, LONGEST):
        at = np.minimum(a + k, c)
        inside = a + k < c
        if not inside.any():
            break
        dx, dy = x_m[at] - x_m[a], y_m[at] - y_m[a]
        away += np.where(inside, np.abs(dx * north - dy * east) / safe, 0.0)
        back = np.maximum(at - 1, a)
        step_x, step_y = x_m[at] - x_m[back], y_m[at] - y_m[back]
        turned += np.where(inside, np.abs(step_x * north - step_y * east) / safe, 0.0)
    cost: Floats = np.log2(1.0 + length) + np.log2(1.0 + away) + np.log2(1.0 + turned)
    return cost
