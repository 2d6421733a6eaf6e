"""GeoPandas frames and MovingPandas trajectories: rows with a point or a line as geometry."""

from typing import Any

import numpy as np
import pyarrow as pa

from wayveil.errors import InputError
from wayveil.io.layouts import TIMES_NAMES, line_roles
from wayveil.io.options import KNOWN_NAMES, SECOND_NAMES, ReadOptions
from wayveil.io.readers.labels import Labels, labels_of_values
from wayveil.io.readers.points import Points
from wayveil.io.readers.tables import object_labels, points_of_table, table_of_columns

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
    return points_of_table(table, roles, options, origin, given=object_labels(plain, roles), crs=frame.crs)


def _plain(frame: Any, options: ReadOptions) -> Any:
    """The frame without its geometry; without a column of times, an index of times becomes the column `t`."""
    import pandas

    plain = pandas.DataFrame(frame.drop(columns=frame.geometry.name))
    known = {*KNOWN_NAMES["time"], *SECOND_NAMES["time"], *TIMES_NAMES}
    named = options.time is not None or known & {str(name).strip().lower() for name in plain.columns}
    if isinstance(frame.index, pandas.DatetimeIndex) and not named:
        plain.insert(0, "t", frame.index)
    return plain


def _points_of_collection(collection: Any, options: ReadOptions, origin: str) -> Points:
    """Each trajectory of MovingPandas with its own id; a user is looked up in each trajectory's own columns."""
    import pandas
    import shapely

    trips = list(getattr(collection, "trajectories", [collection]))
    if not trips:
        raise InputError("The collection has no trajectories.")
    sizes = [len(trip.df) for trip in trips]
    owner = np.repeat(np.arange(len(trips)), sizes)
    shapes = np.concatenate([np.asarray(trip.df.geometry.array) for trip in trips])
    label = labels_of_values([_scalar(trip.id) for trip in trips]).take(owner)
    user = _users(trips, options)
    times = pandas.concat([trip.df.index.to_series() for trip in trips])
    table = pa.table({
        "t": pa.array(times, from_pandas=True),
        _GEOMETRY: pa.array(list(shapely.to_wkb(shapes, flavor="iso")), pa.large_binary()),
    })  # fmt: skip
    roles = line_roles(["t", _GEOMETRY], ReadOptions(time="t"), origin, 1)
    return points_of_table(table, roles, options, origin, given=(label, user), crs=trips[0].crs)


def _users(trips: list[Any], options: ReadOptions) -> Labels | None:
    from wayveil.io.readers.json_records import role_value

    found: list[Any] = []
    for trip in trips:
        first = trip.df.iloc[0]
        users = role_value({str(name): first[name] for name in trip.df.columns}, "user", options.user)
        found += [_scalar(users)] * len(trip.df)
    named = options.measured_unit == "user" or any(user is not None for user in found)
    return labels_of_values(found) if named else None


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
