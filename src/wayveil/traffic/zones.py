"""Zones: public polygons with names, and the zone of each point.

Privacy: free (zones are public).
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import base_grid
from wayveil.core.optional import gis
from wayveil.core.scope import Scope
from wayveil.errors import InputError
from wayveil.io.inputs import TooLargeError, read_text
from wayveil.io.readers.crs import to_degrees
from wayveil.questions.flow import Flow
from wayveil.questions.origin_destination import OriginDestination
from wayveil.release import Release

OUTSIDE = "outside"
"""Name of everything outside the zones."""
MOST_ZONES = 1_000
"""Maximum number of zones: a matrix of a thousand has a million pairs, almost all of which would be noise."""
_MOST_BYTES = 200 << 20
"""Maximum size of a file of zones, which is parsed in memory."""
_NAMES = ("name", "zone", "zone_id", "id", "code", "label")
"""Columns that name a zone, in order of preference; case is ignored."""
_SIGNATURES = {".gpkg": b"SQLite format 3\0", ".fgb": b"fgb\x03", ".shp": b"\x00\x00\x27\x0a"}


@dataclass(frozen=True, eq=False)
class Zones:
    """Polygons in degrees with distinct names. Where two overlap, the first counts."""

    names: tuple[str, ...]
    shapes: NDArray[np.object_]
    """(n,) shapely polygons or multipolygons, WGS 84."""

    @property
    def overlaps(self) -> int:
        """How many zones share more than a thousandth of their area with another; borders often cross a little."""
        import shapely

        if len(self) == 0:
            return 0
        one, other = shapely.STRtree(self.shapes).query(self.shapes, predicate="intersects")
        one, other = one[one != other], other[one != other]
        shared = shapely.area(shapely.intersection(self.shapes[one], self.shapes[other]))
        return len(np.unique(one[shared > 1e-3 * shapely.area(self.shapes[one])]))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names, followed by OUTSIDE."""
        return (*self.names, OUTSIDE)

    def index(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.int64]:
        """The zone of each point; `len(self)` outside all zones."""
        import shapely

        found = np.full(len(lon), len(self), np.int64)
        if len(self) == 0:
            return found
        tree = shapely.STRtree(self.shapes)
        point, zone = tree.query(shapely.points(lon, lat), predicate="intersects")
        np.minimum.at(found, point, zone)
        return found


def zones_of(given: Any, release: Release) -> Zones:
    """Zones from a file, a GeoDataFrame or `Zones`; the regions of the release if nothing is given."""
    if given is None:
        return release_zones(release)
    if isinstance(given, Zones):
        return given
    if isinstance(given, str | os.PathLike):
        return read_zones(Path(given))
    if hasattr(given, "geometry") and hasattr(given, "columns"):
        return _of_frame(given)
    raise InputError("zones= must be a file of polygons or a GeoDataFrame.")


def release_zones(release: Release) -> Zones:
    """The regions between which the release counts trips: rectangles with about equal numbers of trip ends."""
    import shapely

    if OriginDestination.name not in release:
        raise InputError("The release has no regions of its own; give polygons with zones=.")
    question = release[OriginDestination.name].question
    assert isinstance(question, Flow)
    grid, region = base_grid(release.scope), question.region_of_cell
    shapes, names = [], []
    for number in range(question.regions):
        rows, columns = np.nonzero(region == number)
        if len(rows) == 0:
            continue
        x_m = np.array([columns.min(), columns.max() + 1]) * grid.cell_m
        y_m = np.array([rows.min(), rows.max() + 1]) * grid.cell_m
        lon, lat = release.scope.to_degrees(x_m, y_m)
        sides = [(lon[0], lon[1])] if lon[0] < lon[1] else [(lon[0], 180.0), (-180.0, lon[1])]  # at the antimeridian
        shapes.append(shapely.union_all([shapely.box(west, lat[0], east, lat[1]) for west, east in sides]))
        names.append(f"region {number + 1}")
    return Zones(tuple(names), np.array(shapes, object))


def read_zones(path: Path) -> Zones:
    """Polygons of a GeoJSON file or, with `wayveil[gis]`, of a GeoPackage, FlatGeobuf or Shapefile."""
    if not path.is_file():
        raise InputError(f"There is no file of zones '{path.name}'; give a .geojson, .gpkg, .fgb or .shp file.")
    ending = path.suffix.lower()
    if ending in (".geojson", ".json"):
        return _of_geojson(path)
    if ending in _SIGNATURES:
        return _of_vector(path)
    raise InputError(f"Zones cannot be read from '{path.name}'; give a .geojson, .gpkg, .fgb or .shp file.")


