"""The ledger's chain of entries inside one transaction, and the accounts that follow from it."""

import hashlib
import hmac
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from wayveil.errors import REMEDY, BudgetError, InputError
from wayveil.privacy.accounts import Charge, Dataset, Kind, Loss, dataset_of
from wayveil.privacy.budget import decimal_text, read_fraction
from wayveil.privacy.remedies import LIST
from wayveil.privacy.unit import Unit
from wayveil.privacy.witness import Witness


@dataclass(frozen=True)
class Line:
    """One entry about a dataset: 'open' and 'allow' set a unit's total, 'waive' removes it, 'spend' spends."""

    kind: str
    name: str
    epsilon: Fraction
    delta: Fraction
    time_utc: str
    purpose: str
    measurement: str
    unit: Unit
    """What is protected by a spend; of a total, only the unit's kind matters."""


@dataclass(frozen=True)
class Entry:
    """What is appended: a `Line`, a content digest ('content'), or why a changed ledger was accepted ('accept')."""

    kind: str
    dataset: str = ""
    name: str = ""
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    purpose: str = ""
    measurement: str = ""
    digest: str = ""
    unit: Unit | Kind | None = None
    """The unit of a spend, or the kind of unit of a total."""
    time_utc: str | None = None
    """None: now."""


# SQLite keeps a blob wherever one is put, whatever the column is declared as.
_TEXTS = ("kind", "dataset", "name", "epsilon", "delta", "time_utc", "purpose", "measurement", "digest", "chain",
          "unit", "max_per_user")  # fmt: skip
_NOT_TEXT = f"SELECT 1 FROM entries WHERE 'blob' IN ({', '.join(f'typeof({name})' for name in _TEXTS)}) LIMIT 1"


