"""Origin-destination flows for the map: trips between square zones, as arcs."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.core.web import UNITS

_MOST_ZONES = 120
"""Zones: few enough that arcs between them can be told apart."""
_MOST_PAIRS = 2_000
"""Pairs of zones on the page; those with the fewest trips are left out."""
_ROUND_M = (250, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 7500, 10_000, 15_000, 20_000, 30_000, 50_000)
"""Possible sides of zones in metres: the smallest one that gives few enough zones is used."""


def flows(trajectories: Trajectories, scope: Scope) -> dict[str, Any]:
    """Trips between zones, largest flows first, in percent of all trips with both ends inside the box.

    `x` and `y` are the mean position of the trip ends in each zone, so that arcs end where trips do. The pairs are
    `from`, `to` and `percent`.

    Privacy: free for synthetic data; not private (trusted side only) for real data.
    """
    zone_m = _zone_m(scope)
    columns = math.ceil(scope.width_m / zone_m)
    starts, lasts = trajectories.offsets[:-1], trajectories.offsets[1:] - 1
    ends = [scope.to_metres(trajectories.lon[at], trajectories.lat[at]) for at in (starts, lasts)]
    inside = np.ones(len(starts), bool)
    for x, y in ends:
        inside &= (x >= 0) & (x <= scope.width_m) & (y >= 0) & (y <= scope.height_m)
    ends = [(x[inside], y[inside]) for x, y in ends]
    zones = [(y // zone_m).astype(np.int64) * columns + (x // zone_m).astype(np.int64) for x, y in ends]
    used, place = np.unique(np.concatenate(zones), return_inverse=True)
    origin, destination = place[: len(zones[0])], place[len(zones[0]) :]
    pairs, counts = np.unique(origin * max(len(used), 1) + destination, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_PAIRS]
    first, second = np.divmod(pairs[order], max(len(used), 1))
    return {
        "zone_m": zone_m,
        "x": _middles(place, np.concatenate([x for x, _ in ends]) / scope.width_m, len(used)),
        "y": _middles(place, np.concatenate([y for _, y in ends]) / scope.height_m, len(used)),
        "from": first.tolist(),
        "to": second.tolist(),
        "percent": [float(f"{100 * count / max(len(origin), 1):.3g}") for count in counts[order]],
    }


def _zone_m(scope: Scope) -> int:
    least = math.sqrt(scope.width_m * scope.height_m / _MOST_ZONES)
    return next((side for side in _ROUND_M if side >= least), math.ceil(least))


def _middles(place: NDArray[np.int64], share: NDArray[np.float64], zones: int) -> list[int]:
    total = np.bincount(place, share, minlength=zones)
    middle = total / np.maximum(np.bincount(place, minlength=zones), 1)
    rounded: list[int] = np.round(np.clip(middle, 0, 1) * UNITS).astype(int).tolist()
    return rounded
