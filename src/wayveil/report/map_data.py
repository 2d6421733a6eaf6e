"""The data of the interactive map as compact JSON: density by hour, sample trajectories, roads, closed areas."""

import base64
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import ROAD_CLASSES, RoadMap, clip_roads
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, batches
from wayveil.report.uncertain_layer import uncertain_cells
from wayveil.synthesis.uncertainty.uncertainty import Uncertainty

_MOST_CELLS = 14_000
"""Cells of the density map. These limits keep a page at a few megabytes."""
_MOST_SAMPLES = 400
"""Trips that are drawn."""
_MOST_SAMPLE_POINTS = 40_000
"""Their points."""
_MOST_ROAD_VERTICES = 70_000
"""Vertices of the roads that are drawn."""
_UNITS = 65_535
"""Coordinates on the page are 16-bit integers across the box."""
_LOG_SCALE = 2e5
"""Shades follow log(1 + scale × share), so that small shares stay visible."""


def map_data(
    scope: Scope,
    panels: dict[str, Trajectories],
    roads: RoadMap | None = None,
    rules: Iterable[Any] = (),
) -> dict[str, Any]:
    """Everything that the map draws; positions are whole units of 1/65535 of the box, from the south-west corner.

    Privacy: free where every panel is synthetic; not private (trusted side only) where one is real.
    """
    cell_m = _cell_m(scope)
    columns, rows = math.ceil(scope.width_m / cell_m), math.ceil(scope.height_m / cell_m)
    shares = {name: _shares(data, scope, cell_m, columns, rows) for name, data in panels.items()}
    largest_hour = max((share.max() for share in shares.values() if share.size), default=0.0)
    largest_day = max((share.sum(axis=0).max() for share in shares.values() if share.size), default=0.0)
    return {
        "width_m": round(scope.width_m, 1),
        "height_m": round(scope.height_m, 1),
        "cell_m": cell_m,
        "columns": columns,
        "rows": rows,
        "most_percent": [100 * float(largest_day), 100 * float(largest_hour)],
        "panels": [
            {
                "name": name,
                "day": _bytes(_ink(shares[name].sum(axis=0), largest_day)),
                "hours": _bytes(_ink(shares[name], largest_hour)),
                "sample": _sample(data, scope),
            }
            for name, data in panels.items()
        ],
        "roads": None if roads is None else _roads(roads, scope),
        "areas": _areas(rules, scope),
        "uncertain": None,
    }


def add_uncertain_cells(data: dict[str, Any], found: Uncertainty) -> dict[str, Any]:
    """The same data with a bit for each cell whose estimate rests on the prior, to be shaded."""
    cells = uncertain_cells(found, data["cell_m"], data["columns"], data["rows"])
    return {**data, "uncertain": _bytes(np.packbits(cells, bitorder="little"))}


def _cell_m(scope: Scope) -> float:
    least = math.sqrt(scope.width_m * scope.height_m / _MOST_CELLS)
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10) if factor * power >= least)


