"""From the file: exact(D) − exact(D without one unit) == exact(that unit), whatever the file looks like."""

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from layouts import (
    FAULTS,
    ID_KINDS,
    LONGEST_LINE,
    ORDERS,
    SCOPE,
    TABLES,
    TEXT_FAULTS,
    TREES,
    datasets,
    ordered,
    write_table,
    write_tree,
)
from more_layouts import GIS, JSON, LINES, MOVING, PACKED, WITHOUT_ID, owned, write_more, write_without_id

import wayveil.io.readers.csv_lines as lines_module
import wayveil.io.readers.parquet as parquet_format
import wayveil.io.source as source_module
from wayveil.engine.parts import parts_of
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Serial, part_batches
from wayveil.io.check import check
from wayveil.io.options import ReadOptions
from wayveil.io.readers import grouping
from wayveil.io.source import measured_source
from wayveil.measurement import exact_answers
from wayveil.measurement.exact import draw_kept
from wayveil.measurement.gaussian import read_units
from wayveil.privacy.unit import Unit
from wayveil.questions.catalogue import QUESTIONS as QUESTIONS_BY_NAME
from wayveil.questions.catalogue import finest_questions
from wayveil.questions.norms import Centre, NormBins, UnitQuery, clipped_resolution
from wayveil.questions.question import exact_sums, size_of

QUESTIONS = finest_questions(SCOPE)
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # a failing file is small enough to be read as it is
CASES = {"units": 0, "files": 0}
"""How many units were removed, and how many files written; printed at the end."""


@pytest.fixture(autouse=True, scope="module")
def counted():
    yield
    print(f"\n{CASES['units']} units removed, {CASES['files']} files written")


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(source_module, "BATCH_POINTS", 6)
    monkeypatch.setattr(parquet_format, "SLICE_ROWS", 5)
    monkeypatch.setattr(grouping, "MAX_TRAJECTORY_POINTS", 8)
    monkeypatch.setattr(lines_module, "CHUNK_BYTES", 300)
    monkeypatch.setattr(lines_module, "MAX_LINE_BYTES", LONGEST_LINE)


def exact(data, unit, by_parts=False, **options):
    source = measured_source(data, unit, ReadOptions(**options))
    if not by_parts:
        return exact_answers(source, SCOPE, QUESTIONS)
    # The way of Ray's workers: each part is sent to another process, read there, and only sums come back.
    parts = [pickle.loads(pickle.dumps(part)) for part in parts_of(source, None, map)]
    totals = [np.zeros(size_of(view), np.int64) for view in QUESTIONS]
    for part in parts:
        totals = [total + more for total, more in zip(totals, exact_sums(QUESTIONS, part_batches(part, SCOPE)))]
    return totals


UNITS = {"trajectory": Unit.trajectory(), "user": Unit.user(2)}
"""Users count as two trajectories; all of theirs are read."""
CLIPPED_NAMES = ("count", "occupancy/coarse", "length", "gap_ratio", "people/continuity", "people/anchors")
CLIPPED = [QUESTIONS_BY_NAME[name].example(SCOPE) for name in CLIPPED_NAMES]


def clipped_queries(unit):
    """Of a few questions, the histogram of norms, and sums clipped to a bound that some units exceed.

    Without a centre, and with the same share of a trajectory at each value.
    """
    return [
        UnitQuery(question, NormBins.of(question, unit), bound, centre)
        for question in CLIPPED
        for centre in (None, Centre.of(np.full(size_of(question), 1 / size_of(question)), question))
        for bound in (None, int(0.8 * clipped_resolution(question)))
    ]


def clipped(data, kind, **options):
    """The sums of the Gaussian mode, from the same file."""
    unit = UNITS[kind]
    passes = Passes(measured_source(data, kind, ReadOptions(**options)), Serial())
    with read_units(passes, SCOPE, draw_kept(passes, unit, 1000), unit) as (units, _, _):
        return units.sums(clipped_queries(unit))


