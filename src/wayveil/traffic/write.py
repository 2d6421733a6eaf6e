"""Write tables: one CSV per table, and one GeoPackage for all."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from wayveil.core.optional import gis
from wayveil.errors import InputError
from wayveil.io.atomic import atomic_path, write_text
from wayveil.io.outputs import check_output, check_outputs
from wayveil.traffic.table import Table

GEOPACKAGE = "tables.gpkg"
SUMMARY = "tables.json"
NAMES = ("od", "zones", "streets", "lengths", "durations", "hours")
"""All tables; the table of streets needs a road map."""


def files_of(names: Sequence[str], folder: Path) -> list[Path]:
    """All files that tables of these names are written to."""
    return [*(folder / f"{name}.csv" for name in names), folder / GEOPACKAGE, folder / SUMMARY]


def check_folder(names: Sequence[str], folder: Path, inputs: Sequence[Any], *, force: bool) -> None:
    """Create the folder if needed, and raise an InputError if a file cannot be written, before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise InputError(f"The folder '{folder.name}' cannot be created; choose another output.") from None
    paths = files_of(names, folder)
    check_outputs(paths, inputs=inputs)
    for path in paths:
        check_output(path, force=force)


def has_geopackage() -> bool:
    """Whether the library that writes a GeoPackage is installed."""
    try:
        gis()
    except InputError:
        return False
    return True


def write_tables(
    tables: Sequence[Table], summary: dict[str, Any], folder: Path, *, private: bool, force: bool
) -> list[Path]:
    """Write all files; the GeoPackage only where its library is installed."""
    check_folder([table.name for table in tables], folder, (), force=force)
    written = []
    for table in tables:
        path = folder / f"{table.name}.csv"
        with atomic_path(path, private=private) as part:
            pacsv.write_csv(pa.table(table.columns), part)
        written.append(path)
    if has_geopackage():
        _write_geopackage(tables, folder / GEOPACKAGE, private)
        written.append(folder / GEOPACKAGE)
    write_text(folder / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n", private=private)
    return [*written, folder / SUMMARY]


def _write_geopackage(tables: Sequence[Table], path: Path, private: bool) -> None:
    """One layer for each table; tables without places have no geometry."""
    import shapely

    pyogrio = gis()
    # GDAL sets the mode of its file and writes others next to it, so it works in a folder that only the owner can open.
    with atomic_path(path, private=private) as part, TemporaryDirectory(prefix=".", dir=path.parent) as hidden:
        file = Path(hidden) / GEOPACKAGE
        for number, table in enumerate(tables):
            columns = [
                column.astype(object) if column.dtype.kind == "U" else column for column in table.columns.values()
            ]
            shapes = None if table.geometry is None else shapely.to_wkb(table.geometry)
            kinds = {"geometry_type": "Unknown", "crs": "EPSG:4326"} if table.geometry is not None else {}
            pyogrio.raw.write(
                str(file), geometry=shapes, field_data=[np.ascontiguousarray(column) for column in columns],
                fields=list(table.columns), layer=table.name, driver="GPKG", append=number > 0, **kinds,
            )  # fmt: skip
        shutil.copyfile(file, part)
