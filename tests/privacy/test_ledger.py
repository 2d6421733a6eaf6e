import importlib.util
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from wayveil.core.trajectories import Trajectories, batches, concatenate, select
from wayveil.errors import BudgetError, InputError, WayveilError
from wayveil.io import ledger_paths
from wayveil.privacy import witness
from wayveil.privacy.digest import ContentDigest, digest_of
from wayveil.privacy.ledger import Ledger, Spend, default_path
from wayveil.privacy.unit import Unit

TRIP = Unit.trajectory()

HALF = [Spend("count", Fraction(1, 10), "test"), Spend("ends", Fraction(2, 5), "test")]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "owner" / "ledger.sqlite", timeout_s=5)


def spent(ledger, name="rides"):
    return {account.name: account.spent for account in ledger.datasets()}.get(name, Fraction(0))


def test_a_new_name_is_opened_with_what_is_asked_and_then_refuses(ledger):
    receipt = ledger.spend("rides", HALF, total_if_new=Fraction(1, 2), unit=TRIP)
    assert receipt.dataset.total == receipt.dataset.spent == Fraction(1, 2)
    with pytest.raises(BudgetError) as caught:
        ledger.spend("rides", HALF, total_if_new=Fraction(100), unit=TRIP)
    assert caught.value.exit_code == 3
    assert "0.5 per trajectory, but 0 of 0.5 remains (0.5 is spent)" in str(caught.value)
    assert spent(ledger) == Fraction(1, 2)
    ledger.allow("rides", Fraction(3, 2), "a second year")
    ledger.spend("rides", HALF, unit=TRIP)
    assert spent(ledger) == 1
    kinds = [(line.kind, line.name, line.epsilon) for line in ledger.lines("rides")]
    assert kinds[:3] == [
        ("open", "", Fraction(1, 2)),
        ("spend", "count", Fraction(1, 10)),
        ("spend", "ends", Fraction(2, 5)),
    ]
    assert kinds[3] == ("allow", "", Fraction(3, 2))
    assert len({line.measurement for line in ledger.lines("rides") if line.kind == "spend"}) == 2
    ledger.datasets()


def test_all_lines_or_none(ledger):
    ledger.open_dataset("rides", Fraction(1), unit="trajectory")
    with pytest.raises(BudgetError):
        ledger.spend("rides", [Spend("small", Fraction(1, 10)), Spend("large", Fraction(1))], unit=TRIP)
    assert spent(ledger) == 0
    with pytest.raises(BudgetError):
        ledger.spend("new", [Spend("large", Fraction(2))], total_if_new=Fraction(1), unit=TRIP)
    assert [account.name for account in ledger.datasets()] == ["rides"]


def test_thirds_add_up_exactly(ledger):
    ledger.spend("rides", [Spend(name, Fraction(1, 3)) for name in "abc"], total_if_new=Fraction(1), unit=TRIP)
    assert spent(ledger) == 1


def test_delta_has_its_own_account(ledger):
    millionth = Fraction(1, 10**6)
    ledger.spend("rides", [Spend("all", Fraction(1), delta=millionth)], total_if_new=Fraction(2), unit=TRIP)
    with pytest.raises(BudgetError, match="delta"):
        ledger.spend("rides", [Spend("all", Fraction(1), delta=millionth)], unit=TRIP)
    ledger.allow("rides", Fraction(2), "more", total_delta=2 * millionth)
    ledger.spend("rides", [Spend("all", Fraction(1), delta=millionth)], unit=TRIP)


def test_impossible_requests_are_refused(ledger):
    ledger.open_dataset("rides", Fraction(1), unit="trajectory")
    ledger.spend("rides", HALF, unit=TRIP)
    refused = [
        lambda: ledger.open_dataset("rides", Fraction(5), unit="trajectory"),
        lambda: ledger.allow("rides", Fraction(1, 10), "less than spent"),
        lambda: ledger.allow("trams", Fraction(1), "unknown"),
        lambda: ledger.spend("trams", HALF, unit=TRIP),
        lambda: ledger.lines("trams"),
    ]
    for call in refused:
        with pytest.raises(BudgetError):
            call()
    wrong = [
        lambda: ledger.allow("rides", Fraction(1), "  "),
        lambda: ledger.allow("rides", Fraction(1), "bytes that are no text: \udcff"),
        lambda: ledger.accept("two\nlines"),
        lambda: ledger.open_dataset("", Fraction(1), unit="trajectory"),
        lambda: ledger.open_dataset("two\nlines", Fraction(1), unit="trajectory"),
        lambda: ledger.open_dataset("x" * 101, Fraction(1), unit="trajectory"),
        lambda: ledger.open_dataset("trams", Fraction(0), unit="trajectory"),
        lambda: ledger.spend("rides", [], unit=TRIP),
        lambda: ledger.spend("rides", [Spend("a", Fraction(-1)), Spend("b", Fraction(2))], unit=TRIP),
        lambda: ledger.spend("rides", [Spend("a", Fraction(0))], unit=TRIP),
    ]
    for call in wrong:
        with pytest.raises(InputError):
            call()
    assert spent(ledger) == Fraction(1, 2)


