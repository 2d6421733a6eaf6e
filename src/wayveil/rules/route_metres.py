"""How many metres of a route lie inside or outside an area; cutting routes into even steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import Polylines, lengths, place, steps, take
from wayveil.rules.area import Area


def metres_inside(lines: Polylines, area: Area) -> NDArray[np.float64]:
    """Return how many metres of each line lie inside the area: (lines,).

    For an area with very many corners the simpler outline is used, because an overlay costs time for every corner.
    """
    import shapely

    shape = area.outline
    shapely.prepare(shape)
    metres = np.zeros(len(lines))
    near = lines_near(lines, shape.bounds)
    if len(near) == 0:
        return metres
    part = take(lines, near)
    strings = _line_strings(part)
    whole, none = shapely.contains_properly(shape, strings), shapely.disjoint(shape, strings)
    metres[near[whole]] = lengths(part)[whole]
    some = ~whole & ~none
    metres[near[some]] = shapely.length(shapely.intersection(strings[some], shape))
    return metres


def metres_outside(lines: Polylines, area: Area) -> NDArray[np.float64]:
    """Return how many metres of each line lie outside the area: (lines,); see `metres_inside`."""
    import shapely

    shape = area.outline
    shapely.prepare(shape)
    metres = np.zeros(len(lines))
    if len(lines) == 0:
        return metres
    strings = _line_strings(lines)
    whole, none = shapely.disjoint(shape, strings), shapely.covers(shape, strings)
    metres[whole] = lengths(lines)[whole]
    some = ~whole & ~none
    metres[some] = shapely.length(shapely.difference(strings[some], shape))
    return metres


def lines_near(lines: Polylines, box: tuple[float, ...]) -> NDArray[np.int64]:
    """Return the indices of the lines whose bounding box meets the box (west, south, east, north)."""
    first = lines.offsets[:-1]
    if len(first) == 0:
        return first
    west, south, east, north = box
    apart = (np.maximum.reduceat(lines.x_m, first) < west) | (np.minimum.reduceat(lines.x_m, first) > east)
    apart |= (np.maximum.reduceat(lines.y_m, first) < south) | (np.minimum.reduceat(lines.y_m, first) > north)
    return np.flatnonzero(~apart)


def in_even_steps(lines: Polylines, step_m: float) -> Polylines:
    """Return the same lines in about equal steps; the steps of many maps are too short to have a heading."""
    each = np.ceil(lengths(lines) / step_m).astype(np.int64) + 1
    counts = np.maximum(each, 2)
    return place(lines, steps(lines), ragged.offsets_of(counts), ragged.ranks(counts) / np.repeat(counts - 1, counts))


def _line_strings(lines: Polylines) -> NDArray[np.object_]:
    import shapely

    owner = ragged.owners(np.diff(lines.offsets))
    return np.asarray(shapely.linestrings(np.c_[lines.x_m, lines.y_m], indices=owner))
