"""Small HTML summaries for notebooks: a notice, a table of facts and a density map as inline SVG.

Everything is self-contained: no script, no style sheet, no external resource. All text is escaped.
"""

import datetime as dt
import html
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from wayveil.core.trajectories import Trajectories

PRIVATE_NOTICE = "Private data: do not share this output."
_MOST_CELLS = 48
"""Cells along the longer side of the map: the largest possible drawing stays below 30 kB."""
_SHOWN_PX = 240
"""Longer side of the small map in a notebook, in pixels."""
_OPACITIES = (0.15, 0.35, 0.6, 0.95)
"""Opacity of the four steps of the map, from few points to many."""
_CENTRAL_PERCENT = (0.5, 99.5)
"""The map covers the area of most points, so that a few wrong positions do not shrink the rest to a dot."""
_BOX_DEG = 0.01
"""The box is rounded outwards to this: its exact edges would be coordinates of single points."""

Facts = Iterable[tuple[str, str]]


def card(title: str, facts: Facts, *, notice: str = "", drawing: str = "", table: str = "") -> str:
    """One block of HTML; `drawing` and `table` are HTML from this module, everything else is text."""
    cell = "text-align:left;padding:1px 12px 1px 0;border:none;background:none"
    rows = "".join(
        f'<tr style="background:none"><th style="{cell};font-weight:normal;opacity:.7">{html.escape(label)}</th>'
        f'<td style="{cell}">{html.escape(value)}</td></tr>'
        for label, value in facts
    )
    warned = f'<p style="margin:2px 0;color:#b3261e"><b>{html.escape(notice)}</b></p>' if notice else ""
    left = f'<table style="border:none;margin:2px 0">{rows}</table>' if rows else ""
    return (
        f'<div style="font-size:13px"><p style="margin:2px 0"><b>{html.escape(title)}</b></p>{warned}'
        f'<div style="display:flex;gap:16px;align-items:flex-start"><div>{left}{table}</div>{drawing}</div></div>'
    )


