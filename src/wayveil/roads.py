"""A public road map as frozen columns; reading one from a file is in `wayveil.formats.roads`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError

ROAD_CLASSES = ("motorway", "trunk", "primary", "secondary", "tertiary", "residential", "service", "path", "unknown")
"""From the widest to the narrowest; OpenStreetMap's link classes count as their parent's."""


@dataclass(frozen=True, eq=False)
class RoadMap:
    """Polylines in degrees with a class, a direction flag and a speed limit; road i owns `offsets[i]:offsets[i + 1]`."""

    offsets: NDArray[np.int64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    road_class: NDArray[np.int8]
    """(n,) index into ROAD_CLASSES."""
    oneway: NDArray[np.int8]
    """(n,) 1 = only along the polyline, 0 = both ways, -1 = not known."""
    maxspeed_kmh: NDArray[np.float64]
    """(n,) NaN where not known."""

    def __post_init__(self) -> None:
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.lon):
            raise InputError("A road map's offsets must start at 0 and end at the number of vertices.")
        if (np.diff(self.offsets) < 2).any():
            raise InputError("Each road needs at least two vertices.")
        for column in (self.road_class, self.oneway, self.maxspeed_kmh):
            if len(column) != len(self.offsets) - 1:
                raise InputError("A road map needs one class, direction and speed for each road.")

    def __len__(self) -> int:
        return len(self.offsets) - 1
