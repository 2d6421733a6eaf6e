"""The data of the interactive map as compact JSON: density by hour, sample trips, flows, roads, closed areas."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, batches
from wayveil.core.web import UNITS, encoded, positions, road_lines
from wayveil.report.map_flows import flows

_MOST_CELLS = 14_000
"""Cells of the density map. These limits keep a page below 3 MB."""
_MOST_SAMPLES = 4_000
"""Trips in the sample of each panel, which is drawn and animated."""
_MOST_SAMPLE_POINTS = 120_000
"""Points of these trips, in all panels together."""
_LOG_SCALE = 2e5
"""Shades follow log(1 + scale × share), so that small shares stay visible."""
_TICK_S = 2
"""Seconds per unit of time on the page: a day then fits into 16 bits."""


@dataclass(frozen=True)
class Overlay:
    """A grid that is hatched on the map: how uncertain the estimate is in each cell."""

    share: NDArray[np.float64]
    """(rows, columns) from 0 (not hatched) to 1, the southern row first."""
    cell_m: float


def map_data(
    scope: Scope,
    panels: dict[str, Trajectories],
    roads: RoadMap | None = None,
    rules: Iterable[Any] = (),
    uncertain: Overlay | None = None,
) -> dict[str, Any]:
    """Everything that the map draws; positions are whole units of 1/65535 of the box, from the south-west corner.

    `uncertain` marks places where the estimate rests on the prior.

    Privacy: free where every panel is synthetic; not private (trusted side only) where one is real.
    """
    cell_m = _cell_m(scope)
    columns, rows = math.ceil(scope.width_m / cell_m), math.ceil(scope.height_m / cell_m)
    shares = {name: _shares(data, scope, cell_m, columns, rows) for name, data in panels.items()}
    largest_hour = max((share.max() for share in shares.values() if share.size), default=0.0)
    largest_day = max((share.sum(axis=0).max() for share in shares.values() if share.size), default=0.0)
    most_points = _MOST_SAMPLE_POINTS // max(len(panels), 1)
    return {
        "width_m": round(scope.width_m, 1),
        "height_m": round(scope.height_m, 1),
        "cell_m": cell_m,
        "columns": columns,
        "rows": rows,
        "log_scale": _LOG_SCALE,
        "most_percent": [100 * float(largest_day), 100 * float(largest_hour)],
        "tick_s": _TICK_S,
        "panels": [
            {
                "name": name,
                "trips": len(data),
                "day": encoded(_shade_levels(shares[name].sum(axis=0), largest_day)),
                "hours": encoded(_shade_levels(shares[name], largest_hour)),
                "sample": _sample(data, scope, most_points),
                "flows": flows(data, scope),
            }
            for name, data in panels.items()
        ],
        "roads": None if roads is None else road_lines(roads, scope),
        "areas": _areas(rules, scope),
        "uncertain": None if uncertain is None else _overlay(uncertain),
    }


def _overlay(grid: Overlay) -> dict[str, Any]:
    rows, columns = grid.share.shape
    level = np.round(255 * np.clip(grid.share, 0, 1)).astype(np.uint8)
    return {"columns": columns, "rows": rows, "cell_m": grid.cell_m, "level": encoded(level)}


def _cell_m(scope: Scope) -> float:
    least = math.sqrt(scope.width_m * scope.height_m / _MOST_CELLS)
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10) if factor * power >= least)


def _shares(trajectories: Trajectories, scope: Scope, cell_m: float, columns: int, rows: int) -> NDArray[np.float64]:
    """(24, rows · columns) share of all points by hour of the day and cell; in pieces, to bound the memory."""
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


def _shade_levels(share: NDArray[np.float64], largest: float) -> NDArray[np.uint8]:
    """0 for empty cells, 1 to 255 on a logarithmic scale up to the largest share."""
    top = math.log1p(_LOG_SCALE * largest) or 1.0
    level = np.ceil(255 * np.log1p(_LOG_SCALE * share) / top)
    return np.clip(level, 0, 255).astype(np.uint8)


def _sample(trajectories: Trajectories, scope: Scope, most_points: int) -> dict[str, Any]:
    """Some trips in a random order, with the time of day of each point in units of two seconds."""
    n = len(trajectories)
    chosen = np.random.default_rng(0).permutation(n)[:_MOST_SAMPLES]
    chosen = chosen[np.cumsum(np.diff(trajectories.offsets)[chosen]) <= most_points]
    offsets, points = ragged.take(trajectories.offsets, chosen)
    day_s = scope.local_seconds(trajectories.t_utc[points]) % 86_400
    return {
        "counts": encoded(np.diff(offsets).astype("<u4")),
        "t": encoded((day_s // _TICK_S).astype("<u2")),
        "xy": positions(trajectories.lon[points], trajectories.lat[points], scope),
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
                "hours": [2 if hours is None else _closed_level(hours.windows, hour) for hour in range(24)],
                "rings": [_page_positions(np.asarray(ring.coords), scope) for ring in rings],
            }
        )
    return found


def _closed_level(windows: tuple[tuple[float, float], ...], hour: int) -> int:
    week_s = 7 * 86_400.0
    days = 0
    for day in range(7):
        start = (day * 24 + hour) * 3600.0
        starts = (start - week_s, start, start + week_s)  # a window may run past Sunday's midnight
        days += any(begin < hour_start + 3600 and end > hour_start for begin, end in windows for hour_start in starts)
    return 0 if days == 0 else 1 + (days == 7)


def _page_positions(xy_m: NDArray[np.float64], scope: Scope) -> list[int]:
    share = xy_m[:, :2] / [scope.width_m, scope.height_m]
    return np.round(np.clip(share, 0, 1) * UNITS).astype(int).ravel().tolist()
