"""A grid of 9.6 × 6.4 km, and the zones of 1 km on it, computed independently of the package."""

import numpy as np

from wayveil.core.grid import Grid

GRID = Grid(100.0, 96, 64, 9600.0, 6400.0)
ZONES = 70


def zone_of(cell):
    row, column = np.divmod(cell, GRID.columns)
    return row // 10 * 10 + column // 10
