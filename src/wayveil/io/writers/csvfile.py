"""CSV files: one header line, then one line per point."""

import json
from pathlib import Path

from pyarrow import csv as pacsv

from wayveil.core.tables import table_of
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.atomic import atomic_path, write_text
from wayveil.io.csv_notes import CONTENT, check_notes, digest, notes_at
from wayveil.io.options import notes_beside


def write(trajectories: Trajectories, path: Path, extra_metadata: dict[str, str] | None, *, private: bool) -> None:
    """Write a CSV file, and `extra_metadata` as `<name>.meta.json` beside it, because CSV has no place for metadata.

    The notes contain a digest of the CSV file, so that they are ignored if it is replaced.
    """
    table = table_of(trajectories)
    users = trajectories.user
    if users is not None and users.dtype.kind == "U" and any("\n" in user or "\r" in user for user in users.tolist()):
        raise InputError(
            "Some user labels contain line breaks, which this CSV writer does not support; write Parquet instead."
        )
    beside = notes_beside(path)
    if extra_metadata:
        check_notes(path)
    with atomic_path(path, private=private) as part, open(part, "wb") as stream:
        stream.write(",".join(table.column_names).encode() + b"\n")
        pacsv.write_csv(table, stream, pacsv.WriteOptions(include_header=False))
    if extra_metadata:
        notes = {**extra_metadata, CONTENT: digest(path)}
        write_text(beside, json.dumps(notes, indent=2, ensure_ascii=False) + "\n", private=private)
    elif CONTENT in notes_at(beside):
        beside.unlink()
