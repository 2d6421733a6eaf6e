"""Errors of recorded positions: a drift over half a minute, and a small error of each fix.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, steps
from wayveil.synthesis.place.settings import ERRORS


def with_errors(
    lines: Polylines, interval_s: NDArray[np.float64], grid: Grid, random: np.random.Generator
) -> Polylines:
    """The fixes with GPS errors, inside the grid; ends do not move.

    Drifts are normal at knots half a minute apart and linear in between. Errors of single fixes are small compared with
    the steps, because devices smooth their tracks.
    """
    x_m, y_m = lines.x_m.copy(), lines.y_m.copy()
    for first, last in ragged.runs(lines.offsets):
        part, counts = slice(lines.offsets[first], lines.offsets[last]), np.diff(lines.offsets[first : last + 1])
        own = ragged.offsets_of(counts)
        each = np.maximum(np.rint(ERRORS.drift_s / np.maximum(interval_s[first:last], 1.0)), 1.0)
        knots = ragged.offsets_of(np.ceil(counts / each).astype(np.int64) + 1)
        position = ragged.ranks(counts) / np.repeat(each, counts)
        knot = position.astype(np.int64)
        share = position - knot
        knot += np.repeat(knots[:-1], counts)
        step_m = steps(Polylines(own, lines.x_m[part], lines.y_m[part]))
        # While it stands still, a device that holds its position repeats the error of the last fix at which it moved.
        holds = np.repeat(random.random(len(counts)) < ERRORS.holding, counts) & (step_m == 0)
        holds[own[:-1]] = False
        of_fix = np.maximum.accumulate(np.where(holds, 0, np.arange(len(holds))))
        np.minimum(step_m[:-1], step_m[1:], out=step_m[:-1])
        single_m = np.minimum(ERRORS.single_m, ERRORS.single_share * step_m)
        device_m = ERRORS.drift_m * np.exp(ERRORS.device_spread * random.standard_normal(len(counts)))
        of_device = np.repeat(device_m, np.diff(knots))
        for column, most in ((x_m, grid.width_m), (y_m, grid.height_m)):
            drift = of_device * random.standard_normal(knots[-1])
            error = (1 - share) * drift[knot] + share * drift[np.minimum(knot + 1, len(drift) - 1)]
            error += single_m * random.standard_normal(len(error))
            error = error[of_fix]
            error[own[:-1]] = 0.0
            error[own[1:] - 1] = 0.0
            column[part] = np.clip(column[part] + error, 0.0, most)
    return Polylines(lines.offsets, x_m, y_m)
