"""Damaged ledgers, witnesses and weights: what wayveil reads of its own."""

import json
import random
import shutil
import sqlite3
import tempfile
from fractions import Fraction
from functools import cache
from pathlib import Path

from fuzz_files import NUMBERS, WORDS, Kind, damaged_bytes, damaged_json

from wayveil.errors import WayveilError
from wayveil.io import ledger_paths
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit
from wayveil.synthesis.estimate.learned.weights import WEIGHTS_FILE, load_weights

TRIP = Unit.trajectory()

MARK = b"--witness--"
COLUMNS = (
    "seq", "kind", "dataset", "name", "epsilon", "delta", "time_utc", "purpose", "measurement", "digest", "chain",
    "unit", "max_per_user",
)  # fmt: skip
STATEMENTS = [
    "DROP TABLE entries", "DROP TABLE meta", "DELETE FROM meta", "DELETE FROM entries WHERE seq = 1",
    "DROP INDEX by_dataset", "PRAGMA user_version = 7", "PRAGMA application_id = 1",
    "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
    "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
    "ALTER TABLE entries ADD COLUMN more TEXT", "ALTER TABLE entries RENAME COLUMN chain TO link",
    "INSERT INTO entries SELECT seq + 100, kind, dataset, name, epsilon, delta, time_utc, purpose, measurement, "
    "digest, chain, unit, max_per_user FROM entries",
    "ALTER TABLE entries RENAME TO old", "CREATE VIEW v AS SELECT * FROM entries",
    "UPDATE meta SET value = zeroblob(9) WHERE key = 'secret'", "UPDATE meta SET value = '' WHERE key = 'id'",
    "UPDATE meta SET value = '../../../x' WHERE key = 'id'",
]  # fmt: skip


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """The ledger and its witness; the fuzzer keeps one file for both."""
    ledger, _, beside = data.rpartition(MARK)
    return ledger, beside


def _place(path: Path, data: bytes) -> Path:
    ledger, beside = _parts(data)
    path.with_name(path.name + "-journal").unlink(missing_ok=True)
    path.write_bytes(ledger)
    ledger_paths.near_witness(path).write_bytes(beside)
    return path


@cache
def good_ledger() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        ledger = Ledger(path)
        lines = [Spend("count", Fraction(1, 10), "test"), Spend("ends", Fraction(2, 5), "test")]
        ledger.spend("rides", lines, total_if_new=Fraction(2), digest="ab" * 16, unit=TRIP)
        ledger.allow("rides", Fraction(3), "a second year")
        return path.read_bytes() + MARK + ledger_paths.near_witness(path).read_bytes()


def damaged_ledger(rng: random.Random) -> bytes:
    """Its bytes, its rows and tables, or its witness."""
    ledger, beside = _parts(good_ledger())
    kind = rng.randrange(5)
    if kind == 0:
        for _ in range(rng.randint(0, 3)):
            ledger = damaged_bytes(ledger, rng)
    elif kind <= 3:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.sqlite"
            path.write_bytes(ledger)
            db = sqlite3.connect(path)
            db.execute("PRAGMA synchronous = OFF")
            for _ in range(rng.randint(1, 2)):
                try:
                    if rng.random() < 0.4:
                        db.execute(rng.choice(STATEMENTS))
                    else:
                        value = rng.choice([*WORDS, None, b"\xff\x00", *[n for n in NUMBERS if abs(n) < 2**63]])
                        column = rng.choice(COLUMNS)
                        db.execute(f"UPDATE entries SET {column} = ? WHERE seq = ?", (value, rng.randint(1, 4)))
                except (sqlite3.Error, UnicodeEncodeError, OverflowError):
                    pass
            db.commit()
            db.close()
            ledger = path.read_bytes()
    if rng.random() < 0.4:
        beside = damaged_json(json.loads(beside), rng) if rng.random() < 0.7 else damaged_bytes(beside, rng)
    return ledger + MARK + beside


def use_ledger(path: Path) -> None:
    """Show it and, whatever came of that, spend from it: a spend alone does not look at the whole chain."""
    # Nothing in the state folder: every ledger is judged by itself and by the witness next to it.
    shutil.rmtree(ledger_paths.state_folder(), ignore_errors=True)
    place = _place(path.with_suffix(".sqlite"), path.read_bytes())
    refused = None
    try:
        json.dumps(Ledger(place).table(), allow_nan=False).encode()
    except WayveilError as error:
        refused = error
    ledger = Ledger(place, timeout_s=1)
    before = {account.name: account.spent for account in ledger.datasets()}
    ledger.spend("rides", [Spend("again", Fraction(1, 8))], total_if_new=Fraction(1), unit=TRIP)
    after = {account.name: account.spent for account in Ledger(place).datasets()}
    assert after["rides"] == before.get("rides", 0) + Fraction(1, 8), "spent something else than was asked"
    if refused is not None:
        raise refused


def damaged_weights(rng: random.Random) -> bytes:
    data = WEIGHTS_FILE.read_bytes()
    return data if rng.random() < 0.02 else damaged_bytes(data, rng)


def use_weights(path: Path) -> None:
    for kind in ("occupancy", "end_points"):
        load_weights.__wrapped__(kind, path=path)


KINDS = {
    "ledger": Kind("ledger.bin", good_ledger, damaged_ledger, use_ledger),
    "weights": Kind("weights.npz", WEIGHTS_FILE.read_bytes, damaged_weights, use_weights),
}