def test_names_in_one_spelling(ledger):
    ledger.open_dataset("caf\u00e9", Fraction(1), unit="trajectory")
    with pytest.raises(BudgetError):
        ledger.open_dataset(" cafe\u0301 ", Fraction(1), unit="trajectory")


def city(count=7, seed=0):
    random = np.random.default_rng(seed)
    offsets = np.r_[0, np.cumsum(random.integers(1, 9, count))]
    size = offsets[-1]
    return Trajectories(offsets, random.uniform(-1, 1, size), random.uniform(-1, 1, size), np.arange(size) * 10.0)


def test_content_is_recognised_in_any_order_and_partition_and_only_with_the_key(ledger):
    rides, secret = city(), ledger.secret
    digest = digest_of([rides], secret)
    assert digest_of(batches(select(rides, np.arange(7)[::-1]), 2), secret) == digest
    one, two = ContentDigest(secret), ContentDigest(secret)
    one.add(select(rides, np.arange(3)))
    two.add(select(rides, np.arange(3, 7)))
    one.merge(two.total)
    assert one.hexdigest() == digest
    assert digest_of([select(rides, np.arange(6))], secret) != digest
    assert digest_of([concatenate([rides, rides])], secret) != digest
    assert digest_of([rides], b"another key") != digest
    assert digest not in Path(__file__).read_text() and len(secret) == 32

    assert ledger.spend("rides", HALF, total_if_new=Fraction(1), digest=digest, unit=TRIP).warnings == ()
    assert ledger.spend("rides", HALF, digest=digest, unit=TRIP).warnings == ()
    (warning,) = ledger.spend("trams", HALF, total_if_new=Fraction(1), digest=digest, unit=TRIP).warnings
    assert "'rides'" in warning and "'trams'" in warning and digest not in warning
    (warning,) = ledger.open_dataset(
        "buses", Fraction(1), digest_of([city(seed=1)], secret), unit="trajectory"
    ).warnings or ("none",)
    assert warning == "none"


