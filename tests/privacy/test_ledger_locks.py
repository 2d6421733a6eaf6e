"""Threads and processes that use one ledger at the same time."""

import importlib.util
import os
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from wayveil.errors import CHARGED, BudgetError, InputError
from wayveil.io import ledger_paths
from wayveil.privacy import witness
from wayveil.privacy.entries import Entries
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit

TRIP = Unit.trajectory()
ALL = [Spend("all", Fraction(1))]


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "owner" / "ledger.sqlite", timeout_s=20)
    made.open_dataset("rides", Fraction(1), unit="trajectory")
    return made


class Paused:
    """A spend in another thread that waits inside its transaction, before the commit."""

    def __init__(self, ledger, monkeypatch):
        self.inside, self.go_on, self.result = threading.Event(), threading.Event(), None
        remember = Entries.remember

        def pause(entries, *arguments):
            if threading.current_thread() is self.thread:
                self.inside.set()
                assert self.go_on.wait(600)
            return remember(entries, *arguments)

        def spend():
            try:
                self.result = ledger.spend("rides", ALL, unit=TRIP)
            except Exception as error:
                self.result = error

        monkeypatch.setattr(Entries, "remember", pause)
        self.thread = threading.Thread(target=spend)
        self.thread.start()
        assert self.inside.wait(600)

    def finish(self):
        self.go_on.set()
        self.thread.join()
        return self.result


RIVAL = """
import sys
from fractions import Fraction
from wayveil.errors import WayveilError
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit
try:
    Ledger(sys.argv[1], timeout_s=0.5).spend("rides", [Spend("all", Fraction(1))], unit=Unit.trajectory())
    print("granted")
except WayveilError as error:
    print(error)
"""


def test_no_use_in_another_thread_drops_the_lock_of_a_transaction(ledger, monkeypatch):
    """POSIX drops a process's locks on a file when the process closes any descriptor of it."""
    paused = Paused(ledger, monkeypatch)
    other = Ledger(ledger.path, timeout_s=0.1)
    for use in (other.datasets, lambda: other.secret, lambda: other.allow("rides", Fraction(2), "why")):
        with pytest.raises(InputError, match="held by another process"):
            use()
    rival = subprocess.run([sys.executable, "-c", RIVAL, str(ledger.path)], capture_output=True, text=True, timeout=600)
    receipt = paused.finish()
    assert "held by another process" in rival.stdout, rival
    assert receipt.dataset.spent == 1
    ledger.datasets()
    assert len([line for line in ledger.lines("rides") if line.kind == "spend"]) == 1


def test_a_witness_that_the_chain_does_not_contain_is_never_replaced(ledger, monkeypatch):
    """As if another process had committed entries that this ledger lost."""
    paused, near = Paused(ledger, monkeypatch), ledger_paths.near_witness(ledger.path)
    foreign = witness.Witness(witness.read(near).ledger, 9, "ab" * 32)
    witness.write(near, foreign)
    error = paused.finish()
    assert isinstance(error, BudgetError) and CHARGED in str(error)
    assert witness.read(near) == foreign
    with pytest.raises(BudgetError, match="lacks 7 entries"):
        ledger.datasets()
    ledger.accept("looked into it")
    assert ledger.datasets()[0].spent == 1


FORK = """
import os, sys, threading, time
from fractions import Fraction
from wayveil.errors import WayveilError
from wayveil.privacy.entries import Entries
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit
inside, remember = threading.Event(), Entries.remember
def slow(entries, *arguments):
    inside.set()
    time.sleep(0.5)
    return remember(entries, *arguments)
Entries.remember = slow
spend = lambda: Ledger(sys.argv[1]).spend("rides", [Spend("all", Fraction(1))], unit=Unit.trajectory())
thread = threading.Thread(target=spend)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    try:
        print("child sees", Ledger(sys.argv[1], timeout_s=300).datasets()[0].spent, flush=True)
    except WayveilError as error:
        print("child:", error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
thread.join()
print("parent sees", Ledger(sys.argv[1]).datasets()[0].spent)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_fork_waits_for_a_running_transaction(ledger):
    """Otherwise the child inherits SQLite's belief that it holds the lock, for ever."""
    command = [sys.executable, "-W", "ignore", "-c", FORK, str(ledger.path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout.split("\n")[:2] == ["child sees 1", "parent sees 1"], done


def test_threads_of_several_processes_get_one_release_per_total(tmp_path):
    script = Path(__file__).parents[2] / "research" / "benchmarks" / "ledger_kills.py"
    spec = importlib.util.spec_from_file_location("ledger_kills", script)
    kills = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kills)
    table = kills.run_rounds(8, tmp_path / "data", workers=2, threads=4)
    assert table["rounds"] == table["releases"] == table["spent, the ledger says"] == 8
    assert not {name: count for name, count in table.items() if name.startswith("bad") and count}


def test_a_removed_lock_file_is_made_again(ledger):
    ledger_paths.lock_file(ledger.path).unlink()
    ledger.spend("rides", ALL, unit=TRIP)
    assert (
        ledger_paths.lock_file(ledger.path).exists()
        and ledger_paths.lock_file(ledger.path).stat().st_mode & 0o777 == 0o600
    )


def test_a_hard_link_is_refused(ledger):
    second = ledger.path.with_name("second.sqlite")
    second.hardlink_to(ledger.path)
    for path in (ledger.path, second):
        with pytest.raises(InputError, match="second name"):
            Ledger(path).spend("rides", ALL, unit=TRIP)
    second.unlink()
    ledger.spend("rides", ALL, unit=TRIP)


def test_a_symbolic_link_leads_to_the_same_ledger_and_lock(ledger, tmp_path):
    link = tmp_path / "link.sqlite"
    link.symlink_to(ledger.path)
    Ledger(link).spend("rides", ALL, unit=TRIP)
    assert ledger.datasets()[0].spent == 1
    assert ledger_paths.ledger_files(link) == ledger_paths.ledger_files(ledger.path)
    assert not list(tmp_path.glob("link.sqlite?*"))
