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
    """The variance of each cell as a share of its prior variance, where it is more than half of it; zero elsewhere.

    Privacy: free (post-processing).
    """
    grid = found.estimates.grid
    run = max(1, math.ceil(math.sqrt(grid.cells / _MOST_CELLS)))
    cells = square_cells(grid, run * grid.cell_m)
    share = found.traffic(cells) ** 2 / SPREADS.place**2
    shape = (-(-grid.rows // run), -(-grid.columns // run))
    return Overlay(np.where(share > 0.5, share, 0.0).reshape(shape), run * grid.cell_m)
