"""Where on the map the estimate rests on the prior: a layer that hatches these cells.

Privacy: free (post-processing of the release).
"""

import math

import numpy as np

from wayveil.report.map_data import Overlay
from wayveil.synthesis.uncertainty.uncertainty import SPREADS, Uncertainty
from wayveil.synthesis.uncertainty.verdict import square_cells

_MOST_CELLS = 14_000
"""Cells of the layer."""


def uncertain_layer(found: Uncertainty) -> Overlay:
    """Variance divided by prior variance of each cell, where the ratio is above 0.5; zero elsewhere.

    Privacy: free (post-processing).
    """
    grid = found.estimates.grid
    cells_across = max(1, math.ceil(math.sqrt(grid.cells / _MOST_CELLS)))
    cells = square_cells(grid, cells_across * grid.cell_m)
    share = found.traffic(cells) ** 2 / SPREADS.place**2
    shape = (-(-grid.rows // cells_across), -(-grid.columns // cells_across))
    return Overlay(np.where(share > 0.5, share, 0.0).reshape(shape), cells_across * grid.cell_m)