def _shares(trajectories: Trajectories, scope: Scope, cell_m: float, columns: int, rows: int) -> NDArray[np.float64]:
    """(24, rows · columns) share of all points by hour of the day and cell; in pieces, for flat memory."""
    counts = np.zeros(24 * rows * columns, np.int64)
    for piece in batches(trajectories):
        x, y = scope.to_metres(piece.lon, piece.lat)
        inside = (x >= 0) & (x <= scope.width_m) & (y >= 0) & (y <= scope.height_m)
        column = np.minimum((x[inside] / cell_m).astype(np.int64), columns - 1)
        row = np.minimum((y[inside] / cell_m).astype(np.int64), rows - 1)
        hour = (scope.local_seconds(piece.t_utc[inside]) // 3600).astype(np.int64) % 24
        counts += np.bincount((hour * rows + row) * columns + column, minlength=len(counts))
    shares: NDArray[np.float64] = counts.reshape(24, -1) / max(counts.sum(), 1)
    return shares


def _ink(share: NDArray[np.float64], largest: float) -> NDArray[np.uint8]:
    """0 for empty cells, 1 to 255 on a logarithmic scale up to the largest share."""
    top = math.log1p(_LOG_SCALE * largest) or 1.0
    level = np.ceil(255 * np.log1p(_LOG_SCALE * share) / top)
    return np.clip(level, 0, 255).astype(np.uint8)


def _sample(trajectories: Trajectories, scope: Scope) -> dict[str, Any]:
    n = len(trajectories)
    chosen = np.sort(np.random.default_rng(0).permutation(n)[:_MOST_SAMPLES])
    chosen = chosen[np.cumsum(np.diff(trajectories.offsets)[chosen]) <= _MOST_SAMPLE_POINTS]
    offsets, points = ragged.take(trajectories.offsets, chosen)
    week_s = scope.local_seconds(trajectories.t_utc[trajectories.offsets[chosen]])
    return {
        "counts": np.diff(offsets).tolist(),
        "hour": (week_s // 3600 % 24).astype(int).tolist(),
        "xy": _units(trajectories.lon[points], trajectories.lat[points], scope),
    }


def _roads(roads: RoadMap, scope: Scope) -> dict[str, Any]:
    """Roads inside the box, the most important classes first, limited by the size of a page."""
    inside = clip_roads(roads, scope)
    rank = np.asarray(inside.road_class, np.int64).copy()
    rank[rank == ROAD_CLASSES.index("unknown")] = ROAD_CLASSES.index("residential")
    order = np.argsort(rank, kind="stable")
    order = order[np.cumsum(np.diff(inside.offsets)[order]) <= _MOST_ROAD_VERTICES]
    offsets, points = ragged.take(inside.offsets, order)
    return {
        "counts": _bytes(np.minimum(np.diff(offsets), _UNITS).astype("<u2")),
        "rank": _bytes(rank[order].astype(np.uint8)),
        "xy": _units(inside.lon[points], inside.lat[points], scope),
    }


def _areas(rules: Iterable[Any], scope: Scope) -> list[dict[str, Any]]:
    """Closed areas, and for each hour of the day 2 if they are closed then on every day, 1 on some, 0 on none."""
    found = []
    for rule in rules:
        area, hours = rule.closed_area(), rule.closed_hours()
        if area is None:
            continue
        outline = area.outline
        rings = [part.exterior for part in getattr(outline, "geoms", [outline]) if part.geom_type == "Polygon"]
        found.append(
            {
                "name": rule.name,
                "hours": [2 if hours is None else _meets(hours.windows, hour) for hour in range(24)],
                "rings": [_flat(np.asarray(ring.coords), scope) for ring in rings],
            }
        )
    return found


def _meets(windows: tuple[tuple[float, float], ...], hour: int) -> int:
    week_s = 7 * 86_400.0
    days = 0
    for day in range(7):
        start = (day * 24 + hour) * 3600.0
        turns = (start - week_s, start, start + week_s)  # a window may run past Sunday's midnight
        days += any(begin < turn + 3600 and end > turn for begin, end in windows for turn in turns)
    return 0 if days == 0 else 1 + (days == 7)


def _flat(xy_m: NDArray[np.float64], scope: Scope) -> list[int]:
    share = xy_m[:, :2] / [scope.width_m, scope.height_m]
    return np.round(np.clip(share, 0, 1) * _UNITS).astype(int).ravel().tolist()


def _units(lon: NDArray[np.float64], lat: NDArray[np.float64], scope: Scope) -> str:
    x, y = scope.to_metres(lon, lat)
    share = np.column_stack([x / scope.width_m, y / scope.height_m])
    return _bytes(np.round(np.clip(share, 0, 1) * _UNITS).astype("<u2"))


def _bytes(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