@pytest.mark.needs("posix")  # file modes
def test_modes_and_default_place(tmp_path):
    os.umask(before := os.umask(0))  # read it without changing it
    os.umask(0)
    try:
        ledger = Ledger()
        ledger.spend("rides", HALF, total_if_new=Fraction(1), unit=TRIP)
    finally:
        os.umask(before)
    assert ledger.path == default_path() == tmp_path / "xdg-data" / "wayveil" / "ledger.sqlite"
    far = next((tmp_path / "xdg-state" / "wayveil" / "ledgers").iterdir())
    for path in (ledger.path, ledger_paths.near_witness(ledger.path), far):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (ledger.path.parent, far.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    os.chmod(ledger.path, 0o644)
    ledger.datasets()
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


SPENDER = """
import sys
from fractions import Fraction
from wayveil.errors import BudgetError
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit
ledger, granted = Ledger(sys.argv[1], timeout_s=600), 0
sys.stdin.readline()
for turn in range(12):
    try:
        ledger.spend("rides", [Spend("a", Fraction(1, 32)), Spend("b", Fraction(1, 32))], unit=Unit.trajectory(),
                     total_if_new=Fraction(1))
        granted += 1
    except BudgetError:
        pass
print(granted)
"""


@pytest.mark.parametrize("processes", [2, 8])
def test_processes_at_once_never_overspend(ledger, processes):
    command = [sys.executable, "-c", SPENDER, str(ledger.path)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    granted = [int(process.communicate(timeout=600)[0]) for process in running]
    assert sum(granted) == 16  # All of the budget, and nothing beyond it.
    assert spent(ledger) == 1
    ledger.datasets()


@pytest.fixture
def kills():
    script = Path(__file__).parents[2] / "research" / "benchmarks" / "ledger_kills.py"
    spec = importlib.util.spec_from_file_location("ledger_kills", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bad(table):
    return {name: count for name, count in table.items() if name.startswith("bad") and count}


def test_twenty_killed_processes_never_overspend(kills, tmp_path):
    table = kills.run(20, tmp_path / "data")
    assert table["kills"] >= 20 and table["grants shown"] > 0
    assert not bad(table)


def test_the_kill_test_detects_output_before_the_commit(kills, tmp_path, monkeypatch):
    broken = kills.WORKER.replace("receipt = ledger.spend", "print('granted', '0' * 16, flush=True); ledger.spend")
    monkeypatch.setattr(kills, "WORKER", broken.replace('print("granted", receipt.measurement, flush=True)', ""))
    assert "bad: shown but not on the ledger" in bad(kills.run(1, tmp_path / "data"))


def test_held_by_another_process(ledger):
    ledger.open_dataset("rides", Fraction(1), unit="trajectory")
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(InputError, match="held by another process"):
        Ledger(ledger.path, timeout_s=0.1).spend("rides", HALF, unit=TRIP)
    holder.execute("ROLLBACK")
    holder.close()
    assert spent(ledger) == 0


FULL = """
import resource, sys
from fractions import Fraction
from wayveil.errors import WayveilError
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    for turn in range(200):
        Ledger(sys.argv[1]).spend("rides", [Spend("a", Fraction(1), "x" * 500)], unit=Unit.trajectory(),
                                  total_if_new=Fraction(1000))
        print("granted", flush=True)
except WayveilError as error:
    print("error", error)
"""


@pytest.mark.needs("linux")  # limits on the size of files
@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("limit", [10, 4096, 20_480, 40_000])
def test_a_disk_that_fills_up_is_a_clear_error_and_loses_nothing(ledger, limit):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(ledger.path), str(limit)], capture_output=True, text=True, timeout=600
    )
    *granted, last = done.stdout.splitlines()
    assert last.startswith("error") and ("disk is full" in last or "free space" in last), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert spent(ledger) >= len(granted)
    ledger.datasets()


def break_it(path, how):
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == "folder":
        path.mkdir()
    elif how == "text":
        path.write_text("not a ledger\n" * 100)
    elif how == "foreign":
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE other (x)")
    elif how == "under a file":
        path.parent.rmdir()
        path.parent.write_text("")
    else:
        Ledger(path).spend("rides", HALF, total_if_new=Fraction(1), unit=TRIP)
        if how == "newer":
            with sqlite3.connect(path) as db:
                db.execute("PRAGMA user_version = 99")
        elif how == "no identity":
            with sqlite3.connect(path) as db:
                db.execute("DELETE FROM meta")
        elif how == "truncated":
            os.truncate(path, 5000)
        elif how == "overwritten":
            with open(path, "r+b") as file:
                file.seek(100)
                file.write(os.urandom(12_000))


@pytest.mark.parametrize(
    "how", ["folder", "text", "foreign", "under a file", "newer", "no identity", "truncated", "overwritten"]
)
def test_what_is_not_a_ledger_is_one_clear_sentence(ledger, how):
    break_it(ledger.path, how)
    with pytest.raises(WayveilError) as caught:
        ledger.spend("rides", HALF, total_if_new=Fraction(1), unit=TRIP)
    message = str(caught.value)
    assert message.count("\n") == 0 and message.endswith(".") and str(ledger.path.parent) not in message


@pytest.mark.needs("linux")  # /proc/self: nobody can write there, not even root
def test_a_folder_that_cannot_be_written():
    with pytest.raises(InputError, match="Cannot open the ledger"):
        Ledger("/proc/self/wayveil/ledger.sqlite").open_dataset("rides", Fraction(1), unit="trajectory")


def test_altered_entries_are_noticed(ledger):
    ledger.spend("rides", HALF, total_if_new=Fraction(1), unit=TRIP)
    with sqlite3.connect(ledger.path) as db:
        db.execute("UPDATE entries SET epsilon = '0.0001' WHERE name = 'ends'")
    with pytest.raises(InputError, match="altered"):
        Ledger(ledger.path).table()


class TestRollback:
    @pytest.fixture(autouse=True)
    def spend_once(self, ledger, tmp_path):
        ledger.spend("rides", HALF, total_if_new=Fraction(10), unit=TRIP)
        self.ledger, self.old = ledger, tmp_path / "old"
        shutil.copytree(ledger.path.parent, self.old)
        self.near = ledger_paths.near_witness(ledger.path)

    def refused(self, ledger, match):
        with pytest.raises(BudgetError, match=match) as caught:
            ledger.spend("rides", HALF, unit=TRIP)
        assert "wayveil ledger accept" in caught.value.command_line_text

    def test_an_older_file_put_back(self):
        self.ledger.spend("rides", HALF, unit=TRIP)
        shutil.copy(self.old / "ledger.sqlite", self.ledger.path)
        self.refused(self.ledger, "lacks 2 entries")
        self.ledger.accept("the backup is all there is")
        self.ledger.spend("rides", HALF, unit=TRIP)
        assert spent(self.ledger) == 1
        self.ledger.datasets()

    def test_the_whole_folder_put_back(self):
        self.ledger.spend("rides", HALF, unit=TRIP)
        shutil.rmtree(self.ledger.path.parent)
        shutil.copytree(self.old, self.ledger.path.parent)
        self.refused(self.ledger, "lacks 2 entries")  # by the witness in the state folder

    def test_an_older_copy_that_was_used_elsewhere(self, monkeypatch, tmp_path):
        self.ledger.spend("rides", HALF, unit=TRIP)
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "other-account"))
            for _ in range(3):
                Ledger(self.old / "ledger.sqlite").spend("rides", HALF, unit=TRIP)
        shutil.copy(self.old / "ledger.sqlite", self.ledger.path)
        self.refused(self.ledger, "is not the one that was here before")

    def test_a_copy_used_in_parallel(self):
        copy = Ledger(self.old / "ledger.sqlite")
        copy.spend("rides", HALF, unit=TRIP)
        self.refused(self.ledger, "lacks 2 entries")

    def test_a_copy_without_any_witness(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other-account"))
        (self.old / "ledger.sqlite.witness").unlink()
        self.refused(Ledger(self.old / "ledger.sqlite"), "no witness")

    @pytest.mark.parametrize("how", ["deleted", "emptied"])
    def test_a_ledger_that_is_gone(self, how):
        if how == "emptied":
            os.truncate(self.ledger.path, 0)
            for use in (self.ledger.datasets, lambda: self.ledger.accept("empty")):
                with pytest.raises(InputError, match="is empty, so it is not a ledger"):
                    use()
            assert self.ledger.path.stat().st_size == 0
        self.ledger.path.unlink()
        with pytest.raises(BudgetError, match="lacks 3 entries"):
            self.ledger.datasets()
        assert not self.ledger.path.exists()
        with pytest.raises(BudgetError, match="lacks 3 entries"):
            self.ledger.spend("rides", HALF, total_if_new=Fraction(1), unit=TRIP)
        self.ledger.accept("begun anew")
        self.ledger.spend("rides", HALF, total_if_new=Fraction(1), unit=TRIP)

    def test_a_crash_before_the_witness_is_repaired(self, monkeypatch):
        def crash(path, seen):
            raise OSError("no space")

        with monkeypatch.context() as broken:
            broken.setattr(witness, "write", crash)
            self.ledger.spend("rides", HALF, unit=TRIP)
        assert witness.read(self.near).count == 3
        assert spent(self.ledger) == 1
        assert witness.read(self.near).count == 5

    def test_a_lost_witness_is_rewritten(self):
        self.near.write_text("")
        self.ledger.spend("rides", HALF, unit=TRIP)
        assert witness.read(self.near).count == 5

    def test_restoring_ledger_and_witnesses_together_is_not_noticed(self, tmp_path):
        """Said in the module's docstring: everything, both witnesses included, set back together."""
        shutil.copytree(tmp_path / "xdg-state", tmp_path / "old-state")
        self.ledger.spend("rides", HALF, unit=TRIP)
        for there, back in ((self.ledger.path.parent, self.old), (tmp_path / "xdg-state", tmp_path / "old-state")):
            shutil.rmtree(there)
            shutil.copytree(back, there)
        self.ledger.spend("rides", HALF, unit=TRIP)
        assert spent(self.ledger) == 1
