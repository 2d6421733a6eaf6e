"""Every engine gives the sums that serial gives, whatever happens to its workers."""

import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from wayveil.engine import engine_named
from wayveil.engine.parts import parts_of
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Serial
from wayveil.errors import InputError
from wayveil.io.source import ParquetSource, open_source
from wayveil.measurement.exact import draw_kept, exact_answers, read_exact
from wayveil.privacy.unit import Unit
from wayveil.questions.catalogue import finest_questions
from wayveil.simulate import simulate_city, simulate_trajectories

CITY = simulate_city(0, size_km=(3, 3))
SCOPE = CITY.scope


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three part files of several row groups, with users."""
    import pyarrow.parquet as pq

    from wayveil.core.tables import table_of
    from wayveil.core.trajectories import batches

    folder = tmp_path_factory.mktemp("data") / "city"
    folder.mkdir()
    trajectories, first = simulate_trajectories(CITY, 900, seed=1), 0
    for k, part in enumerate(batches(trajectories, 300)):
        table = table_of(part, first_id=first)
        pq.write_table(table, folder / f"part-{k}.parquet", row_group_size=600)
        first += len(part)
    return folder


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr("wayveil.io.source.BATCH_POINTS", 300)


@pytest.fixture(scope="module")
def cluster():
    """A real Ray with two workers; it ends with the tests of this file."""
    import ray

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test
    yield engine_named("ray", workers=2)
    ray.shutdown()
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@dataclass(frozen=True)
class Fatal:
    """A source that kills the process which reads it, the first time."""

    source: object
    marker: str
    description: str = "fatal"

    def batches(self, progress=None):
        for number, batch in enumerate(self.source.batches()):
            if number == 0 and not Path(self.marker).exists():
                Path(self.marker).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    def points(self, progress=None):
        return self.source.points()

    def partitions(self):
        parts = self.source.partitions()
        return [replace(self, source=part) if k == 1 else part for k, part in enumerate(parts)]


def alike(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other))


def test_partitions_name_only_their_own_files(folder, small_batches):
    source = open_source(folder)
    parts = source.partitions()
    assert isinstance(source, ParquetSource) and len(parts) > 6
    assert {len(part.files) for part in parts} <= {1, 2} and any(len(part.files) == 1 for part in parts)
    views = finest_questions(SCOPE)
    whole = exact_answers(source, SCOPE, views)
    apart = [exact_answers(part, SCOPE, views) for part in parts]
    assert alike(whole, [np.sum(column, axis=0) for column in zip(*apart)])


def test_parts_cut_the_mask_to_fit(folder, small_batches):
    source = open_source(folder)
    kept = np.arange(900) % 3 == 0
    parts = parts_of(source, kept, Serial().map)
    assert len(parts) > 6
    assert np.array_equal(np.concatenate([part.kept for part in parts]), kept)
    with pytest.raises(InputError, match="changed while"):
        parts_of(source, kept[1:], Serial().map)


def test_few_parts_however_many_row_groups(folder, small_batches, monkeypatch):
    monkeypatch.setattr("wayveil.engine.parts.MOST_PARTS", 4)
    parts = parts_of(open_source(folder), None, Serial().map)
    assert len(parts) <= 4
    assert sum(len(batch) for part in parts for source in part.sources for batch in source.batches()) == 900


def test_engine_names():
    assert isinstance(engine_named("serial"), Serial)
    with pytest.raises(InputError, match="serial or ray"):
        engine_named("spark")
    with pytest.raises(InputError, match="engine='ray'"):
        engine_named("serial", "auto")


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"wayveil\[ray\]"):
        engine_named("ray")


@pytest.mark.needs("ray")
def test_ray_equals_serial(folder, small_batches, cluster):
    source = open_source(folder)
    views = finest_questions(SCOPE)
    kept = draw_kept(Passes(source, Serial()), Unit("user", 2))
    assert 0 < kept.sum() < 900
    assert alike(cluster.sums(source, SCOPE, views, None), Serial().sums(source, SCOPE, views, None))
    assert alike(cluster.sums(source, SCOPE, views, kept), Serial().sums(source, SCOPE, views, kept))
    one, other = (read_exact(Passes(source, engine), SCOPE, kept) for engine in (cluster, Serial()))
    assert alike(list(one.sums.values()), list(other.sums.values()))
    assert all(np.array_equal(getattr(one.ends, name), getattr(other.ends, name)) for name in ("start", "end", "hour"))


@pytest.mark.needs("ray")
def test_a_killed_worker_changes_nothing_and_spends_once(folder, small_batches, cluster, tmp_path):
    from wayveil.measurement import measure
    from wayveil.privacy.ledger import Ledger
    from wayveil.privacy.noise import SeededNoise
    from wayveil.release import release_to_json

    marker, ledger, source = tmp_path / "killed", Ledger(tmp_path / "ledger"), open_source(folder)
    promise = {"epsilon": 1, "unit": "trajectory"}
    calm = measure(source, SCOPE, noise=SeededNoise(4), **promise)
    killed = measure(
        Fatal(source, str(marker)), SCOPE, noise=SeededNoise(4), engine=cluster, dataset="d", ledger=ledger, **promise
    )
    assert marker.exists()
    assert [one.spent for one in ledger.datasets()] == [1]
    assert release_to_json(killed) == release_to_json(calm)


@pytest.mark.needs("ray")
@pytest.mark.parametrize("promise", [{"unit": "trajectory"}, {"unit": "user", "max_per_user": 2000}])
def test_clipped_sums_do_not_depend_on_the_engine(folder, small_batches, cluster, promise):
    """Also where a user's trajectories lie in the parts of several workers."""
    from wayveil.measurement import measure
    from wayveil.privacy.noise import SeededNoise
    from wayveil.release import release_to_json

    calm, spread = (
        measure(
            folder,
            SCOPE,
            epsilon=1,
            delta="1e-6",
            noise=SeededNoise(4),
            engine=engine,
            accept_low_signal=True,
            **promise,
        )
        for engine in (None, cluster)
    )
    assert release_to_json(calm) == release_to_json(spread)


@pytest.mark.needs("ray")
def test_ray_map_keeps_the_order_and_shares_what_is_shared(cluster):
    big = np.zeros(200_000)
    pieces = [(big, k) for k in range(9)]
    assert list(cluster.map(lambda piece: (len(piece), piece[0].size, piece[1]), pieces)) == [
        (2, 200_000, k) for k in range(9)
    ]
    assert list(cluster.map(lambda piece: piece * 2, [1, 2, 3])) == [2, 4, 6]
    assert list(cluster.map(lambda piece: piece, [])) == []


@pytest.mark.needs("ray")
def test_errors_of_workers_carry_no_values(cluster):
    secret = 37.123456

    def fails(piece):
        raise ValueError(f"at {piece}")

    with pytest.raises(InputError) as caught:
        list(cluster.map(fails, [secret]))
    assert "ValueError" in str(caught.value) and str(secret) not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.needs("ray")
def test_synthesis_does_not_depend_on_the_engine(folder, cluster, monkeypatch):
    from wayveil.measurement import measure
    from wayveil.privacy.noise import SeededNoise
    from wayveil.workflow.synthesize import synthesize

    monkeypatch.setattr("wayveil.synthesis.shard.SHARD", 60)
    release = measure(folder, SCOPE, epsilon=2, unit="trajectory", noise=SeededNoise(1))
    one, other = (synthesize(release, n=120, seed=3, engine=engine).trajectories for engine in (None, cluster))
    assert one == other
