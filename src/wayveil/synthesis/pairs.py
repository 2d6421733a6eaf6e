"""pairs: how many trips go from which zone to which, as whole numbers.

Twenty thousand trips drawn from an estimate are further from the truth than the estimate is: some pairs get two trips
by chance, others that are as likely none. So numbers are rounded instead of drawn: among pairs that are close to each
other in both ends those with the largest remainders get a trip, and neighbours together keep their sum.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.synthesis.draw import apportioned

ZONE_SIDE = 10
"""Side of a zone in cells of the base grid: a kilometre in a city."""
_RUN = 16.0
"""Trips in a run of neighbouring pairs, whose sum is kept."""


def zone_pairs(origin: NDArray[np.int64], destination: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
    """For each trip the number of its pair of zones, among those that occur; close numbers are close in both ends."""
    axes = (*np.divmod(origin, grid.columns), *np.divmod(destination, grid.columns))
    return np.unique(_morton([axis // ZONE_SIDE for axis in axes]), return_inverse=True)[1]


def whole_trips(
    pair: NDArray[np.int64], weight: NDArray[np.float64], count: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """How many of `count` trips each pair gets if it shall get them in proportion to the weights of its trips."""
    wanted = np.asarray(np.bincount(pair, weight), np.float64)
    wanted *= count / wanted.sum()
    run = ((np.cumsum(wanted) - wanted / 2) / _RUN).astype(np.int64)
    run = np.unique(run, return_inverse=True)[1]  # a pair with more than a run's trips leaves others empty
    total = np.diff(np.rint(np.cumsum(np.bincount(run, wanted))), prepend=0).astype(np.int64)
    return apportioned(wanted, run, total, random)


def _morton(axes: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """One number for several: their bits in turn, so that numbers close on every axis come out close."""
    code = np.zeros(len(axes[0]), np.int64)
    for bit in range(int(max(axis.max(initial=0) for axis in axes)).bit_length()):
        for place, axis in enumerate(axes):
            code |= ((axis >> bit) & 1) << (len(axes) * bit + place)
    return code
