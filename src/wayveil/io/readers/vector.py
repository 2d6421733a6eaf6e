"""GeoPackage, FlatGeobuf and Shapefile, read by GDAL through pyogrio (`wayveil[gis]`)."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from wayveil.core.optional import gis
from wayveil.errors import InputError
from wayveil.io.inputs import open_regular
from wayveil.io.layouts import Layout, resolve_layout
from wayveil.io.options import ReadOptions
from wayveil.io.readers.packed import is_packed, shapefile_in
from wayveil.io.readers.points import Points
from wayveil.io.readers.tables import Known, points_of_table

_BEGINNINGS = {"gpkg": b"SQLite format 3\0", "fgb": b"fgb\x03", "shp": b"\x00\x00\x27\x0a"}
"""First bytes of the only formats that are passed to GDAL. It detects formats by content, and some formats refer to
other files or addresses."""
_GEOMETRY = "geometry"
MAX_ROWS_IN_MEMORY = 200_000_000
"""Larger files are refused: their columns would take about 8 GB."""


def read_points(path: Path, kind: str, options: ReadOptions) -> Points:
    """The rows of the only layer with geometries; the types of its columns are those that the file declares."""
    origin = path.name
    pyogrio = gis()
    place = _gdal_path(path, kind)
    try:
        layer = _layer(pyogrio, place, origin)
        info = pyogrio.read_info(place, layer=layer)
        names = [*map(str, info["fields"]), _GEOMETRY]
        lines = info["geometry_type"] not in ("Point", "Point Z", "2.5D Point", "Point M", "Point ZM")
        layout = resolve_layout(names, options, origin, len(names) - 1, lines=lines)
        table = _table(pyogrio, place, layer, names, layout, origin)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, pa.ArrowException, OSError):
        raise InputError(f"'{origin}' is damaged, or is not in the expected format.") from None
    layout = layout.moved({old: new for new, old in enumerate(layout.positions)})
    return points_of_table(table, layout, options, origin, known=Known(crs=info["crs"]))


def _gdal_path(path: Path, kind: str) -> str:
    """The path for GDAL, after a check of the first bytes."""
    if is_packed(path):
        if kind != "shp" or not path.name.lower().endswith(".zip"):
            raise InputError(f"'{path.name}' must be unpacked first.")
        return f"/vsizip/{{{path.resolve()}}}/{shapefile_in(path)}"
    try:
        with open_regular(path) as stream:
            start = stream.read(16)
    except OSError as error:
        raise InputError(f"Cannot read '{path.name}': {error.strerror}.") from None
    if not start.startswith(_BEGINNINGS[kind]):
        raise InputError(f"'{path.name}' is damaged, or is not in the expected format.")
    return str(path.resolve())


def _layer(pyogrio: Any, place: str, origin: str) -> str:
    layers = [str(name) for name, kind in pyogrio.list_layers(place) if kind is not None]
    if len(layers) != 1:
        what = "no layer" if not layers else "several layers"
        raise InputError(f"'{origin}' has {what} with geometries; export the layer with the trips to its own file.")
    return layers[0]


def _table(pyogrio: Any, place: str, layer: str, names: list[str], layout: Layout, origin: str) -> pa.Table:
    """The needed columns in the order of their positions, the geometry last."""
    wanted = [names[at] for at in layout.positions[:-1]]
    # Times are read as text, so that each value keeps its own time zone; a column of timestamps has one for all.
    how = {"layer": layer, "columns": wanted, "datetime_as_string": True, "use_pyarrow": True}
    # GDAL 3.12's own Arrow stream of FlatGeobuf mixes up the geometries of other rows if one is missing.
    pyogrio.set_gdal_config_options({"OGR_FLATGEOBUF_STREAM_BASE_IMPL": True})
    with pyogrio.raw.open_arrow(place, **how) as (meta, reader):
        batches, rows = [], 0
        for batch in reader:
            rows += len(batch)
            if rows > MAX_ROWS_IN_MEMORY:
                raise InputError(f"'{origin}' has too many rows to read at once; convert it to Parquet in parts.")
            batches.append(batch)
        table = pa.Table.from_batches(batches, reader.schema)
    table.validate(full=True)  # GDAL returns invalid arrays for some damaged files
    geometry = meta["geometry_name"] or "wkb_geometry"
    plain = [table.column(name) for name in wanted] + [table.column(geometry)]
    return pa.table(dict(zip([*wanted, _GEOMETRY], plain)))