def check_units(rows, unit, write, by_parts=False, **options):
    """Remove each unit in turn; `write(rows)` writes a dataset and gives what `measured_source` takes."""
    of = (lambda row: row.trajectory) if unit == "trajectory" else (lambda row: row.user)
    file = write(rows)
    whole, whole_clipped = exact(file, unit, by_parts, **options), clipped(file, unit, **options)
    assert whole[0][0] <= len({(row.trajectory, row.user if unit == "user" else 0) for row in rows})
    for one in sorted({of(row) for row in rows}):
        file = write([row for row in rows if of(row) != one])
        without, without_clipped = exact(file, unit, by_parts, **options), clipped(file, unit, **options)
        file = write([row for row in rows if of(row) == one])
        alone, alone_clipped = exact(file, unit, by_parts, **options), clipped(file, unit, **options)
        for view, a, b, c in zip(QUESTIONS, whole, without, alone):
            assert np.array_equal(a - b, c), view.name
            assert unit == "user" or np.abs(c).sum() <= view.resolution
        queries = clipped_queries(UNITS[unit])
        for query, a, b, c in zip(queries, whole_clipped, without_clipped, alone_clipped):
            assert np.array_equal(a - b, c), query.question.name
            most = 1 if query.bound is None else query.bound
            assert sum(int(value) ** 2 for value in c) <= most**2, query.question.name
        CASES["units"] += 1
        CASES["files"] += 2
    CASES["files"] += 1


def table_case(data, tmp_path, kind, monkeypatch):
    faults = FAULTS + (TEXT_FAULTS if kind == "csv" else ())
    rows = data.draw(datasets(faults))
    id_kind, order = data.draw(st.sampled_from(list(ID_KINDS))), data.draw(st.sampled_from(ORDERS))
    rows = ordered(rows, order, ID_KINDS[id_kind], data.draw(st.integers(0, 99)))
    unit, groups = data.draw(st.sampled_from(["trajectory", "user"])), data.draw(st.integers(1, 20))
    scattered = kind.startswith("parquet") and data.draw(st.booleans())
    event(f"{kind}, {id_kind}, {order}, {unit}")
    monkeypatch.setattr(source_module, "SORT_IN_MEMORY_BYTES", 300 if scattered else 1 << 30)
    write = lambda some: write_table(some, kind, id_kind, groups, tmp_path)  # noqa: E731
    check_units(rows, unit, write, by_parts=data.draw(st.booleans()))
    if rows:
        check(write(rows))


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=15, deadline=None, suppress_health_check=QUIET, phases=PHASES)
@given(data=st.data())
def test_tables(data, tmp_path, monkeypatch, kind):
    table_case(data, tmp_path, kind, monkeypatch)


MORE = [
    *(kind if kind != "duckdb" else pytest.param(kind, marks=pytest.mark.needs("duckdb"))
      for kind in PACKED + JSON + LINES),
    *(pytest.param(kind, marks=pytest.mark.needs("geopandas")) for kind in GIS + MOVING),
]  # fmt: skip
MORE_IDS = {"gis": ("negative", "text"), "json": ("int64", "negative", "uint64", "text", "float")}


def more_case(data, tmp_path, kind):
    gis, spoken = kind in GIS, kind in JSON
    faults = FAULTS + (("ragged", "naive time", "word", "open quote") if not gis else ("ragged",))
    if kind.startswith(("shp", "zip", "arrow", "lazy", "duckdb", "moving")):
        # Shapefile cuts long text off, so that different users would share a label in the file itself.
        faults = tuple(fault for fault in FAULTS if "user" not in fault) if gis else FAULTS
    if kind in PACKED:
        faults = FAULTS + TEXT_FAULTS
    rows = data.draw(datasets(faults))
    kinds = MORE_IDS["gis"] if gis else MORE_IDS["json"] if spoken else tuple(ID_KINDS)
    options = {"timezone": "UTC"} if kind in MOVING else {}
    id_kind, order = data.draw(st.sampled_from(kinds)), data.draw(st.sampled_from(ORDERS))
    rows = ordered(rows, order, ID_KINDS[id_kind], data.draw(st.integers(0, 99)))
    unit = data.draw(st.sampled_from(["trajectory", "user"]))
    event(f"{kind}, {id_kind}, {order}, {unit}")
    write = lambda some: write_more(some, kind, id_kind, tmp_path)  # noqa: E731
    by_parts = kind not in ("duckdb", "lazy") and data.draw(st.booleans())
    check_units(rows, unit, write, by_parts=by_parts, **options)
    if rows:
        check(write(rows), **options)


