"""Rules as a picture and as GeoJSON for the page's map."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from wayveil.rules.area import Area
from wayveil.rules.bounds import StayWithin
from wayveil.rules.closed import Closed
from wayveil.rules.one_way import OneWay
from wayveil.rules.rule import Rule, unique_names
from wayveil.rules.speed import Classes, SpeedLimit
from wayveil.rules.unmapped import is_unmapped
from wayveil.scope import Scope

_CLOSED, _SPEED, _ONE_WAY, _WITHIN = "#b3261e", "#b26a00", "#1f4e9c", "#2e7d32"
_MOST_ARROWS = 400
_MOST_PIECES = 40_000
_LONGEST_NAME = 30

ToAxes = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def draw_rules(
    ax: Any, rules: Iterable[Rule], scope: Scope, to_axes: ToAxes | None = None, *, border: bool = True
) -> None:
    """Draw each rule that has a place, labelled by its name, into matplotlib axes in the scope's metres.

    `to_axes` maps metres to the axes' own coordinates where those are others, `scope.to_degrees` for example.
    `border` draws the scope's own box.
    """
    rules = tuple(rules)
    place = to_axes or (lambda x, y: (x, y))
    if border:
        corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]) * [scope.width_m, scope.height_m]
        ax.plot(*place(*corners.T), color="#444444", linewidth=1.0, linestyle="--", label="scope")
    for rule, name in zip(rules, unique_names(rules)):
        label = _plain(name)
        if not has_place(rule):
            continue
        if isinstance(rule, Closed):
            _draw_area(ax, rule.area, scope, place, label, color=_CLOSED, alpha=0.35, hatch="///")
        elif isinstance(rule, StayWithin):
            _draw_area(ax, rule.area, scope, place, label, facecolor="none", edgecolor=_WITHIN, linewidth=1.6)
        elif isinstance(rule, SpeedLimit) and isinstance(rule.where, Area):
            _draw_area(ax, rule.where, scope, place, label, facecolor=_SPEED, alpha=0.2, edgecolor=_SPEED)
        elif isinstance(rule, SpeedLimit) and isinstance(rule.where, Classes):
            _draw_pieces(ax, rule.where.segments.ends[rule.where.chosen], place, label, _SPEED)
        elif isinstance(rule, OneWay):
            ends = rule.segments.ends[rule.oneway]
            _draw_pieces(ax, ends, place, label, _ONE_WAY)
            _draw_arrows(ax, ends, place)
    ax.set_aspect("equal" if to_axes is None else ax.get_aspect())


def has_place(rule: Rule) -> bool:
    """Whether there is something of a rule to draw: an area, a line, streets of a map."""
    if isinstance(rule, StayWithin):
        return not rule.of_scope
    if isinstance(rule, SpeedLimit):
        return rule.where is not None and not is_unmapped(rule)
    return isinstance(rule, Closed) or (isinstance(rule, OneWay) and not is_unmapped(rule))


def _plain(name: str) -> str:
    # matplotlib hides labels that start with an underscore and reads dollar signs as mathematics.
    return name.lstrip("_").replace("$", r"\$") or "rule"


def _draw_area(ax: Any, area: Area, scope: Scope, place: ToAxes, label: str, **style: Any) -> None:
    import shapely
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path
    from matplotlib.patheffects import withStroke

    frame = shapely.box(0, 0, scope.width_m, scope.height_m)
    vertices, codes = [], []
    for ring in shapely.get_rings(shapely.get_parts(area.outline.intersection(frame))):
        xy = shapely.get_coordinates(ring)
        vertices.append(np.column_stack(place(xy[:, 0], xy[:, 1])))
        codes += [Path.MOVETO] + [Path.LINETO] * (len(xy) - 2) + [Path.CLOSEPOLY]
    if not vertices:
        return
    ax.add_patch(PathPatch(Path(np.concatenate(vertices), codes), label=label, **style))
    # Areas of one kind look alike: the name says which is which.
    middle = max(shapely.get_parts(area.outline.intersection(frame)), key=lambda part: part.area).point_on_surface()
    x, y = place(np.array([middle.x]), np.array([middle.y]))
    name = label if len(label) <= _LONGEST_NAME else label[: _LONGEST_NAME - 1] + "…"
    written = ax.text(float(x[0]), float(y[0]), name, fontsize="x-small", ha="center", va="center", zorder=10)
    written.set(clip_on=True, path_effects=[withStroke(linewidth=2.5, foreground="white")])


def _draw_pieces(ax: Any, ends: np.ndarray, place: ToAxes, label: str, color: str) -> None:
    from matplotlib.collections import LineCollection

    every = int(np.ceil(len(ends) / _MOST_PIECES))
    start, stop = (np.column_stack(place(ends[::every, i], ends[::every, i + 1])) for i in (0, 2))
    ax.add_collection(LineCollection(list(np.stack([start, stop], axis=1)), colors=color, linewidths=0.8, label=label))


def _draw_arrows(ax: Any, ends: np.ndarray, place: ToAxes) -> None:
    """Arrows on the longest pieces: enough to see the directions, few enough to see anything."""
    length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
    for piece in ends[np.argsort(-length, kind="stable")[:_MOST_ARROWS]]:
        x, y = place(piece[0::2], piece[1::2])
        ax.annotate(
            "",
            xy=(0.3 * x[0] + 0.7 * x[1], 0.3 * y[0] + 0.7 * y[1]),
            xytext=(0.6 * x[0] + 0.4 * x[1], 0.6 * y[0] + 0.4 * y[1]),
            arrowprops={"arrowstyle": "-|>", "color": _ONE_WAY, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
        )


def rules_geojson_for_page(rules: Iterable[Rule], scope: Scope) -> dict[str, Any]:
    """A FeatureCollection in degrees of the areas and drawn lines, for the interactive map.

    Properties: `rule`, `name`, `text` (plain words) and, for closed areas, `windows`: pairs of seconds since Monday
    00:00 on the scope's clocks, empty = always closed. Names are as the user wrote them; the page escapes them.
    """
    rules = tuple(rules)
    features = []
    for rule, name in zip(rules, unique_names(rules)):
        kind, geometry = None, None
        extra: dict[str, object] = {}
        if isinstance(rule, Closed):
            kind, geometry = "closed", _area_degrees(rule.area, scope)
            extra = {"windows": [list(window) for window in rule.hours.windows]}
        elif isinstance(rule, StayWithin) and not rule.of_scope:
            kind, geometry = "stay_within", _area_degrees(rule.area, scope)
        elif isinstance(rule, SpeedLimit) and isinstance(rule.where, Area):
            kind, geometry = "speed_limit", _area_degrees(rule.where, scope)
            extra = {"kmh": round(rule.limit_mps * 3.6, 3)}
        elif isinstance(rule, OneWay) and not rule.of_map:
            kind, geometry = "one_way", _lines_degrees(rule.segments.ends, scope)
        if kind is not None and geometry is not None:
            properties = {"rule": kind, "name": name, "text": rule.describe(), **extra}
            features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    return {"type": "FeatureCollection", "features": features}


def _area_degrees(area: Area, scope: Scope) -> dict[str, Any] | None:
    import shapely

    inside = area.outline.intersection(shapely.box(0, 0, scope.width_m, scope.height_m))
    polygons = [part for part in shapely.get_parts(inside) if part.geom_type == "Polygon"]
    rings = [[_ring_degrees(ring, scope) for ring in shapely.get_rings(polygon)] for polygon in polygons]
    return {"type": "MultiPolygon", "coordinates": rings} if rings else None


def _ring_degrees(ring: Any, scope: Scope) -> list[list[float]]:
    import shapely

    return _positions(shapely.get_coordinates(ring), scope)


def _lines_degrees(ends: np.ndarray, scope: Scope) -> dict[str, Any]:
    return {"type": "MultiLineString", "coordinates": [_positions(piece.reshape(2, 2), scope) for piece in ends]}


def _positions(xy: np.ndarray, scope: Scope) -> list[list[float]]:
    lon, lat = scope.to_degrees(xy[:, 0], xy[:, 1])
    return [[round(float(a), 7), round(float(b), 7)] for a, b in zip(lon, lat)]
