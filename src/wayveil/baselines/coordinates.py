"""What the baselines share: data in metres inside a box, and trajectories from sampled points."""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import Box
from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.core.trajectories import EMPTY, Trajectories
from wayveil.errors import InputError

Metres = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


def in_metres(trajectories: Trajectories, scope: Scope, published: bool) -> tuple[Box, Metres, NDArray[np.float64]]:
    """The box, (offsets, x, y) of the trajectories, and the times of their points.

    Published: the bounding box of the data. Otherwise the scope's, and points outside are not counted.

    Privacy: not private (trusted side only); the box is public unless `published`.
    """
    x_m, y_m = scope.to_metres(trajectories.lon, trajectories.lat)
    if published:
        if len(trajectories) == 0:
            raise InputError("The published method takes its box from the data, and the data is empty.")
        west, south = float(x_m.min()), float(y_m.min())
        width, height = max(float(x_m.max()) - west, 1.0), max(float(y_m.max()) - south, 1.0)
        return Box(west, south, width, height), (trajectories.offsets, x_m, y_m), trajectories.t_utc
    inside = (x_m >= 0) & (x_m <= scope.width_m) & (y_m >= 0) & (y_m <= scope.height_m)
    owner = ragged.owners(np.diff(trajectories.offsets))
    counts = np.bincount(owner[inside], minlength=len(trajectories))
    offsets = ragged.offsets_of(counts[counts > 0])
    box = Box(0.0, 0.0, scope.width_m, scope.height_m)
    return box, (offsets, x_m[inside], y_m[inside]), trajectories.t_utc[inside]


def from_points(
    offsets: NDArray[np.int64],
    x_m: NDArray[np.float64],
    y_m: NDArray[np.float64],
    scope: Scope,
    t_utc: NDArray[np.float64] | None = None,
) -> Trajectories:
    """Trajectories of drawn points; without times, t counts seconds from 0, one per point.

    Privacy: free (post-processing).
    """
    if len(offsets) < 2:
        return EMPTY
    lon, lat = scope.to_degrees(x_m, y_m)
    rank = np.arange(len(x_m)) - np.repeat(offsets[:-1], np.diff(offsets))
    return Trajectories(offsets, lon, lat, rank.astype(float) if t_utc is None else t_utc)


def output_size(n: int | None, counted: float) -> int:
    """The requested number of trajectories, or the (noisy) count, at least 1."""
    if n is not None and n < 1:
        raise InputError("n= must be at least 1.")
    return n if n is not None else max(1, round(counted))