class Entries:
    """The chain inside one transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        meta = dict(db.execute("SELECT key, value FROM meta"))
        try:
            # The id names a file in the state folder: nothing but hexadecimal digits.
            self.secret, self._id = bytes.fromhex(meta["secret"]), bytes.fromhex(meta["id"]).hex()
        except (KeyError, TypeError, ValueError):
            raise sqlite3.DatabaseError("no identity") from None
        if not self.secret or not self._id or db.execute(_NOT_TEXT).fetchone() is not None:
            raise sqlite3.DatabaseError("not as it was written")

    def head(self) -> Witness:
        """The number of entries, and the last link of their chain."""
        row = self._db.execute("SELECT seq, chain FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
        return Witness(self._id, *(row or (0, "")))

    def contains(self, found: Witness) -> bool:
        """Whether the chain contains the entry that a witness recorded."""
        if found.count == 0:
            return True  # Nothing was ever spent there.
        if found.ledger != self._id:
            return False
        row = self._db.execute("SELECT chain FROM entries WHERE seq = ?", (found.count,)).fetchone()
        return row is not None and _same(row[0], found.head)

    def append(self, entry: Entry) -> None:
        """Append an entry, chained to the last one."""
        head, unit = self.head(), entry.unit
        cost = decimal_text(entry.epsilon), decimal_text(entry.delta)
        texts = (entry.purpose, entry.measurement, entry.digest)
        fields = (entry.kind, entry.dataset, entry.name, *cost, entry.time_utc or now_utc(), *texts)
        protects = (unit.kind, str(unit.max_per_user)) if isinstance(unit, Unit) else (unit or "", "")
        chain = _chain(self.secret, head.count + 1, head.head, fields, protects)
        row = (head.count + 1, *fields, chain, *protects)
        self._db.execute(f"INSERT INTO entries VALUES ({', '.join('?' * len(row))})", row)

    def remember(self, dataset: str, digest: str | None) -> None:
        """Note the keyed digest of the content measured under this name, once."""
        query = "SELECT 1 FROM entries WHERE kind = 'content' AND dataset = ? AND digest = ?"
        if digest is not None and self._db.execute(query, (dataset, digest)).fetchone() is None:
            self.append(Entry("content", dataset, digest=digest))

    def names(self) -> list[str]:
        """Every dataset, by name."""
        return [row[0] for row in self._db.execute("SELECT dataset FROM entries WHERE kind = 'open' ORDER BY dataset")]

    def lines(self, dataset: str) -> tuple[Line, ...]:
        """Every entry that changes the account of a dataset, oldest first."""
        query = (
            "SELECT kind, name, epsilon, delta, time_utc, purpose, measurement, unit, max_per_user FROM entries "
            "WHERE dataset = ? AND kind IN ('open', 'allow', 'waive', 'spend') ORDER BY seq"
        )
        rows = list(self._db.execute(query, (dataset,)))
        try:
            return tuple(
                Line(kind, name, read_fraction(epsilon), read_fraction(delta), time_utc, purpose, measurement,
                     Unit(unit, int(per_user or 1)))
                for kind, name, epsilon, delta, time_utc, purpose, measurement, unit, per_user in rows
            )  # fmt: skip
        except (ValueError, InputError):
            raise sqlite3.DatabaseError("not as it was written") from None

    def dataset(self, name: str, digest: str | None = None) -> Dataset | None:
        """The accounts of a dataset, or None; warnings about `digest`, or about any content it ever had."""
        lines = self.lines(name)
        if not lines:
            return None
        totals: dict[Kind, Loss | None] = {}
        spends: dict[str, Charge] = {}
        for line in lines:
            loss = Loss(line.epsilon, line.delta)
            if line.kind == "spend":
                before = spends.get(line.measurement, Charge(Loss(), line.unit))
                spends[line.measurement] = Charge(before.loss + loss, line.unit)
            else:
                totals[line.unit.kind] = None if line.kind == "waive" else loss
        first = lines[0]
        return dataset_of(
            name, first.unit.kind, totals, tuple(spends.values()), first.time_utc, self._warnings(name, digest)
        )

    def require(self, name: str, digest: str | None = None) -> Dataset:
        """`dataset`, or a refusal."""
        found = self.dataset(name, digest)
        if found is None:
            raise unknown_dataset(name)
        return found

    def _warnings(self, name: str, digest: str | None) -> tuple[str, ...]:
        query = (
            "SELECT DISTINCT other.dataset FROM entries mine JOIN entries other USING (digest) WHERE digest <> '' "
            "AND mine.dataset = ? AND other.dataset <> ? AND (? IS NULL OR digest = ?) ORDER BY other.dataset"
        )
        names = [other for (other,) in self._db.execute(query, (name, name, digest, digest))]
        if not names:
            return ()
        listed = " and as ".join(f"'{one}'" for one in (*names, name))
        return (
            f"The same content is on the ledger as {listed}; what is spent under these names adds up for the people "
            "in it, so measure it under one name.",
        )

    def is_sound(self) -> bool:
        """Whether the file is intact and every link of the chain is the one it should be."""
        if [row[0] for row in self._db.execute("PRAGMA integrity_check")] != ["ok"]:
            return False
        count, chain = 0, ""
        for seq, *fields, claimed, unit, per_user in self._db.execute("SELECT * FROM entries ORDER BY seq"):
            count, chain = count + 1, _chain(self.secret, count + 1, chain, fields, (unit, per_user))
            if seq != count or not _same(chain, claimed):
                return False
        return True


def _chain(secret: bytes, count: int, before: str, fields: Sequence[str], protects: tuple[str, str]) -> str:
    # Each field is preceded by its length, so that two different lists of fields never give the same text.
    named = (str(count), before, *fields, *protects)
    text = "".join(f"{len(field)}:{field}" for field in named)
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def unknown_dataset(name: str) -> BudgetError:
    """The error for a name that no entry has."""
    return BudgetError(f"Dataset '{name}' is not on the ledger; see: {REMEDY}.", LIST)


def now_utc() -> str:
    """The current time to the second, as the ledger writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