def _of_geojson(path: Path) -> Zones:
    import shapely

    try:
        content = json.loads(read_text(path, _MOST_BYTES, "utf-8-sig"))
        features = [feature for feature in content["features"] if feature.get("geometry")]
        shapes = shapely.from_geojson([json.dumps(feature["geometry"]) for feature in features])
    except TooLargeError:
        raise InputError(f"'{path.name}' is too large for a file of zones.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, shapely.errors.GEOSException):
        raise InputError(f"'{path.name}' is not a readable GeoJSON FeatureCollection of polygons.") from None
    properties = [feature.get("properties") or {} for feature in features]
    columns = {name: [own.get(name) for own in properties] for own in properties for name in own}
    crs = content.get("crs")
    system = crs.get("properties", {}).get("name") if isinstance(crs, dict) else None
    return _zones(shapes, columns, system, path.name)


def _of_vector(path: Path) -> Zones:
    import shapely

    pyogrio = gis()
    with open(path, "rb") as stream:
        if not stream.read(16).startswith(_SIGNATURES[path.suffix.lower()]):
            raise InputError(f"'{path.name}' is damaged, or is not in the expected format.")
    try:
        meta, _, shapes, values = pyogrio.raw.read(str(path.resolve()))
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, OSError):
        raise InputError(f"'{path.name}' is damaged, or is not in the expected format.") from None
    columns = {str(name): list(column) for name, column in zip(meta["fields"], values)}
    return _zones(shapely.from_wkb(shapes), columns, meta["crs"], path.name)


def _of_frame(frame: Any) -> Zones:
    columns = {str(name): list(frame[name]) for name in frame.columns if name != frame.geometry.name}
    return _zones(np.asarray(frame.geometry, object), columns, frame.crs, "the frame of zones")


def _zones(shapes: Any, columns: dict[str, list[Any]], crs: Any, origin: str) -> Zones:
    import shapely

    shapes = np.asarray(shapes, object)
    named = _names(columns, len(shapes))
    areas = np.isin(shapely.get_type_id(shapes), (3, 6)) & ~shapely.is_empty(shapes)  # Polygon, MultiPolygon
    if not areas.any():
        raise InputError(f"'{origin}' has no polygons; zones must be areas.")
    if areas.sum() > MOST_ZONES:
        raise InputError(f"'{origin}' has more than {MOST_ZONES:,} zones; merge them first.")
    kept = shapely.make_valid(shapely.force_2d(shapes[areas]))

    def degrees(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack(to_degrees(xy[:, 0], xy[:, 1], crs, origin))

    kept = shapely.transform(kept, degrees)
    if not np.isfinite(shapely.get_coordinates(kept)).all():
        raise InputError(f"Some zones of '{origin}' have coordinates that are invalid in their reference system.")
    names = [name for name, area in zip(named, areas.tolist()) if area]
    return Zones(_distinct(names), np.asarray(kept, object))


def _names(columns: dict[str, list[Any]], count: int) -> list[str]:
    """The first column of `_NAMES` that has a value for every zone, otherwise numbers from 1."""
    lower = {name.strip().lower(): values for name, values in columns.items()}
    for wanted in _NAMES:
        values = lower.get(wanted)
        if values is not None and all(value not in (None, "") and value == value for value in values):
            return [str(value) for value in values]
    return [str(number + 1) for number in range(count)]


def _distinct(names: list[str]) -> tuple[str, ...]:
    """The names, with a number appended to repeated ones and to those equal to OUTSIDE."""
    seen = {OUTSIDE}
    result = []
    for name in names:
        unique, number = name, 2
        while unique in seen:
            unique, number = f"{name} ({number})", number + 1
        seen.add(unique)
        result.append(unique)
    return tuple(result)


def centres(zones: Zones, scope: Scope) -> NDArray[np.float64]:
    """(n, 2) a point inside each zone, in degrees; the middle of the scope for the outside."""
    import shapely

    inner = shapely.get_coordinates(shapely.point_on_surface(zones.shapes))
    lon, lat = scope.to_degrees(np.array([scope.width_m / 2]), np.array([scope.height_m / 2]))
    return np.vstack([inner, [lon[0], lat[0]]])
