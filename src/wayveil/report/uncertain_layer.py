"""Where on the map the estimate rests on the prior: a layer that shades these cells.

Privacy: free (post-processing of the release).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.uncertainty.uncertainty import SPREADS, Uncertainty


def uncertain_cells(found: Uncertainty, cell_m: float, columns: int, rows: int) -> NDArray[np.bool_]:
    """(rows, columns) whether the traffic of each cell of the map is determined by the prior rather than by counts.

    This is where the variance of the estimate is more than half of that of the prior.
    """
    grid = found.estimates.grid
    row, column = (
        np.minimum(((np.arange(count) + 0.5) * grid.cell_m / cell_m).astype(np.int64), most - 1)
        for count, most in ((grid.rows, rows), (grid.columns, columns))
    )
    cell_of = row[:, None] * columns + column
    errors = np.full(rows * columns, np.nan)
    seen = np.unique(cell_of)
    errors[seen] = found.traffic(cell_of)[seen]
    if len(seen) < len(errors):  # cells of the map that are smaller than those of the release
        index = np.minimum(((np.arange(rows) + 0.5) * cell_m / grid.cell_m).astype(np.int64), grid.rows - 1)
        other = np.minimum(((np.arange(columns) + 0.5) * cell_m / grid.cell_m).astype(np.int64), grid.columns - 1)
        nearest = errors[cell_of[index[:, None], other]].ravel()
        errors = np.where(np.isnan(errors), nearest, errors)
    return np.asarray(errors.reshape(rows, columns) ** 2 > SPREADS.place**2 / 2)
