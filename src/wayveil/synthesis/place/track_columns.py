"""Tracks: points in metres and Unix seconds, as flat columns, and their rounding in a written file.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.rules.motion import Motion, motion_from_metres


@dataclass(frozen=True, eq=False)
class Tracks:
    """Points in metres and Unix seconds; track i owns `offsets[i]:offsets[i + 1]`."""

    offsets: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    t_utc: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def owner(self) -> NDArray[np.int64]:
        """Track of each point."""
        return ragged.owners(np.diff(self.offsets))

    @property
    def ends(self) -> NDArray[np.bool_]:
        """Whether each point is the first or the last of its track."""
        mask = np.zeros(len(self.x_m), bool)
        mask[self.offsets[:-1]] = True
        mask[self.offsets[1:] - 1] = True
        return mask


def take_tracks(tracks: Tracks, index: NDArray[np.int64]) -> Tracks:
    """Return the tracks at `index`."""
    offsets, points = ragged.take(tracks.offsets, index)
    return Tracks(offsets, tracks.x_m[points], tracks.y_m[points], tracks.t_utc[points])


def put_tracks(tracks: Tracks, index: NDArray[np.int64], part: Tracks) -> Tracks:
    """Return the tracks with those at `index` replaced by tracks with as many points."""
    _, points = ragged.take(tracks.offsets, index)
    x, y, t = tracks.x_m.copy(), tracks.y_m.copy(), tracks.t_utc.copy()
    x[points], y[points], t[points] = part.x_m, part.y_m, part.t_utc
    return Tracks(tracks.offsets, x, y, t)


def as_written(tracks: Tracks, scope: Scope) -> Tracks:
    """Return the tracks as a reader of the written file gets them: degrees to 1e-7, times in whole seconds."""
    x, y = np.empty(len(tracks.x_m)), np.empty(len(tracks.x_m))
    for first in range(0, len(x), ragged.CACHED):
        part = slice(first, first + ragged.CACHED)
        x[part], y[part] = scope.to_metres(*written_degrees(tracks.x_m[part], tracks.y_m[part], scope))
    return Tracks(tracks.offsets, x, y, np.rint(tracks.t_utc))


def written_degrees(
    x_m: NDArray[np.float64], y_m: NDArray[np.float64], scope: Scope
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (lon, lat) as a file holds them: rounded to 1e-7 degrees, about a centimetre."""
    lon, lat = np.empty(len(x_m)), np.empty(len(x_m))
    for first in range(0, len(lon), ragged.CACHED):
        part = slice(first, first + ragged.CACHED)
        for column, degrees in zip((lon, lat), scope.to_degrees(x_m[part], y_m[part])):
            np.round(degrees, 7, out=column[part])
    return lon, lat


def motion_of_tracks(tracks: Tracks, scope: Scope) -> Motion:
    """Return the motion of the tracks, the input of rules."""
    return motion_from_metres(tracks.x_m, tracks.y_m, tracks.t_utc, tracks.offsets, scope)
