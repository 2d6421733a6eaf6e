"""Whatever goes wrong around the commit, the message states what was spent."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from wayveil.core import outcome
from wayveil.core.signals import deferred_signals
from wayveil.errors import CHARGED, UNKNOWN_CHARGE, InputError
from wayveil.privacy import store, witness
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit

TRIP = Unit.trajectory()
ALL = [Spend("all", Fraction(1))]


class Failing:
    """A connection whose COMMIT does something else first."""

    def __init__(self, db, commit):
        self._db, self._commit = db, commit

    def __getattr__(self, name):
        return getattr(self._db, name)

    def execute(self, statement, *values):
        if statement == "COMMIT":
            return self._commit(self._db)
        return self._db.execute(statement, *values)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger.sqlite", timeout_s=5)
    made.open_dataset("rides", Fraction(5), unit="trajectory")
    return made


@pytest.fixture
def commit_with(monkeypatch):
    """Let the next commit, and only that, do something else."""

    def install(commit):
        opened, left = store.transaction, [commit]

        @contextmanager
        def transaction(path, timeout_s):
            with opened(path, timeout_s) as db:
                yield Failing(db, left.pop()) if left else db

        monkeypatch.setattr(store, "transaction", transaction)

    return install


def broken_disk():
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


def spent(ledger):
    return ledger.datasets()[0].spent


def test_an_error_after_the_commit_says_spent(ledger, commit_with):
    def commit(db):
        db.execute("COMMIT")
        raise broken_disk()

    commit_with(commit)
    with pytest.raises(InputError, match="the budget is spent and nothing was released") as caught:
        ledger.spend("rides", ALL, unit=TRIP)
    assert CHARGED in str(caught.value) and "raise the total" in str(caught.value) and spent(ledger) == 1


def test_an_error_before_the_commit_says_not_spent(ledger, commit_with):
    def commit(db):
        raise broken_disk()

    commit_with(commit)
    with pytest.raises(InputError, match="nothing was spent; free some space and try again") as caught:
        ledger.spend("rides", ALL, unit=TRIP)
    assert CHARGED not in str(caught.value) and spent(ledger) == 0
    ledger.spend("rides", ALL, unit=TRIP)
    assert spent(ledger) == 1


def test_a_ledger_that_cannot_be_read_back_says_unknown(ledger, commit_with):
    def commit(db):
        db.execute("COMMIT")
        ledger.path.rename(ledger.path.with_suffix(".away"))
        ledger.path.write_bytes(b"damaged " * 2000)
        raise broken_disk()

    commit_with(commit)
    with pytest.raises(InputError) as caught:
        ledger.spend("rides", ALL, unit=TRIP)
    assert UNKNOWN_CHARGE in str(caught.value) and CHARGED not in str(caught.value)


def test_changes_that_spend_nothing_say_whether_they_were_made(ledger, commit_with):
    def commit(db):
        db.execute("COMMIT")
        raise broken_disk()

    commit_with(commit)
    with pytest.raises(InputError, match="but the change is on it"):
        ledger.allow("rides", Fraction(7), "more")
    assert ledger.datasets()[0].total == 7


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_commit_waits_for_the_witness_and_says_spent(ledger, commit_with, number):
    class Stop(BaseException):
        pass

    def stop(*_):
        raise Stop

    def commit(db):
        os.kill(os.getpid(), number)
        for _ in range(1000):  # bytecodes at which Python would run the handler
            pass
        db.execute("COMMIT")

    commit_with(commit)
    before = signal.signal(number, stop)
    try:
        with pytest.raises(Stop) as caught:
            ledger.spend("rides", ALL, unit=TRIP)
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)
    assert CHARGED in caught.value.__notes__
    assert witness.read(ledger.path.with_name("ledger.sqlite.witness")).count == 2
    assert spent(ledger) == 1


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_deferred_signals_arrive_once_and_in_order():
    seen = []
    before = {number: signal.signal(number, lambda got, _: seen.append(got)) for number in (2, 15)}
    try:
        with deferred_signals():
            for number in (2, 15, 2):
                signal.raise_signal(number)
            assert seen == []
        assert seen == [2, 15]
        signal.raise_signal(2)
        assert seen == [2, 15, 2]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_signals():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_facts_are_collected_per_block():
    with outcome.collect() as outer:
        outcome.record("one")
        with outcome.collect() as inner:
            outcome.record("two")
        outcome.record("two")
    outcome.record("nobody listens")
    assert outer == ["one", "two"] and inner == ["two"]
    with pytest.raises(InputError, match=r"^Failed\. Charged\.$"), outcome.stated_in_errors():  # noqa: PT012
        outcome.record("Charged.")
        raise InputError("Failed.")
    with pytest.raises(KeyboardInterrupt) as caught, outcome.stated_in_errors(), outcome.stated_in_errors():  # noqa: PT012
        outcome.record("Charged.")
        raise KeyboardInterrupt
    assert caught.value.__notes__ == ["Charged."]


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="strace")
def test_every_system_call_that_writes_may_fail_or_be_interrupted():
    script = Path(__file__).parents[2] / "research" / "benchmarks" / "ledger_faults.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
