"""Plots for notebooks, with matplotlib: trajectories as lines, points and counts as a density."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.html import PRIVATE_NOTICE, central_box, unwrapped

if TYPE_CHECKING:
    from wayveil.core.trajectories import Trajectories

MOST_LINES = 2_000
"""Up to this many trajectories are drawn as lines; with more, lines would cover the map, so the density is drawn."""
_CELLS = 120
"""Cells along the longer side of a density."""
_INK = "#1f4e9c"


def plot_trajectories(trajectories: "Trajectories", ax: Any = None, *, title: str = PRIVATE_NOTICE) -> Any:
    """Draw trajectories as lines, or the density of their points if there are many; returns the axes.

    The map covers the area of most points, so that a few wrong positions do not shrink the rest to a dot.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm

    ax = new_axes(ax)
    ax.set_title(title, fontsize="medium")
    lon, lat = unwrapped(trajectories.lon), trajectories.lat
    usable = np.isfinite(lon) & np.isfinite(lat)
    if not usable.any():
        return ax
    west, south, east, north = central_box(lon[usable], lat[usable])
    frame(ax, west, south, east, north)
    if len(trajectories) <= MOST_LINES:
        points = np.c_[lon, lat]
        lines = np.split(points, trajectories.offsets[1:-1])
        opacity = min(1.0, max(0.08, 20 / len(trajectories)))
        ax.add_collection(LineCollection(lines, colors=_INK, linewidths=0.8, alpha=opacity))
        single = points[trajectories.offsets[:-1][np.diff(trajectories.offsets) == 1]]
        ax.plot(single[:, 0], single[:, 1], ".", color=_INK, markersize=2, alpha=opacity)
    else:
        shrink = math.cos(math.radians((south + north) / 2))
        side = max((east - west) * shrink, north - south) / _CELLS
        bins = [max(1, math.ceil((east - west) * shrink / side)), max(1, math.ceil((north - south) / side))]
        ax.hist2d(lon[usable], lat[usable], bins=bins, range=[[west, east], [south, north]], cmin=1,
                  norm=LogNorm(), cmap="Blues")  # fmt: skip
    return ax


def plot_density(density: NDArray[np.float64], box: tuple[float, float, float, float], ax: Any = None) -> Any:
    """Draw a density, row 0 in the south, over a box (west, south, east, north); empty where it is zero."""
    from matplotlib.colors import LogNorm

    ax = new_axes(ax)
    west, south, east, north = box
    frame(ax, *box)
    shown = np.ma.masked_less_equal(density, 0.0)
    if shown.count():
        ax.imshow(shown, origin="lower", extent=(west, east, south, north), norm=LogNorm(), cmap="Blues", aspect="auto")
        frame(ax, *box)
    return ax


def new_axes(ax: Any) -> Any:
    """The given axes, or those of a new figure."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(5, 5))[1] if ax is None else ax


def frame(ax: Any, west: float, south: float, east: float, north: float) -> None:
    """Set limits in degrees, with the same scale in metres in both directions."""
    ax.set_xlim(west, east)
    ax.set_ylim(south, north)
    ax.set_aspect(1 / max(math.cos(math.radians((south + north) / 2)), 1e-6))
    ax.set_xlabel("degrees east")
    ax.set_ylabel("degrees north")