def case_without_id(data, tmp_path, kind):
    gis = kind in GIS
    rows = owned(data.draw(datasets(("no place", "bad place", "no time", "no user", "long user", "ragged"))))
    rows = ordered(rows, data.draw(st.sampled_from(ORDERS)), ID_KINDS["negative"], data.draw(st.integers(0, 99)))
    unit = data.draw(st.sampled_from(["trajectory", "user"]))
    event(f"{kind} without ids, {unit}")
    check_units(rows, unit, lambda some: write_without_id(some, kind, tmp_path), by_parts=data.draw(st.booleans()))
    if rows and not gis:
        check(write_without_id(rows, kind, tmp_path))


WITHOUT = [pytest.param(kind, marks=pytest.mark.needs("geopandas")) if kind in GIS else kind for kind in WITHOUT_ID]


@pytest.mark.parametrize("kind", WITHOUT)
@settings(max_examples=8, deadline=None, suppress_health_check=QUIET, phases=PHASES)
@given(data=st.data())
def test_tables_without_an_id(data, tmp_path, kind):
    case_without_id(data, tmp_path, kind)


@pytest.mark.parametrize("kind", MORE)
@settings(max_examples=8, deadline=None, suppress_health_check=QUIET, phases=PHASES)
@given(data=st.data())
def test_more_formats(data, tmp_path, kind):
    more_case(data, tmp_path, kind)


@pytest.mark.long
@pytest.mark.parametrize("kind", MORE)
@settings(max_examples=400, deadline=None, suppress_health_check=QUIET, phases=PHASES)
@given(data=st.data())
def test_more_formats_with_many_cases(data, tmp_path, kind):
    more_case(data, tmp_path, kind)


@pytest.mark.long
@pytest.mark.parametrize("kind", WITHOUT)
@settings(max_examples=400, deadline=None, suppress_health_check=QUIET, phases=PHASES)
@given(data=st.data())
def test_tables_without_an_id_with_many_cases(data, tmp_path, kind):
    case_without_id(data, tmp_path, kind)


@pytest.mark.parametrize("kind", TREES)
@settings(max_examples=8, deadline=None, suppress_health_check=QUIET, phases=PHASES)
@given(data=st.data())
def test_folders(data, tmp_path, kind):
    folder_case(data, tmp_path, kind)


def folder_case(data, tmp_path, kind):
    rows = data.draw(datasets(("ragged", "not UTF-8", "open quote", "no place", "bad place", "no time")))
    owner = {row.trajectory: row.user for row in reversed(rows)}  # a trajectory is in one person's file
    rows = [type(row)(row.trajectory, owner[row.trajectory], *list(vars(row).values())[2:]) for row in rows]
    unit = data.draw(st.sampled_from(["trajectory", "user"]))
    if unit == "user" and kind == "tdrive":
        unit = "trajectory"  # a taxi is both
    event(f"{kind}, {unit}")
    check_units(rows, unit, lambda some: write_tree(some, kind, tmp_path / "x"), by_parts=data.draw(st.booleans()))


@pytest.mark.long
@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=1500, deadline=None, suppress_health_check=QUIET, phases=PHASES)
@given(data=st.data())
def test_tables_with_many_cases(data, tmp_path, monkeypatch, kind):
    table_case(data, tmp_path, kind, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("kind", TREES)
@settings(max_examples=500, deadline=None, suppress_health_check=QUIET, phases=PHASES)
@given(data=st.data())
def test_folders_with_many_cases(data, tmp_path, kind):
    folder_case(data, tmp_path, kind)
