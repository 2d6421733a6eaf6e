"""Streamed synthesis: one file, the same however often it was interrupted."""

import json
import os
from functools import cache

import numpy as np
import pyarrow.parquet as pq
import pytest

from wayveil.errors import InputError
from wayveil.io.files import read
from wayveil.io.writers import parquet
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.rules import custom, read_rules
from wayveil.simulate import rules_text, simulate_city, simulate_trajectories
from wayveil.synthesis.request import Request
from wayveil.synthesis.resume import synthesize_to_parquet
from wayveil.synthesis.run_key import run_key
from wayveil.workflow.synthesize import synthesize

CITY = simulate_city(0, size_km=(3, 3))


@pytest.fixture(scope="module")
def release():
    rides = simulate_trajectories(CITY, 400, seed=1)
    return measure(rides, CITY.scope, epsilon=3, unit="trajectory", noise=SeededNoise(1))


@pytest.fixture(autouse=True)
def small_shards(monkeypatch, quick_synthesis):
    monkeypatch.setattr("wayveil.synthesis.shard.SHARD", 70)


@pytest.fixture(scope="module")
def in_memory():
    """Trajectories of `synthesize`, each made once: in_memory(release, n=…, seed=…)."""
    return cache(lambda release, **options: synthesize(release, **options).trajectories)


def stopping_after(share):
    def listen(stage, done):
        if stage == "drawing trajectories" and done > share:
            raise KeyboardInterrupt

    return listen


@pytest.mark.skipif(os.name != "posix", reason="locks of the kernel")
@pytest.mark.parametrize("count", [50, 140])  # one shard, and several
def test_a_second_run_to_the_same_file_is_refused(release, tmp_path, count, in_memory):
    path, refusals = tmp_path / "a.parquet", []

    def another_run(stage, done):
        if stage == "drawing trajectories" and len(refusals) < 3:
            with pytest.raises(InputError, match=f"by another run .process {os.getpid()} on .*since") as refusal:
                synthesize_to_parquet(Request(release, n=count, seed=6), path)
            refusals.append(refusal)

    synthesize_to_parquet(Request(release, n=count, seed=5), path, progress=another_run)
    assert refusals and [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["a.parquet"]
    assert read(path) == in_memory(release, n=count, seed=5)
    synthesize_to_parquet(Request(release, n=count, seed=6), path)  # the lock ended with its run
    assert read(path) == in_memory(release, n=count, seed=6)


def test_streaming_gives_the_same_as_memory(release, tmp_path):
    path = tmp_path / "a.parquet"
    made = synthesize_to_parquet(Request(release, n=200, seed=5), path, extra_metadata={"private": "true"})
    whole = synthesize(release, n=200, seed=5)
    assert read(path) == whole.trajectories
    assert made.trajectories == 200 and made.diagnostics == whole.diagnostics and made.resumed_shards == 0
    table = pq.read_table(path)
    assert table.column_names == ["traj_id", "lat", "lon", "t"]
    assert (np.diff(table["traj_id"].to_numpy()) >= 0).all() and table.schema.metadata[b"private"] == b"true"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("rows", [1, 7, 64, 10_000])
def test_row_groups_cut_trajectories_anywhere(release, tmp_path, monkeypatch, rows, in_memory):
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", rows)
    for count in (9, 80):  # one shard, and several
        path = tmp_path / f"{count}.parquet"
        synthesize_to_parquet(Request(release, n=count, seed=5), path)
        assert read(path) == in_memory(release, n=count, seed=5)
        sizes = pq.ParquetFile(path).metadata
        assert max(sizes.row_group(k).num_rows for k in range(sizes.num_row_groups)) <= rows


@pytest.mark.parametrize("seed", [5, None])
def test_interrupted_twice_and_continued(release, tmp_path, seed):
    path = tmp_path / "a.parquet"
    for share in (0.3, 0.6):
        with pytest.raises(KeyboardInterrupt):
            synthesize_to_parquet(Request(release, n=210, seed=seed), path, progress=stopping_after(share))
        assert not path.exists()
    folder = tmp_path / "a.parquet.parts"
    used = json.loads((folder / "run.json").read_text())["seed"]
    kept = {part.name: part.stat().st_mtime_ns for part in folder.glob("shard-*")}
    assert len(kept) == 1  # the first shard; the second was drawn, and the interruption came before it was written
    made = synthesize_to_parquet(Request(release, n=210, seed=seed), path)
    assert made.resumed_shards == 1 and not folder.exists()
    synthesize_to_parquet(Request(release, n=210, seed=used), tmp_path / "b.parquet")
    assert path.read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_other_arguments_start_anew(release, tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(KeyboardInterrupt):
        synthesize_to_parquet(Request(release, n=210, seed=5), path, progress=stopping_after(0.4))
    assert synthesize_to_parquet(Request(release, n=210, seed=6), path).resumed_shards == 0
    assert read(path) == synthesize(release, n=210, seed=6).trajectories


def test_a_foreign_folder_is_kept(release, tmp_path):
    folder = tmp_path / "a.parquet.parts"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="of other programs"):
        synthesize_to_parquet(Request(release, n=70, seed=5), tmp_path / "a.parquet")
    assert (folder / "thesis.txt").read_text() == "mine"


def test_one_shard_leaves_no_folder_and_removes_an_old_one(release, tmp_path):
    path, folder = tmp_path / "a.parquet", tmp_path / "a.parquet.parts"
    with pytest.raises(KeyboardInterrupt):
        synthesize_to_parquet(Request(release, n=210, seed=5), path, progress=stopping_after(0.3))
    assert folder.exists()
    synthesize_to_parquet(Request(release, n=30, seed=5), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.parquet"]
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="of other programs"):
        synthesize_to_parquet(Request(release, n=30, seed=5), path)
    assert (folder / "mine.txt").exists()


def test_damaged_part_is_one_sentence(release, tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(KeyboardInterrupt):
        synthesize_to_parquet(Request(release, n=210, seed=5), path, progress=stopping_after(0.4))
    (tmp_path / "a.parquet.parts" / "shard-000000.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="damaged"):
        synthesize_to_parquet(Request(release, n=210, seed=5), path)


def test_the_key_distinguishes_runs(release, tmp_path):
    (tmp_path / "rules.geojson").write_text(rules_text(CITY))
    rules, again = (read_rules(tmp_path / "rules.geojson", CITY.scope, CITY.roadmap) for _ in range(2))
    key = run_key(Request(release, None, (), 10, seed=1, estimator="bayes"))
    assert key == run_key(Request(release, None, (), 10, seed=1, estimator="bayes"))
    others = [
        run_key(Request(release, CITY.roadmap, (), 10, seed=1, estimator="bayes")),
        run_key(Request(release, None, rules, 10, seed=1, estimator="bayes")),
        run_key(Request(release, None, rules[:-1], 10, seed=1, estimator="bayes")),
        run_key(Request(release, None, (), 11, seed=1, estimator="bayes")),
        run_key(Request(release, None, (), 10, seed=2, estimator="bayes")),
        run_key(Request(release, None, (), 10, seed=None, estimator="bayes")),
        run_key(Request(release, None, (), 10, seed=1, estimator="learned")),
    ]
    assert None not in others and len({key, *others}) == 8
    assert run_key(Request(release, None, again, 10, seed=1, estimator="bayes")) == others[1]
    # A function of somebody's own has no content to compare: such a run is never continued.
    mine = custom(lambda x, y, t: 0.0 * x, CITY.scope)
    assert run_key(Request(release, None, (mine,), 10, seed=1, estimator="bayes")) is None
