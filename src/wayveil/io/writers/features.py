"""Lines with times: GeoJSON, the trips of kepler.gl, GeoPackage and FlatGeobuf.

A trajectory is a LineString, or a Point if it has a single point. The property `times` lists the time of each position.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from wayveil.core.optional import gis
from wayveil.core.tables import user_column, whole_seconds
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.atomic import atomic_path
from wayveil.io.options import Notes
from wayveil.io.writers.stamps import iso_times

Times = Literal["iso", "unix"]
_DRIVERS = {"gpkg": "GPKG", "fgb": "FlatGeobuf"}


def _times(trajectories: Trajectories, times: Times) -> list[Any]:
    if times == "iso":
        return iso_times(trajectories.t_utc)
    whole = whole_seconds(trajectories.t_utc)
    return list((trajectories.t_utc.astype(np.int64) if whole else trajectories.t_utc).tolist())


def _users(trajectories: Trajectories) -> list[Any] | None:
    return None if trajectories.user is None else list(user_column(trajectories.user).to_pylist())


def write_geojson(
    trajectories: Trajectories, path: Path, notes: Notes, *, private: bool, times: Times, kepler: bool
) -> None:
    """Write a FeatureCollection, one feature per line; `kepler` puts Unix seconds into the fourth coordinate.

    The notes are the member `wayveil` of the collection.
    """
    with atomic_path(path, private=private) as part, open(part, "w", encoding="utf-8") as out:
        head = {"type": "FeatureCollection", **({"wayveil": notes} if notes else {})}
        out.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "features": [')
        for k, feature in enumerate(_features(trajectories, "unix" if kepler else times, kepler)):
            out.write((",\n" if k else "\n") + json.dumps(feature, ensure_ascii=False, allow_nan=False))
        out.write("\n]}\n")


def _features(trajectories: Trajectories, times: Times, kepler: bool) -> Iterator[dict[str, Any]]:
    users, stamps = _users(trajectories), _times(trajectories, times)
    lon, lat, offsets = trajectories.lon.tolist(), trajectories.lat.tolist(), trajectories.offsets.tolist()
    for i in range(len(trajectories)):
        rows = range(offsets[i], offsets[i + 1])
        properties: dict[str, Any] = {"traj_id": i, **({} if users is None else {"user_id": users[i]})}
        if kepler:
            positions = [[lon[k], lat[k], 0, stamps[k]] for k in rows]
        else:
            positions = [[lon[k], lat[k]] for k in rows]
            properties["times"] = [stamps[k] for k in rows]
        single = len(positions) == 1
        geometry = {"type": "Point" if single else "LineString", "coordinates": positions[0] if single else positions}
        yield {"type": "Feature", "properties": properties, "geometry": geometry}


def write_vector(
    trajectories: Trajectories, path: Path, kind: str, notes: Notes, *, private: bool, times: Times
) -> None:
    """Write one layer `trips` of lines, with the columns traj_id, times (a JSON list) and, with users, user_id."""
    import shapely

    pyogrio = gis()
    counts, offsets = np.diff(trajectories.offsets), trajectories.offsets
    if (counts == 0).any():
        raise InputError("A trajectory without points cannot be written.")
    stamps, users = _times(trajectories, times), _users(trajectories)
    xy = np.column_stack([trajectories.lon, trajectories.lat])
    shapes = np.empty(len(counts), object)
    single = counts == 1
    shapes[single] = shapely.points(xy[offsets[:-1][single]])
    long = np.flatnonzero(~single)
    if len(long):
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in long])
        shapes[~single] = shapely.linestrings(xy[rows], indices=np.repeat(np.arange(len(long)), counts[long]))
    lists = [json.dumps(stamps[offsets[i] : offsets[i + 1]]) for i in range(len(counts))]
    columns: dict[str, Any] = {"traj_id": np.arange(len(counts))}
    if users is not None:
        texts = any(isinstance(user, str) for user in users)
        columns["user_id"] = np.array(users, object if texts else np.int64)
    columns["times"] = np.array(lists, object)
    # GDAL sets the permissions of its file and writes others next to it, so it works in a folder that only the owner
    # can read.
    with atomic_path(path, private=private) as part, TemporaryDirectory(prefix=".", dir=path.parent) as folder:
        written = Path(folder) / f"trips.{kind}"
        pyogrio.raw.write(
            str(written), geometry=shapely.to_wkb(shapes), field_data=list(columns.values()), fields=list(columns),
            layer="trips", driver=_DRIVERS[kind], crs="EPSG:4326",
            dataset_metadata=notes or None,
            geometry_type="Unknown" if single.any() else "LineString",
        )  # fmt: skip
        shutil.copyfile(written, part)
