"""GeoPandas frames and MovingPandas trajectories: rows with a point or a line as geometry."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.trajectories import is_missing
from wayveil.errors import InputError
from wayveil.io.layouts import TIMES_NAMES, line_roles
from wayveil.io.options import KNOWN_NAMES, SECOND_NAMES, ReadOptions
from wayveil.io.readers.crs import to_degrees
from wayveil.io.readers.json_records import role_value
from wayveil.io.readers.labels import Labels, labels_of_values
from wayveil.io.readers.points import Points
from wayveil.io.readers.tables import Known, object_labels, points_of_table, table_of_columns
from wayveil.io.readers.times import to_utc_seconds

_GEOMETRY = "geometry"


def points_of_geoframe(frame: Any, options: ReadOptions, origin: str) -> Points:
    """The rows of a GeoDataFrame, or of MovingPandas' Trajectory or TrajectoryCollection."""
    if type(frame).__module__.partition(".")[0] == "movingpandas":
        return _points_of_collection(frame, options, origin)
    import shapely

    plain = _plain(frame, options)
    shapes = np.asarray(frame.geometry.array)
    names = [*map(str, plain.columns), _GEOMETRY]
    roles = line_roles(names, options, origin, len(names) - 1)
    kept = roles.positions[:-1]  # the contents of other columns must not matter
    plain, roles = plain.iloc[:, kept], roles.moved({old: new for new, old in enumerate(roles.positions)})
    wkb = pa.array(list(shapely.to_wkb(shapes, flavor="iso")), pa.large_binary())
    table = table_of_columns(plain).append_column(_GEOMETRY, pa.chunked_array([wkb]))
    return points_of_table(table, roles, options, origin, known=Known(object_labels(plain, roles), frame.crs))


def _plain(frame: Any, options: ReadOptions) -> Any:
    """The frame without its geometry; if no column has the times, an index of times becomes the column `t`."""
    import pandas

    plain = pandas.DataFrame(frame.drop(columns=frame.geometry.name))
    known = {*KNOWN_NAMES["time"], *SECOND_NAMES["time"], *TIMES_NAMES}
    named = options.time is not None or known & {str(name).strip().lower() for name in plain.columns}
    if isinstance(frame.index, pandas.DatetimeIndex) and not named:
        plain.insert(0, "t", frame.index)
    return plain


def _points_of_collection(collection: Any, options: ReadOptions, origin: str) -> Points:
    """Each trajectory of MovingPandas is read on its own: its id, reference system, times, and the user of each row.

    MovingPandas drops time zones, so `timezone` is always required.
    """
    if options.timezone is None:
        raise InputError("MovingPandas drops time zones; name the zone of its times with timezone=.")
    trips = list(getattr(collection, "trajectories", [collection]))
    owner = ragged.owners(np.array([len(trip.df) for trip in trips], np.int64))
    label = labels_of_values([_scalar(trip.id) for trip in trips]).take(owner)
    places = [_places(trip, origin) for trip in trips]
    lon, lat = (np.concatenate([np.empty(0), *(place[axis] for place in places)]) for axis in (0, 1))
    t_utc = np.concatenate([np.empty(0), *(_seconds(trip.df.index, options, origin) for trip in trips)])
    return Points(label, lon, lat, t_utc, _users(trips, options))


def _places(trip: Any, origin: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Degrees of a trajectory's points, which MovingPandas may still keep in two columns."""
    import shapely

    shapes = np.asarray(trip.df.geometry.array)
    x, y = shapely.get_x(shapes), shapely.get_y(shapes)
    columns = (getattr(trip, "x", None), getattr(trip, "y", None))
    if shapely.is_missing(shapes).all() and set(columns) <= set(trip.df.columns):
        x, y = (np.array([_number(value) for value in trip.df[column]], float) for column in columns)
    return to_degrees(x, y, trip.df.crs, origin)


def _seconds(index: Any, options: ReadOptions, origin: str) -> NDArray[np.float64]:
    import pandas

    if not isinstance(index, pandas.DatetimeIndex):
        return np.full(len(index), np.nan)
    return to_utc_seconds(pa.chunked_array([pa.array(index, from_pandas=True)]), options.timezone, origin)


def _users(trips: list[Any], options: ReadOptions) -> Labels | None:
    """The user of each row, from the columns of its own trajectory."""
    found: list[Any] = []
    for trip in trips:
        columns = {str(name): at for at, name in enumerate(trip.df.columns)}
        at = role_value(columns, "user", options.user)
        found += [None] * len(trip.df) if at is None else map(_scalar, trip.df.iloc[:, at])
    named = options.measured_unit == "user" or any(not is_missing(user) for user in found)
    return labels_of_values(found) if named else None


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float | np.number) else np.nan


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
