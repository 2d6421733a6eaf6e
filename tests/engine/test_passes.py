"""All passes over a source read the same content, or `measure` refuses."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wayveil.measurement.exact
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, batches, concatenate, select
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Serial
from wayveil.errors import CHARGED, InputError
from wayveil.io.source import MemorySource, open_source
from wayveil.measurement import measure
from wayveil.measurement.exact import draw_kept, read_exact
from wayveil.privacy.digest import PassDigest
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.unit import Unit
from wayveil.questions.count import Count

SCOPE = Scope(name="small", south=0.0, west=0.0, north=0.04, east=0.04)
USER = {"epsilon": 1, "unit": "user", "max_per_user": 1}


def trips(users):
    """One trajectory of three points for each user."""
    n = len(users)
    place = np.linspace(0.001, 0.039, 3 * n)
    return Trajectories(np.arange(0, 3 * n + 1, 3), place, place[::-1], np.arange(3.0 * n) * 60, np.asarray(users))


def changed(data, **columns):
    parts = {name: getattr(data, name) for name in ("offsets", "lon", "lat", "t_utc", "user")}
    return Trajectories(**parts | columns)


class Replaced(MemorySource):
    """A source that holds other trajectories from its n-th reading on."""

    def __init__(self, data, other, after=1):
        super().__init__(data)
        object.__setattr__(self, "state", {"left": after, "other": other})

    def batches(self, progress=None):
        self.state["left"] -= 1
        return MemorySource(self.trajectories if self.state["left"] >= 0 else self.state["other"]).batches()

    def partitions(self):
        return [self]


class Workers:
    """A distributed engine, as far as `measure` can tell."""

    map = Serial.map


HUNDRED = trips([f"u{k}" for k in range(100)])
ONE_OF_MANY = changed(HUNDRED, user=np.array(["u0"] * 100))
MOVED = changed(HUNDRED, lon=np.where(np.arange(300) == 7, 0.0123, HUNDRED.lon))
LATER = changed(HUNDRED, t_utc=np.where(np.arange(300) == 299, HUNDRED.t_utc + 1, HUNDRED.t_utc))
REGROUPED = changed(HUNDRED, offsets=np.r_[0, 2, HUNDRED.offsets[2:]])
EXCHANGED = select(HUNDRED, np.r_[1, 0, np.arange(2, 100)])
SHORTER = select(HUNDRED, np.arange(99))
LONGER = concatenate([HUNDRED, trips(["v"])])


@pytest.mark.parametrize("engine", [None, Workers()], ids=["serial", "workers"])
@pytest.mark.parametrize(
    "other", [ONE_OF_MANY, MOVED, LATER, REGROUPED, EXCHANGED, SHORTER, LONGER],
    ids=["users", "place", "time", "grouping", "order", "fewer", "more"],
)  # fmt: skip
def test_data_that_changes_between_the_passes_is_refused_before_the_spend(tmp_path, engine, other):
    ledger = Ledger(tmp_path / "ledger")
    source = Replaced(HUNDRED, other)
    with pytest.raises(InputError, match="changed while it was read") as refused:
        measure(source, SCOPE, dataset="d", ledger=ledger, engine=engine, **USER)
    assert not ledger.datasets() and CHARGED not in str(refused.value)
    measure(Replaced(HUNDRED, other, after=9), SCOPE, dataset="d", ledger=ledger, engine=engine, **USER)


@pytest.mark.parametrize("engine", [None, Workers()], ids=["serial", "workers"])
def test_data_that_changes_after_the_spend_fails_and_stays_charged(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(wayveil.measurement.exact, "MOST_REMEMBERED", 10)
    ledger = Ledger(tmp_path / "ledger")
    with pytest.raises(InputError, match="changed while it was read") as failed:
        measure(Replaced(HUNDRED, MOVED, after=2), SCOPE, dataset="d", ledger=ledger, engine=engine, **USER)
    assert CHARGED in str(failed.value) and ledger.datasets()[0].spent == 1


def test_a_parquet_file_that_is_replaced_between_the_passes(tmp_path, monkeypatch):
    """100 trajectories of one user got through a cap of 1 when the selection fitted another file."""

    def write(user):
        owner = np.repeat(np.arange(100), 3)
        columns = {"traj_id": owner, "user_id": user[owner], "lat": HUNDRED.lat, "lon": HUNDRED.lon, "t": HUNDRED.t_utc}
        pq.write_table(pa.table(columns), tmp_path / "rides.parquet")

    draw = wayveil.measure.__globals__["draw_kept"]

    def replaced(passes, unit, times):
        kept = draw(passes, unit, times)
        write(np.zeros(100, np.int64))
        return kept

    write(np.arange(100))
    monkeypatch.setitem(wayveil.measure.__globals__, "draw_kept", replaced)
    with pytest.raises(InputError, match="changed while it was read"):
        measure(tmp_path / "rides.parquet", SCOPE, **USER)


def test_passes_of_workers_find_the_same_as_one_here(monkeypatch):
    monkeypatch.setattr("wayveil.io.source.BATCH_POINTS", 20)
    monkeypatch.setattr("secrets.randbits", lambda bits: 5)
    data = trips([f"u{k % 7}" for k in range(100)])
    found = []
    for engine in (Serial(), Workers()):
        passes = Passes(MemorySource(data), engine)
        kept = draw_kept(passes, Unit.user(3))
        found.append((kept, read_exact(passes, SCOPE, kept)))
    assert np.array_equal(found[0][0], found[1][0]) and found[0][0].sum() == 21
    for name, sums in found[0][1].sums.items():
        assert np.array_equal(sums, found[1][1].sums[name])


def test_the_digest_knows_the_order_and_the_key_but_not_the_batches():
    def digest(data, key=b"k", size=100):
        found = PassDigest(key)
        for batch in batches(data, size):
            found.add(batch)
        return found.digest()

    assert digest(HUNDRED) == digest(HUNDRED, size=7)
    others = [digest(data) for data in (ONE_OF_MANY, MOVED, LATER, REGROUPED, EXCHANGED, SHORTER, LONGER)]
    assert len({digest(HUNDRED), digest(HUNDRED, b"other"), *others}) == 9
    numbers, texts = (trips(np.arange(3).astype(kind)) for kind in (np.int64, np.str_))
    assert digest(numbers) != digest(texts)


@pytest.mark.needs("ray")
def test_ray_workers_bind_their_parts(tmp_path, monkeypatch):
    """As above, with real workers that read the file themselves."""
    from wayveil.engine.ray import RayEngine

    path = tmp_path / "rides.parquet"
    monkeypatch.setattr("wayveil.io.source.BATCH_POINTS", 40)

    def write(user):
        owner = np.repeat(np.arange(100), 3)
        columns = {"traj_id": owner, "user_id": user[owner], "lat": HUNDRED.lat, "lon": HUNDRED.lon, "t": HUNDRED.t_utc}
        pq.write_table(pa.table(columns), path, row_group_size=60)

    write(np.arange(100))
    passes = Passes(open_source(path), RayEngine(workers=2))
    kept = draw_kept(passes, Unit.user(1))
    assert kept.sum() == 100 and read_exact(passes, SCOPE, kept).sums_of(Count())[0] == 100
    write(np.zeros(100, np.int64))
    with pytest.raises(InputError, match="changed while it was read"):
        read_exact(passes, SCOPE, kept)
