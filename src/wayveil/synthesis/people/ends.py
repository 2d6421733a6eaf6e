"""Where the trips of people start and end: near the person's places, at positions that other trips have left.

A trip whose start or end moves to a place of its person leaves its old position free. Moved starts and ends are put at
free positions wherever one is near the place, so that the positions of all trips together hardly change.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.people.trips_of_people import CONTINUOUS_M, PLACE_M

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NEAR_M = CONTINUOUS_M / 2
"""A moved start or end is at most this far from its place, so that a trip can continue from where another ended."""
_NEIGHBOURS = 12
"""Positions that are tried for each moved start or end, nearest first."""


def exchanged(place: Floats, before: Floats) -> Floats:
    """An allowed position for each row: the old one, or else another row's old one, or else the nearest allowed one.

    Positions near the place and inside its square of the grid of places are allowed.

    Parameters
    ----------
    place
        (n, 2) positions of the places.
    before
        (n, 2) positions before anything was moved; each is used at most once.
    """
    result = _nearest_allowed(place, before)
    stays = (result == before).all(axis=1)
    moves = np.flatnonzero(~stays)
    found = _matched(place[moves], before[moves])
    some = found >= 0
    result[moves[some]] = before[moves[found[some]]]
    return result


def _matched(place: Floats, offered: Floats) -> Integers:
    """For each place, the index of an allowed position, each used only once; −1 if there is none."""
    from scipy.spatial import cKDTree

    taken, found = np.zeros(len(offered), bool), np.full(len(place), -1)
    if not len(place):
        return found
    number = min(_NEIGHBOURS, len(offered))
    distance, near = cKDTree(offered).query(place, k=np.arange(1, number + 1), distance_upper_bound=NEAR_M)
    inside = np.isfinite(distance)
    near = np.where(inside, near, 0)
    allowed = inside & (offered[near] // PLACE_M == place[:, None] // PLACE_M).all(axis=2)
    while True:
        free = allowed & ~taken[near] & (found < 0)[:, None]
        rows = np.flatnonzero(free.any(axis=1))
        if not len(rows):
            return found
        best = near[rows, free[rows].argmax(axis=1)]
        first = np.unique(best, return_index=True)[1]
        found[rows[first]] = best[first]
        taken[best[first]] = True


def _nearest_allowed(place: Floats, wanted: Floats) -> Floats:
    """The wanted position, or one towards it that is near the place and inside its square."""
    corner = place // PLACE_M * PLACE_M
    inside = ((wanted // PLACE_M * PLACE_M == corner).all(axis=1)) & (np.hypot(*(wanted - place).T) <= NEAR_M)
    share = np.minimum(1.0, 0.999 * NEAR_M / np.maximum(np.hypot(*(wanted - place).T), 1e-9))[:, None]
    nearer = np.clip(place + share * (wanted - place), corner + 1, corner + PLACE_M - 1)
    return np.asarray(np.where(inside[:, None], wanted, nearer))
