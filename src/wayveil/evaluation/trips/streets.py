"""Flows on streets: how many trips have a point on each."""

import numpy as np
from numpy.typing import NDArray

from wayveil.evaluation.paths import Paths
from wayveil.evaluation.trips.roads import Matched
from wayveil.evaluation.trips.sets import cell_codes
from wayveil.evaluation.trips.settings import SETTINGS

Ints = NDArray[np.int64]
FLOWS = ("link_flow", "street_flow", "directed_street_flow")


def flow_codes(paths: Paths, matched: Matched) -> dict[str, tuple[Ints, Ints]]:
    """For each kind of flow: the trip and the street of every point on a street.

    A link is a road of the map. A street is everything in a cell of 250 m that runs in one of four directions, so two
    carriageways that a map draws separately, or a road cut in two there, are one street.
    """
    on = (matched.road >= 0) & (matched.distance_m < SETTINGS.on_road_m)
    trip, heading = paths.owner[on], matched.heading[on]
    axis = np.floor((heading % np.pi) / (np.pi / 4) + 0.5).astype(np.int64) % 4
    stretch = cell_codes(paths.x_m[on], paths.y_m[on], SETTINGS.stretch_m) * 4 + axis
    # A road's polyline may run either way, so the direction of travel itself decides which way is forward.
    flipped = np.floor((heading % (2 * np.pi)) / (np.pi / 4) + 0.5).astype(np.int64) % 8 >= 4
    forward = (matched.angle[on] <= np.pi / 2) != flipped
    return {
        "link_flow": (trip, matched.road[on]),
        "street_flow": (trip, stretch),
        "directed_street_flow": (trip, stretch * 2 + forward),
    }


def flow_error(real: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> float | None:
    """Weighted absolute percentage error Σ|a − b| / Σa over all streets, b scaled to the total of a; None if Σa = 0."""
    streets, code = np.unique(np.r_[real[1], other[1]], return_inverse=True)
    split = len(real[1])
    a, b = (
        _trips_by_street(trip, street, len(streets))
        for (trip, _), street in ((real, code[:split]), (other, code[split:]))
    )
    if a.sum() == 0:
        return None
    return float(np.abs(a - b * (a.sum() / max(b.sum(), 1.0))).sum() / a.sum())


def _trips_by_street(trip: Ints, street: Ints, count: int) -> NDArray[np.float64]:
    """Each trip counts once for a street."""
    return np.bincount(np.unique(trip * count + street) % count, minlength=count).astype(float)
