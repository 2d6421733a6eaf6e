"""Files that are not ledgers stay as they are, and accounts without a home folder can have a ledger."""

import os
import sqlite3
import stat
import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import pytest

from wayveil.errors import BudgetError, InputError, LedgerWarning
from wayveil.io import ledger_paths
from wayveil.privacy.budget import exact_delta, exact_epsilon
from wayveil.privacy.ledger import Ledger, Spend, default_path, ledger_files
from wayveil.privacy.unit import Unit

TRIP = Unit.trajectory()
ALL = [Spend("all", Fraction(1))]
USES = {
    "spend": lambda ledger: ledger.spend("rides", ALL, unit=TRIP, total_if_new=Fraction(1)),
    "open": lambda ledger: ledger.open_dataset("rides", Fraction(1), unit="trajectory"),
    "accept": lambda ledger: ledger.accept("why"),
    "show": lambda ledger: Ledger(ledger.path).table(),
    "secret": lambda ledger: ledger.secret,
}


def text(path):
    path.write_text("traj_id,lat,lon,t\n" * 100)


def foreign(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE other (x)")


def foreign_wal(path):
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE other (x)")
    db.close()


@pytest.mark.skipif(os.name != "posix", reason="file modes")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "make", [text, foreign, foreign_wal, lambda path: path.write_text("short"), lambda path: path.touch()]
)
def test_a_file_that_is_not_a_ledger_is_not_touched(tmp_path, make, use):
    path = tmp_path / "rides.csv"
    make(path)
    os.chmod(path, 0o644)
    os.utime(path, (1, 1))
    before, content = os.stat(path), path.read_bytes()
    with pytest.raises(InputError, match="not a ledger"):
        USES[use](Ledger(path))
    after = os.stat(path)
    assert (after.st_mode, after.st_ino, after.st_mtime, after.st_ctime_ns) == (
        before.st_mode, before.st_ino, before.st_mtime, before.st_ctime_ns,
    )  # fmt: skip
    assert path.read_bytes() == content and [found.name for found in tmp_path.iterdir()] == ["rides.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="FIFOs")
def test_a_fifo_or_a_device_neither_hangs_nor_is_used(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/null")):
        with pytest.raises(InputError, match="not a regular file"):
            Ledger(path).datasets()
    ledger = Ledger(tmp_path / "ledger.sqlite", timeout_s=1)
    os.mkfifo(ledger_paths.lock_file(ledger.path))
    with pytest.raises(InputError, match="lock file"):
        ledger.open_dataset("rides", Fraction(1), unit="trajectory")


def test_reading_creates_no_ledger(tmp_path):
    ledger = Ledger(tmp_path / "new" / "ledger.sqlite")
    assert ledger.datasets() == () and Ledger(ledger.path).table() == []
    ledger.datasets()
    with pytest.raises(BudgetError, match="not on the ledger"):
        ledger.lines("rides")
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_ledger_that_others_could_read_is_closed_to_them(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_dataset("rides", Fraction(1), unit="trajectory")
    os.chmod(ledger.path, 0o644)
    ledger.datasets()
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_ledger_files_lists_every_path(tmp_path):
    ledger = Ledger(tmp_path / "owner" / "ledger.sqlite")
    ledger.spend("rides", ALL, unit=TRIP, total_if_new=Fraction(1))
    known = ledger_files(ledger.path)
    assert known[0] == ledger.path and ledger_files()[0] == default_path()
    there = [path for folder in ("owner", "xdg-state") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert there and set(there) <= set(known)
    assert ledger.path.with_name("ledger.sqlite-journal") in known


def test_a_journal_without_its_ledger_is_not_replayed_into_a_new_one(tmp_path):
    (tmp_path / "ledger.sqlite-journal").write_bytes(b"x" * 600)
    with pytest.raises(InputError, match="journal of an earlier ledger"):
        Ledger(tmp_path / "ledger.sqlite").open_dataset("rides", Fraction(1), unit="trajectory")
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.fixture
def homeless(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)


def test_an_account_without_a_home_folder_can_name_a_ledger(homeless, tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.warns(LedgerWarning, match="no home folder") as caught:
        ledger.spend("rides", ALL, unit=TRIP, total_if_new=Fraction(1))
    assert str(caught[0].message).count(". ") == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ledger.datasets()[0].spent == 1
    ledger_paths.near_witness(ledger.path).unlink()
    with pytest.raises(BudgetError, match="no witness"):
        ledger.datasets()
    with pytest.raises(InputError, match="ledger="):
        Ledger()
    with pytest.raises(InputError, match="ledger="):
        Ledger("~nobody-of-this-name/ledger.sqlite")


NOBODY = """
import os, pwd, sys
def unknown(uid):
    raise KeyError(uid)
pwd.getpwuid = unknown  # a user id without an entry, as in a container
for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
    os.environ.pop(name, None)
from wayveil.cli.main import main
main()
"""
SCOPE = 'name = "small"\nsouth = 30.0\nwest = -40.0\nnorth = 30.04\neast = -39.96\ntimezone = "UTC"\n'
MEASURE = "measure rides.csv --dataset rides --scope small.toml --epsilon 1 --unit trajectory -o r.json"


@pytest.mark.skipif(os.name != "posix", reason="user ids")
def test_a_user_id_without_an_entry_measures_with_a_named_ledger(tmp_path):
    rows = [f"{k},30.01,-39.98,{1_700_000_000 + 60 * k + step}" for k in range(20) for step in (0, 30)]
    (tmp_path / "rides.csv").write_text("traj_id,lat,lon,t\n" + "\n".join(rows))
    (tmp_path / "small.toml").write_text(SCOPE)

    def call(words):
        command = [sys.executable, "-c", NOBODY, *words.split()]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)

    for words in (MEASURE, "ledger show"):
        done = call(words)
        assert done.returncode == 2 and "--ledger" in done.stderr and not (tmp_path / "r.json").exists(), done
    done = call(f"{MEASURE} --ledger l.sqlite")
    assert done.returncode == 0 and done.stderr.count("no home folder") == 1, done


@pytest.mark.parametrize(
    "text", ["1_0", "1_0.5", "\u0661", "\uff11", "0x1", "1e1_0", "Infinity", "nan", "", "1 0", "1,5"]
)
def test_numbers_are_plain_decimals(text):
    for read in (exact_epsilon, exact_delta):
        with pytest.raises(InputError):
            read(text)


@pytest.mark.parametrize(("text", "value"), [("1", 1), (" 0.5 ", 0.5), ("+1.", 1), (".5", 0.5), ("1e-1", 0.1)])
def test_usual_spellings_of_numbers_are_read(text, value):
    assert float(exact_epsilon(text)) == value
