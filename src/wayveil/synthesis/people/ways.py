"""Routes and times of people's trips: ends of routes are moved to the person's places, and routes may be repeated.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.synthesis.people.state import AssignedTrips
from wayveil.synthesis.place.track_columns import Tracks

_TAPER, _TAPER_M = 5.0, 200.0
"""The shift of an end by d metres fades out over 5·d + 200 m of the route, so that steps grow by at most a fifth."""
_EDGE_M = 1.0
"""Minimum distance from the edge of the box."""


def moved_routes(tracks: Tracks, assigned: AssignedTrips, width_m: float, height_m: float) -> Tracks:
    """The tracks of the assigned trips, in the same order, with their ends moved."""
    route, reverse = assigned.route, assigned.reverse
    offsets, points = ragged.take(tracks.offsets, route)
    count = np.diff(offsets)
    rank, owner = ragged.ranks(count), ragged.owners(count)
    points = np.where(reverse[owner], points - rank + (count[owner] - 1 - rank), points)
    x, y, t = tracks.x_m[points], tracks.y_m[points], tracks.t_utc[points]
    first, last = offsets[:-1], offsets[1:] - 1
    elapsed = np.abs(t - t[first][owner])
    step = np.hypot(np.diff(x, prepend=x[:1]), np.diff(y, prepend=y[:1]))
    step[first] = 0.0
    along = np.cumsum(step)
    along -= along[first][owner]
    whole = along[last]
    for places, at, distance in (
        (assigned.start, first, along),
        (assigned.end, last, whole[owner] - along),
    ):
        moved = places - np.column_stack([x[at], y[at]])
        dx, dy = moved.T
        reach = np.minimum(np.maximum(_TAPER * np.hypot(dx, dy) + _TAPER_M, 1.0), np.maximum(whole, 1.0))
        fade = np.clip(1 - distance / reach[owner], 0.0, 1.0)
        x, y = x + fade * dx[owner], y + fade * dy[owner]
    x, y = np.clip(x, _EDGE_M, width_m - _EDGE_M), np.clip(y, _EDGE_M, height_m - _EDGE_M)
    return Tracks(offsets, x, y, np.rint(assigned.depart_utc)[owner] + np.rint(elapsed))


def possible_sequence(tracks: Tracks, person: NDArray[np.int64], fastest_mps: float) -> NDArray[np.bool_]:
    """Whether each track can follow the previous one of the same person; tracks are sorted by person and time."""
    first, last = tracks.offsets[:-1], tracks.offsets[1:] - 1
    possible = np.ones(len(tracks), bool)
    same = person[1:] == person[:-1]
    gap = tracks.t_utc[first[1:]] - tracks.t_utc[last[:-1]]
    apart = np.hypot(tracks.x_m[first[1:]] - tracks.x_m[last[:-1]], tracks.y_m[first[1:]] - tracks.y_m[last[:-1]])
    possible[1:] = ~same | ((gap >= 1) & (apart <= gap * fastest_mps))
    return possible
