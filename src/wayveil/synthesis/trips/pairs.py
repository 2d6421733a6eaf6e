"""Whole numbers of trips between zones.

Twenty thousand trips drawn from an estimate have a larger error than the estimate itself: by chance, some pairs of
zones get two trips and others with the same expectation get none. So numbers are rounded instead of drawn: among pairs
with similar starts, ends and displacements, those with the largest remainders get a trip, and the sum over similar
pairs is kept. If short and long displacements competed, too many trips would get a short one, because such pairs have
the larger expectations.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid
from wayveil.synthesis.trips.draw import apportioned
from wayveil.synthesis.trips.settings import TRIPS


def zone_pairs(origin: NDArray[np.int64], destination: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
    """Index of each trip's pair of zones, among those that occur; pairs with close indices are similar.

    They have similar starts, ends and displacements.
    """
    axes = (*np.divmod(origin, grid.columns), *np.divmod(destination, grid.columns))
    zones = [axis // TRIPS.zone_cells for axis in axes]
    apart = np.hypot(zones[0] - zones[2], zones[1] - zones[3])
    distance = np.rint(TRIPS.displacement_classes * np.log2(1 + apart)).astype(np.int64)
    code = _morton(zones)
    return np.unique(distance * (code.max(initial=0) + 1) + code, return_inverse=True)[1]


def integer_trips(
    pair: NDArray[np.int64], weight: NDArray[np.float64], count: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Whole numbers of trips for each pair, `count` in total, in proportion to the weights of its trips."""
    expected = np.asarray(np.bincount(pair, weight), np.float64)
    expected *= count / expected.sum()
    run = ((np.cumsum(expected) - expected / 2) / TRIPS.run_trips).astype(np.int64)
    run = np.unique(run, return_inverse=True)[1]  # a pair with more trips than a run leaves empty runs: skip them
    total = np.diff(np.rint(np.cumsum(np.bincount(run, expected))), prepend=0).astype(np.int64)
    return apportioned(expected, run, total, random)


def _morton(axes: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Morton code: the interleaved bits of several numbers, so that points close on every axis have close codes."""
    code = np.zeros(len(axes[0]), np.int64)
    for bit in range(int(max(axis.max(initial=0) for axis in axes)).bit_length()):
        for place, axis in enumerate(axes):
            code |= ((axis >> bit) & 1) << (len(axes) * bit + place)
    return code
