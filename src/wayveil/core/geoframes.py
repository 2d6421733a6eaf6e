"""Trajectories as GeoPandas frames."""

from typing import TYPE_CHECKING, Any

import numpy as np

from wayveil.core.optional import import_optional
from wayveil.core.tables import table_of
from wayveil.errors import InputError

if TYPE_CHECKING:
    from wayveil.core.trajectories import Trajectories


def geo_frame(trajectories: "Trajectories", shapes: str) -> Any:
    """A GeoDataFrame in WGS 84: one row per trajectory ("lines") or per point ("points"), with times as timestamps."""
    if shapes not in ("lines", "points"):
        raise InputError("to_geopandas takes 'lines' or 'points'.")
    geopandas, pandas = import_optional("geopandas"), import_optional("pandas")
    import shapely

    table = table_of(trajectories)
    t = pandas.to_datetime(trajectories.t_utc, unit="s", utc=True)
    users = {} if trajectories.user is None else {"user_id": table["user_id"].to_pandas()}
    if shapes == "points":
        where = geopandas.points_from_xy(trajectories.lon, trajectories.lat)
        columns = {"traj_id": table["traj_id"].to_numpy(), "t": t, **users}
        return geopandas.GeoDataFrame(columns, geometry=where, crs="EPSG:4326")
    offsets = trajectories.offsets
    first, last = offsets[:-1], offsets[1:] - 1
    xy = np.c_[trajectories.lon, trajectories.lat]
    lines = np.array([
        shapely.linestrings(xy[a : b + 1]) if b > a else shapely.points(xy[a]) for a, b in zip(first, last)
    ], object)  # fmt: skip
    own = {name: column.iloc[first].to_numpy() for name, column in users.items()}
    columns = {"traj_id": np.arange(len(first)), "start": t[first], "end": t[last], **own}
    return geopandas.GeoDataFrame(columns, geometry=lines, crs="EPSG:4326")