def table_of_text(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of escaped text, the first column left and the others right aligned."""

    def line(tag: str, cells: Iterable[str]) -> str:
        parts = (
            f'<{tag} style="text-align:{"right" if column else "left"};padding:1px 8px">{html.escape(text)}</{tag}>'
            for column, text in enumerate(cells)
        )
        return f"<tr>{''.join(parts)}</tr>"

    return f"<table>{line('th', header)}{''.join(line('td', row) for row in rows)}</table>"


def density_svg(density: NDArray[np.float64], *, label: str) -> str:
    """A map of a density, row 0 in the south: darker where it is higher, empty where it is zero."""
    shown = _pooled(np.maximum(np.nan_to_num(np.asarray(density, float)), 0.0))
    rows, columns = shown.shape
    step = _steps(shown)
    paths = "".join(
        f'<path stroke-opacity="{opacity}" d="{_runs(step == k + 1)}"/>'
        for k, opacity in enumerate(_OPACITIES)
        if (step == k + 1).any()
    )
    scale = _SHOWN_PX / max(rows, columns)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(label)}" '
        f'width="{columns * scale:.0f}" height="{rows * scale:.0f}" viewBox="0 0 {columns} {rows}" '
        f'preserveAspectRatio="none" style="border:1px solid #8886;color:#1f4e9c">'
        f'<g transform="translate(0 .5)" stroke="currentColor" stroke-width="1" fill="none">{paths}</g></svg>'
    )


def points_svg(trajectories: "Trajectories", *, label: str) -> str:
    """A map of where the points are, which contains no coordinates; empty text if there are no points."""
    lon, lat = unwrapped(trajectories.lon), trajectories.lat
    usable = np.isfinite(lon) & np.isfinite(lat)
    lon, lat = lon[usable], lat[usable]
    if len(lon) == 0:
        return ""
    west, south, east, north = central_box(lon, lat)
    shrink = max(math.cos(math.radians((south + north) / 2)), 1e-6)
    side = max((east - west) * shrink, north - south)
    middle = (west + east) / 2, (south + north) / 2
    cells = _MOST_CELLS
    column = np.floor(((lon - middle[0]) * shrink / side + 0.5) * cells)
    row = np.floor(((lat - middle[1]) / side + 0.5) * cells)
    inside = (column >= 0) & (column < cells) & (row >= 0) & (row < cells)
    place = (row[inside] * cells + column[inside]).astype(np.int64)
    density = np.bincount(place, minlength=cells * cells).reshape(cells, cells).astype(float)
    return density_svg(density, label=label)


def central_box(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """West, south, east and north of the box that most points lie in, with a margin."""
    (west, east), (south, north) = (np.percentile(part, _CENTRAL_PERCENT) for part in (lon, lat))
    margin = 0.025 * max(east - west, north - south, 1e-3)
    return float(west - margin), float(south - margin), float(east + margin), float(north + margin)


def extent_facts(trajectories: "Trajectories") -> list[tuple[str, str]]:
    """Counts, days and the box of trajectories, the box rounded outwards to 0.01 degrees."""
    facts = [("trajectories", f"{len(trajectories):,}"), ("points", f"{len(trajectories.lon):,}")]
    if trajectories.user is not None:
        facts.append(("users", f"{len(set(trajectories.user.tolist()) - {None, ''}):,}"))
    t_utc = trajectories.t_utc[np.isfinite(trajectories.t_utc)]
    if len(t_utc):
        facts.append(("days (UTC)", span_text(_day(t_utc.min()), _day(t_utc.max()))))
    lon, lat = unwrapped(trajectories.lon), trajectories.lat
    usable = np.isfinite(lon) & np.isfinite(lat)
    if usable.any():
        low = [math.floor(part[usable].min() / _BOX_DEG) * _BOX_DEG for part in (lat, lon)]
        high = [math.ceil(part[usable].max() / _BOX_DEG) * _BOX_DEG for part in (lat, lon)]
        facts.append(("box", box_text(low[0], low[1], high[0], high[1])))
    return facts


def box_text(south: float, west: float, north: float, east: float) -> str:
    """A box in degrees, to two decimals."""
    west, east = ((lon + 180.0) % 360.0 - 180.0 if abs(lon) > 180.0 else lon for lon in (west, east))
    return f"{south:.2f} to {north:.2f} °N, {west:.2f} to {east:.2f} °E"


def span_text(first: str, last: str) -> str:
    """Two days, or one."""
    return first if first == last else f"{first} to {last}"


def _day(t_utc: float) -> str:
    try:
        return (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=float(t_utc))).date().isoformat()
    except OverflowError:
        return "out of range"


def unwrapped(lon: NDArray[np.float64]) -> NDArray[np.float64]:
    """Longitudes from 0 to 360 where the points lie on both sides of the antimeridian."""
    known = lon[np.isfinite(lon)]
    across = len(known) > 0 and np.ptp(known) > 180.0 and np.ptp(known % 360.0) < np.ptp(known)
    return lon % 360.0 if across else lon


def _pooled(density: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of blocks, at most `_MOST_CELLS` along either side."""
    block = max(1, math.ceil(max(density.shape) / _MOST_CELLS))
    padded = np.pad(density, [(0, -size % block) for size in density.shape])
    rows, columns = (size // block for size in padded.shape)
    pooled: NDArray[np.float64] = padded.reshape(rows, block, columns, block).sum(axis=(1, 3))
    return pooled


def _steps(density: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 where the density is zero, then 1 to 4 by the logarithm of the density."""
    most = density.max(initial=0.0)
    if most <= 0.0:
        return np.zeros(density.shape, np.int64)
    # Four steps, each a factor of five below the next; what is below all of them is drawn as the first.
    share = np.log(np.maximum(density / most, 1e-12)) / math.log(5.0)
    step = np.clip(len(_OPACITIES) + np.floor(share), 1, len(_OPACITIES)).astype(np.int64)
    return np.where(density > 0.0, step, 0)


def _runs(mask: NDArray[np.bool_]) -> str:
    """Horizontal strokes through the cells of a mask, one per run of cells; north is up."""
    rows = len(mask)
    edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    row, start = np.nonzero(edges == 1)
    stop = np.nonzero(edges == -1)[1]
    return "".join(
        f"M{first} {rows - 1 - line}h{last - first}"
        for line, first, last in zip(row.tolist(), start.tolist(), stop.tolist())
    )
