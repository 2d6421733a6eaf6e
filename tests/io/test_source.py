"""Sources: every trajectory exactly once, whatever the file looks like."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wayveil.io.readers.parquet as parquet_format
import wayveil.io.source as source_module
from wayveil.core.trajectories import Trajectories, concatenate
from wayveil.errors import InputError
from wayveil.io.files import read, write
from wayveil.io.options import ReadOptions
from wayveil.io.readers import grouping
from wayveil.io.source import MemorySource, ParquetSource, UnsortedSource, measured_source, open_source

DROP = ReadOptions(on_bad_rows="drop")


def table(labels, seed=0, **more):
    rng = np.random.default_rng(seed)
    n = len(labels)
    t = np.arange(n) * 10
    return pa.table({"traj_id": labels, "lat": rng.uniform(-80, 80, n), "lon": rng.uniform(0, 9, n), "t": t, **more})


def save(path, data, rows=7):
    pq.write_table(data, path, row_group_size=rows)
    return path


def multiset(parts):
    """Trajectories as a sorted list of their bytes: equal for equal data in any order."""
    found = []
    for part in parts:
        for i in range(len(part)):
            points = slice(part.offsets[i], part.offsets[i + 1])
            who = "" if part.user is None else str(part.user[i])
            found.append((part.t_utc[points].tobytes(), part.lat[points].tobytes(), who))
    return sorted(found)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(source_module, "BATCH_POINTS", 8)
    monkeypatch.setattr(parquet_format, "SLICE_ROWS", 5)


runs = st.lists(st.integers(1, 20), min_size=1, max_size=12)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(runs=runs, order=st.sampled_from(["up", "down", "mixed"]), text=st.booleans(), rows=st.integers(1, 30),
       seed=st.integers(0, 99))  # fmt: skip
def test_stream_partitions_and_memory_agree(tmp_path, runs, order, text, rows, seed):
    labels = np.repeat(np.arange(len(runs)), runs)
    labels = labels[::-1] if order == "down" else labels
    labels = np.random.default_rng(seed).permutation(labels) if order == "mixed" else labels
    labels = [f"id{label:03}" for label in labels] if text else labels
    path = save(tmp_path / "x.parquet", table(labels, seed, user_id=[str(label)[-1] * 2 for label in labels]), rows)
    whole = read(path)
    source = pickle.loads(pickle.dumps(open_source(path)))
    expected = multiset([whole])
    assert len(expected) == len(runs)
    assert multiset(source.batches()) == expected
    assert multiset(source.batches()) == expected  # again
    parts = [pickle.loads(pickle.dumps(part)) for part in source.partitions()]
    assert multiset(batch for part in parts for batch in part.batches()) == expected
    assert multiset(batch for part in MemorySource(whole).partitions() for batch in part.batches()) == expected
    if order == "up":
        assert concatenate(list(source.batches())) == whole


def test_batches_are_small_and_partitions_several(tmp_path):
    path = save(tmp_path / "x.parquet", table(np.repeat(np.arange(100), 3)), rows=30)
    source = open_source(path)
    assert max(len(batch.lon) for batch in source.batches()) <= 8 + 3
    assert len(source.partitions()) == 10


def test_a_repeated_trajectory_is_not_counted_twice(tmp_path):
    labels = np.r_[np.repeat(np.arange(20), 4), np.repeat(3, 4)]
    source = open_source(save(tmp_path / "x.parquet", table(labels)))
    batches = list(source.batches())
    assert sum(len(batch) for batch in batches) == 20
    assert max(np.diff(batch.offsets).max() for batch in batches) == 8


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("unit", [None, "trajectory", "user"])
def test_large_unsorted_files_are_read_in_several_passes(tmp_path, monkeypatch, text, unit):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(40), 6))
    data = table([f"id{x}" for x in labels] if text else labels, user_id=[f"u{x % 7}" for x in labels])
    path = save(tmp_path / "x.parquet", data, rows=30)
    options = {} if unit is None else {"unit": unit}
    opened = open_source if unit is None else measured_source
    expected = multiset(opened(path, **options).batches())
    assert len(expected) == 40
    monkeypatch.setattr(source_module, "SORT_IN_MEMORY_BYTES", 1000)
    source = pickle.loads(pickle.dumps(opened(path, **options)))
    assert multiset(source.batches()) == expected
    parts = [pickle.loads(pickle.dumps(part)) for part in source.partitions()]
    assert len(parts) > 5 and all(isinstance(part, UnsortedSource) for part in parts)
    assert multiset(batch for part in parts for batch in part.batches()) == expected
    assert max(sum(len(batch.lon) for batch in part.batches()) for part in parts) <= 25


def test_ids_are_checked_across_part_files(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    save(folder / "part-0.parquet", table([1, 1, 2, 2, 3]))
    save(folder / "part-1.parquet", table([3, 3, 4], seed=1))
    (folder / "_SUCCESS").write_text("")
    source = open_source(folder)
    assert [len(batch) for batch in source.batches()] == [4]
    assert multiset(source.batches()) == multiset([read(folder)])
    save(folder / "part-2.parquet", table([1, 5], seed=2))  # 1 comes again
    again = open_source(folder)
    assert sum(len(batch) for batch in again.batches()) == 5
    save(folder / "part-3.parquet", table(["a"]))
    with pytest.raises(InputError, match="give them the same columns"):
        list(open_source(folder).batches())


def test_a_file_that_changes_after_planning_is_noticed(tmp_path):
    path = save(tmp_path / "x.parquet", table(np.repeat(np.arange(30), 3)))
    part = open_source(path).partitions()[0]
    assert isinstance(part, ParquetSource) and part.cuts is not None
    save(path, table([5, 6] * 45))
    with pytest.raises(InputError, match="changed while it was read"):
        list(part.batches())
    save(path, table([5]))
    with pytest.raises(InputError, match="changed while it was read"):
        list(part.batches())


def test_extreme_ids_do_not_overflow_the_comparison(tmp_path):
    low, high = -(2**63), 2**63 - 1
    source = open_source(save(tmp_path / "x.parquet", table([low, low, 0, high, high])))
    assert sum(len(batch) for batch in source.batches()) == 3
    source = open_source(save(tmp_path / "x.parquet", table([high, low, high])))
    assert sum(len(batch) for batch in source.batches()) == 2


def test_times_are_sorted_within_a_trajectory(tmp_path):
    data = table([2, 2, 2, 1]).set_column(3, "t", pa.array([30, 10, 20, 5]))
    (batch,) = open_source(save(tmp_path / "x.parquet", data)).batches()
    assert batch.t_utc.tolist() == [5, 10, 20, 30]


def test_bad_rows_in_a_stream(tmp_path):
    labels = pa.array([1, None, 1, 2, 2, None, 3])
    path = save(tmp_path / "x.parquet", table(labels))
    with pytest.raises(InputError, match="missing trajectory id"):
        list(open_source(path).batches())
    assert sum(len(batch) for batch in open_source(path, DROP).batches()) == 3


@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_trajectory_with_too_many_points_is_left_out(tmp_path, monkeypatch, order, large):
    monkeypatch.setattr(grouping, "MAX_TRAJECTORY_POINTS", 50)
    monkeypatch.setattr(source_module, "SORT_IN_MEMORY_BYTES", 1000 if large else 1 << 30)
    labels = np.r_[np.zeros(60, int), np.repeat(np.arange(1, 9), 5)]
    labels = np.random.default_rng(1).permutation(labels) if order == "shuffled" else labels
    path = save(tmp_path / "x.parquet", table(labels, user_id=["a", "b"] * 50))
    with pytest.raises(InputError, match="traj_id="):
        list(open_source(save(tmp_path / "y.parquet", table(labels))).batches())
    assert len(multiset(measured_source(tmp_path / "y.parquet", "trajectory").batches())) == 8
    # Each of two users who share an id has a trajectory of their own, of 30 points.
    halves = multiset(measured_source(path, "user").batches())
    assert len(halves) == len({(label, row % 2) for row, label in enumerate(labels)})


def test_addresses_frames_and_other_formats(tmp_path):
    x = Trajectories([0, 2, 3], [2.5, 2.25, 2.0], [48.5, 48.25, 48.0], [10.0, 20.0, 30.0])
    write(x, tmp_path / "x.parquet")
    assert concatenate(list(open_source(f"file://{tmp_path}/x.parquet").batches())) == x
    folder = tmp_path / "folder"
    folder.mkdir()
    write(x, folder / "a.parquet")
    assert concatenate(list(open_source(f"file://{folder}").batches())) == x
    for ending in (".csv", ".gpx", ".geo.parquet"):
        write(x, tmp_path / f"x{ending}")
        source = pickle.loads(pickle.dumps(open_source(tmp_path / f"x{ending}")))
        assert concatenate(list(source.batches())) == x
        assert "x" + ending in source.description
    assert concatenate(list(open_source(pq.read_table(tmp_path / "x.parquet")).batches())) == x
    assert concatenate(list(open_source(x).batches())) == x
    assert open_source(open_source(x)) is not None
    with pytest.raises(InputError):
        open_source("nosuch://x/y.parquet")
    with pytest.raises(InputError):
        open_source(f"file://{tmp_path}/none.parquet")
    with pytest.raises(InputError):
        open_source(42)


def test_a_partition_may_lose_all_its_rows(tmp_path):
    data = table(np.repeat(np.arange(40), 3))
    lat = data["lat"].to_numpy().copy()
    lat[:60] = np.nan
    path = save(tmp_path / "x.parquet", data.set_column(1, "lat", pa.array(lat)), rows=30)
    parts = open_source(path, DROP).partitions()
    left = [sum(len(batch) for batch in part.batches()) for part in parts]
    assert left[0] == 0 and sum(left) == 20
    lat[:] = np.nan
    save(path, data.set_column(1, "lat", pa.array(lat)))
    with pytest.raises(InputError, match="no usable rows"):
        list(open_source(path, DROP).batches())


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0", "compression": "none"},
                                     {"write_page_index": True}])  # fmt: skip
def test_a_decompression_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch, options):
    labels = np.repeat(np.arange(2_000), 100)
    data = table(labels, user_id=[f"{label:09}" for label in labels])
    data = data.set_column(1, "lat", pa.array(np.zeros(len(labels))))
    monkeypatch.setattr(parquet_format, "SLICE_ROWS", 1 << 18)
    monkeypatch.setattr(source_module, "BATCH_POINTS", 1 << 18)
    monkeypatch.setattr("wayveil.io.parquet_files.LARGEST_PAGE_BYTES", 1_100_000)
    path = tmp_path / "x.parquet"
    pq.write_table(data, path, **options)
    assert sum(len(batch) for batch in open_source(path).batches()) == 2_000
    pq.write_table(data, path, **{**options, "use_dictionary": False, "data_page_size": 1 << 30,
                                  "max_rows_per_page": 1 << 30})  # fmt: skip
    source = open_source(path)
    for way in (source.batches, source.points, source.partitions, lambda: read(path)):
        with pytest.raises(InputError, match="decompress to more than"):
            list(way())
