"""CSV files: one header line, then one line per point."""

import json
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as pacsv

from wayveil.core.tables import table_of
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.atomic import atomic_path, write_text
from wayveil.io.csv_notes import CONTENT, check_notes, digest, notes_at
from wayveil.io.options import Notes, notes_path
from wayveil.io.writers.stamps import iso_times
from wayveil.io.writers.trips import trip_table


def write(
    trajectories: Trajectories,
    path: Path,
    extra_metadata: Notes,
    *,
    private: bool,
    times: str | None = None,
    trips: bool = False,
) -> None:
    """Write a CSV file, and `extra_metadata` as `<name>.meta.json` next to it, because CSV has no place for metadata.

    The notes contain a digest of the CSV file, so that they are ignored if it is replaced. `trips` writes one line per
    trip instead of one per point.
    """
    if trips:
        table = trip_table(trajectories, times or "iso")
    else:
        table = with_iso_times(trajectories, table_of(trajectories)) if times == "iso" else table_of(trajectories)
    users = trajectories.user
    if users is not None and users.dtype.kind == "U" and any("\n" in user or "\r" in user for user in users.tolist()):
        raise InputError(
            "Some user labels contain line breaks, which wayveil does not write to CSV; write Parquet instead."
        )
    notes_file = notes_path(path)
    if extra_metadata:
        check_notes(path)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with atomic_path(path, private=private) as part, open(part, "wb") as stream:
        stream.write(delimiter.join(table.column_names).encode() + b"\n")
        pacsv.write_csv(table, stream, pacsv.WriteOptions(include_header=False, delimiter=delimiter))
    if extra_metadata:
        notes = {**extra_metadata, CONTENT: digest(path)}
        write_text(notes_file, json.dumps(notes, indent=2, ensure_ascii=False) + "\n", private=private)
    elif CONTENT in notes_at(notes_file):
        notes_file.unlink()


def with_iso_times(trajectories: Trajectories, table: pa.Table) -> pa.Table:
    """The table of points with times as ISO 8601 text."""
    return table.set_column(table.column_names.index("t"), "t", pa.array(iso_times(trajectories.t_utc)))
