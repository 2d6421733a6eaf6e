"""`measure` on files with marked values, through every reader: no coordinate, id or time in anything it says."""

import logging
import re
import warnings
from pathlib import Path

import layouts
import pytest
from layouts import FAULTS, SCOPE, TABLES, TEXT_FAULTS, TREES, Row, write_table, write_tree
from more_layouts import GIS, JSON, LINES, MOVING, PACKED, WITHOUT_ID, owned, write_more, write_without_id

from wayveil.errors import WayveilError
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise

LAT, LON, T, TRIP = 48.0043217, 2.0076543, 1_700_001_200, 6130
MARKS = re.compile(r"sentinel|48\.0043|2\.0076|17000012\d\d|22:33:|\b613\d\b")
GEO = ("duckdb", *GIS, *MOVING)


def rows(faults, trips=6):
    """Each fault in a trajectory of its own, and two trajectories without one; one id is that of two users."""
    found = [
        Row(TRIP + number, number % 3, LAT + k / 1e6, LON + k / 1e6, T + 7 * k, fault if k == 1 else "")
        for number, fault in enumerate(["", "", *faults])
        for k in range(3)
    ]
    return [*found, Row(TRIP, 2, LAT, LON, T + 50)]


def writers():
    """Every kind of data: its name, the faults that it can have, and how it is written."""
    for kind in TABLES:
        faults = FAULTS + (TEXT_FAULTS if kind == "csv" else ())
        yield kind, faults, lambda some, path, kind=kind: write_table(some, kind, "marked", 3, path)
    for kind in TREES:
        yield kind, ("ragged", "not UTF-8", "no time"), lambda some, path, kind=kind: _tree(some, kind, path)
    for kind in PACKED + JSON + LINES + GIS + MOVING:
        faults = FAULTS if kind in ("arrow", "lazy", "duckdb") else (*FAULTS, "ragged")
        yield kind, faults, lambda some, path, kind=kind: write_more(some, kind, "marked", path)
    for kind in WITHOUT_ID:
        yield (
            f"{kind}, no id",
            ("no place", "no time", "ragged"),
            lambda some, path, kind=kind: write_without_id(owned(some), kind, path),
        )


def _tree(some, kind, path):
    return write_tree(owned(some), kind, path / "x")


CASES = [
    pytest.param(faults, write, id=name, marks=pytest.mark.needs("geopandas") if name.startswith(GEO) else ())
    for name, faults, write in writers()
]


def said(data, caplog, capfd, **how):
    """Everything that a measurement says: its error, its warnings, logs and streams."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            measure(data, SCOPE, epsilon=1, noise=SeededNoise(1), timezone="UTC", **how)
            error = ""
        except WayveilError as refusal:
            error = str(refusal)
    streams = capfd.readouterr()
    words = [error, *(str(one.message) for one in warned), caplog.text, streams.out, streams.err]
    caplog.clear()
    return error, "\n".join(words)


def damaged(data):
    """A file with its second half cut off; for a folder, its files."""
    for file in [data] if data.is_file() else [file for file in data.rglob("*") if file.is_file()]:
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(("faults", "write"), CASES)
def test_no_reader_says_anything_about_the_data(tmp_path, monkeypatch, caplog, capfd, faults, write):
    monkeypatch.setattr(layouts, "USER", "sentinel-user-")
    caplog.set_level(logging.DEBUG)
    data = write(rows(faults), tmp_path)
    for unit in ({"unit": "trajectory"}, {"unit": "user", "max_per_user": 2}):
        error, words = said(data, caplog, capfd, **unit)
        assert MARKS.search(words) is None, words
        assert not error or "needs a user column" in error or "T-Drive" in error, error
    for wrong in ({"traj_id": "nobody"}, {"time": "never"}, {"lat": "t"}, {"format": "parquet"}, {"format": "csv"},
                  {"format": "gpx"}, {"format": "geojson"}, {"line": "user"}):  # fmt: skip
        _, words = said(data, caplog, capfd, unit="trajectory", **wrong)
        assert MARKS.search(words) is None, (wrong, words)
    if isinstance(data, Path):
        damaged(data)
        _, words = said(data, caplog, capfd, unit="trajectory")
        assert MARKS.search(words) is None, words


def test_the_marks_are_in_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "USER", "sentinel-user-")
    text = write_table(rows(FAULTS), "csv", "marked", 3, tmp_path).read_text(errors="replace")
    assert len(MARKS.findall(text)) > 100
    for mark in ("sentinel-user-", "sentinel-trip-", "48.0043", "2.0076", "17000012", "22:33:"):
        assert mark in text
