"""Draw rules to a picture file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.errors import InputError
from wayveil.io.atomic import atomic_path
from wayveil.rules.draw import draw_rules
from wayveil.rules.rule import Rule

_FORMATS = (".png", ".svg")


def check_picture_name(path: Path) -> None:
    """Raise an InputError unless the file name ends in .png or .svg."""
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"'{path.name}' must end in .png or .svg.")


def picture_of(rules_file: Path) -> Path:
    """Return the default name of the picture of a rules file, in the current folder."""
    return Path(f"{rules_file.stem}.check.png")


def save_picture(
    path: Path, rules: Iterable[Rule], scope: Scope, roads: RoadMap | None = None, *, border: bool = True
) -> None:
    """Draw the scope, the rules and the streets, with axes in kilometres from the south-west corner.

    With `border=False` the box of the scope is not drawn.
    """
    check_picture_name(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 8), layout="constrained")
    ax = figure.add_subplot()
    if roads is not None:
        _draw_streets(ax, roads, scope)
    draw_rules(ax, rules, scope, to_axes=lambda x, y: (x / 1000, y / 1000), border=border)
    ax.set_aspect("equal")
    pad = 0.03 * max(scope.width_m, scope.height_m) / 1000
    ax.set_xlim(-pad, scope.width_m / 1000 + pad)
    ax.set_ylim(-pad, scope.height_m / 1000 + pad)
    ax.set_xlabel("km east")
    ax.set_ylabel("km north")
    ax.set_title(f"Rules in {scope.name}".replace("$", r"\$"))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    with atomic_path(path, private=False) as part:
        figure.savefig(part, format=path.suffix.lower()[1:], dpi=150, bbox_inches="tight")


def _draw_streets(ax: Any, roads: RoadMap, scope: Scope) -> None:
    from matplotlib.collections import LineCollection

    x_m, y_m = scope.to_metres(roads.lon, roads.lat)
    lines = np.split(np.column_stack([x_m, y_m]) / 1000, roads.offsets[1:-1])
    ax.add_collection(LineCollection(lines, colors="#b8b8b8", linewidths=0.4, zorder=0.5))
