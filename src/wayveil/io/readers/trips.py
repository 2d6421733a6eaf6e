"""Trip tables: one row per trip, with the place and time of its start and of its end.

Bike-share and taxi systems publish such tables. A trip becomes a trajectory of two points.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.io.layouts import TripRoles
from wayveil.io.options import ReadOptions
from wayveil.io.readers.labels import Labels
from wayveil.io.readers.numbers import degrees_of
from wayveil.io.readers.points import Points
from wayveil.io.readers.times import times_of


def points_of_trip_table(
    table: pa.Table,
    roles: TripRoles,
    options: ReadOptions,
    origin: str,
    labels: tuple[Labels | None, Labels | None],
) -> Points:
    """Two points per row: the starts of all rows, then their ends.

    A trip with an unusable start or end contributes nothing: half a trip would count as one point. The same
    holds for a trip that ends before it starts.
    """

    def degrees(at: int, role: str) -> NDArray[np.float64]:
        return degrees_of(table.column(at), role, origin)

    lon = np.stack([degrees(roles.start_lon, "lon"), degrees(roles.end_lon, "lon")])
    lat = np.stack([degrees(roles.start_lat, "lat"), degrees(roles.end_lat, "lat")])
    start, end = (
        times_of(table.column(at), options.timezone, origin, options.dayfirst)
        for at in (roles.start_time, roles.end_time)
    )
    t_utc = np.stack([start.utc_s, end.utc_s])
    zoneless = np.zeros(len(table), bool)
    for one in (start.zoneless, end.zoneless):
        zoneless |= False if one is None else one
    t_utc[:, ~(t_utc[0] <= t_utc[1])] = np.nan
    with np.errstate(invalid="ignore"):
        placed = (np.abs(lon) <= 180) & (np.abs(lat) <= 90)
    half = placed[0] != placed[1]
    lon[:, half], lat[:, half] = np.nan, np.nan
    both = np.tile(np.arange(len(table)), 2)
    label, user = labels
    label = Labels(np.arange(len(table))) if label is None else label
    return Points(
        label.take(both), lon.ravel(), lat.ravel(), t_utc.ravel(), None if user is None else user.take(both),
        np.tile(zoneless, 2) if zoneless.any() else None,
    )  # fmt: skip
