"""Draw rules on matplotlib axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from wayveil.core.scope import Scope
from wayveil.rules.area import Area
from wayveil.rules.bounds import StayWithin
from wayveil.rules.classes import Classes
from wayveil.rules.counting import unique_names
from wayveil.rules.one_way import OneWay
from wayveil.rules.rule import Rule
from wayveil.rules.speed import SpeedLimit
from wayveil.rules.unmapped import is_unmapped

_CLOSED, _SPEED, _ONE_WAY, _WITHIN = "#b3261e", "#b26a00", "#1f4e9c", "#2e7d32"
_MOST_ARROWS = 400
"""Number of arrows on one-way streets: enough to show the directions."""
_MOST_PIECES = 40_000
"""Number of street pieces that are drawn for one rule."""
_LONGEST_NAME = 30
"""Number of letters of a name that are shown in the picture."""

ToAxes = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def draw_rules(
    ax: Any, rules: Iterable[Rule], scope: Scope, to_axes: ToAxes | None = None, *, border: bool = True
) -> None:
    """Draw each rule that has a place, with its name, on matplotlib axes in the scope's metres.

    Parameters
    ----------
    to_axes
        Maps metres to the coordinates of the axes if those differ; for example `scope.to_degrees`.
    border
        Whether to draw the box of the scope.
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
        if (closed := rule.closed_area()) is not None:
            _draw_area(ax, closed, scope, place, label, color=_CLOSED, alpha=0.35, hatch="///")
        elif (stay := rule.stay_area()) is not None:
            _draw_area(ax, stay, scope, place, label, facecolor="none", edgecolor=_WITHIN, linewidth=1.6)
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
    """Return whether a rule has a place that can be drawn: an area, a line, streets of a map."""
    if isinstance(rule, StayWithin):
        return not rule.of_scope
    if isinstance(rule, SpeedLimit):
        return rule.where is not None and not is_unmapped(rule)
    if isinstance(rule, OneWay):
        return not is_unmapped(rule)
    return rule.closed_area() is not None or rule.stay_area() is not None


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
    # Areas of one kind look alike, so each is labelled with its name.
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
    """Draw arrows on the longest pieces."""
    length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
    for piece in ends[np.argsort(-length, kind="stable")[:_MOST_ARROWS]]:
        x, y = place(piece[0::2], piece[1::2])
        ax.annotate(
            "",
            xy=(0.3 * x[0] + 0.7 * x[1], 0.3 * y[0] + 0.7 * y[1]),
            xytext=(0.6 * x[0] + 0.4 * x[1], 0.6 * y[0] + 0.4 * y[1]),
            arrowprops={"arrowstyle": "-|>", "color": _ONE_WAY, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
        )
