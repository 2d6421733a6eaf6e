"""The durable account of spent privacy: it refuses first, commits second, and only then may noise be drawn.

One SQLite file a data owner holds an append-only chain of entries: a dataset is opened, its total is changed, budget
is spent. `Ledger.spend` writes all lines of a measurement in one transaction on disk before it returns. A measurement
reads the data first, spends second and draws noise third; so a process that is killed while it reads has spent
nothing and may simply be started again, and one that is killed after the spend has spent, whatever it had written.

Entries are chained by hashes and their number is witnessed outside the file (see `wayveil.privacy.witness`, which
also says what cannot be noticed).
"""

import os
import secrets
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from wayveil.errors import BudgetError, InputError
from wayveil.privacy import store, witness
from wayveil.privacy.budget import decimal_text, exact_delta, exact_epsilon
from wayveil.privacy.entries import Dataset, Entries, Line, add_up, now_utc

LONGEST_NAME = 100
LONGEST_REASON = 1000


@dataclass(frozen=True)
class Spend:
    """One line of a measurement: what is asked, its exact cost, and what for."""

    name: str
    epsilon: Fraction
    purpose: str = ""
    delta: Fraction = Fraction(0)


@dataclass(frozen=True)
class Receipt:
    """Proof that the lines are on disk: from here on noisy numbers may exist."""

    dataset: Dataset
    measurement: str
    time_utc: str
    lines: tuple[Spend, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the data owner should know, without any number of the data."""
        return self.dataset.warnings


def default_path() -> Path:
    """The ledger of whoever runs this: `wayveil/ledger.sqlite` in the user's data folder."""
    return witness.data_folder() / "ledger.sqlite"


class Ledger:
    """The account at `path` (created on first use, mode 0600); it holds no connection between calls.

    Privacy
    -------
    Not private (trusted side only): the file holds a secret and keyed digests; it never leaves the data owner.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, timeout_s: float = 30.0) -> None:
        self.path = (Path(path).expanduser() if path is not None else default_path()).absolute()
        self.timeout_s = timeout_s

    @property
    def secret(self) -> bytes:
        """The key of `ContentDigest`; it never leaves the trusted side."""
        with self._transaction() as entries:
            return entries.secret

    def open_dataset(
        self, name: str, total: Fraction, digest: str | None = None, *, total_delta: Fraction = Fraction(0)
    ) -> Dataset:
        """Name a dataset and set its total once; later changes go through `allow`, with a reason."""
        name, total, total_delta = clean_name(name), exact_epsilon(total, "total"), exact_delta(total_delta)
        with self._transaction() as entries:
            known = entries.dataset(name)
            if known is not None:
                raise BudgetError(
                    f"Dataset '{name}' is open already with a total of {decimal_text(known.total)}; "
                    f'change it with: wayveil ledger allow "{name}" --total E --reason "...".'
                )
            entries.append("open", name, epsilon=total, delta=total_delta)
            entries.remember(name, digest)
            return entries.require(name, digest)

    def allow(self, name: str, total: Fraction, reason: str, *, total_delta: Fraction | None = None) -> Dataset:
        """Change the total of a dataset; the reason stays on the ledger."""
        name, total = clean_name(name), exact_epsilon(total, "total")
        with self._transaction() as entries:
            known = entries.require(name)
            delta = known.total_delta if total_delta is None else exact_delta(total_delta)
            if total < known.spent or delta < known.spent_delta:
                raise BudgetError(
                    f"Dataset '{name}' has spent {decimal_text(known.spent)} already; "
                    f"a total of {decimal_text(total)} is below that, choose a higher one."
                )
            entries.append("allow", name, epsilon=total, delta=delta, purpose=_clean_reason(reason))
            return entries.require(name)

    def spend(
        self,
        name: str,
        lines: Sequence[Spend],
        *,
        total_if_new: Fraction | None = None,
        total_delta_if_new: Fraction | None = None,
        digest: str | None = None,
    ) -> Receipt:
        """Enter all lines of one measurement, or none: refuse first, commit second.

        A name that is not open yet is opened with `total_if_new`. When this returns, the lines are on disk.

        Privacy
        -------
        Spends: the sum of the lines, by sequential composition, whether or not anything is released afterwards.
        """
        name, lines = clean_name(name), tuple(lines)
        if not lines or any(line.epsilon < 0 or line.delta < 0 for line in lines):
            raise InputError("A measurement needs at least one line, and no line may cost less than 0.")
        asked, asked_delta = add_up(line.epsilon for line in lines), add_up(line.delta for line in lines)
        if asked <= 0:
            raise InputError("A measurement must cost more than 0.")
        measurement, now = secrets.token_hex(8), now_utc()
        with self._transaction() as entries:
            known = entries.dataset(name)
            if known is None:
                if total_if_new is None:
                    raise BudgetError(
                        f"Dataset '{name}' is not on the ledger; open it with: "
                        f'wayveil ledger open FILE --dataset "{name}" --total E.'
                    )
                delta = asked_delta if total_delta_if_new is None else exact_delta(total_delta_if_new)
                entries.append("open", name, epsilon=exact_epsilon(total_if_new, "total"), delta=delta)
                known = entries.require(name)
            if known.spent + asked > known.total:
                raise BudgetError(_refusal(known, asked))
            if known.spent_delta + asked_delta > known.total_delta:
                raise BudgetError(_refusal_delta(known, asked_delta))
            for line in lines:
                entries.append(
                    "spend", name, line.name, line.epsilon, line.delta, line.purpose, measurement, time_utc=now
                )
            entries.remember(name, digest)
            dataset = entries.require(name, digest)
            if dataset.spent != known.spent + asked or dataset.spent_delta != known.spent_delta + asked_delta:
                raise self._altered()
        return Receipt(dataset, measurement, now, lines)

    def datasets(self) -> tuple[Dataset, ...]:
        """Every dataset by name, with what it has spent."""
        with self._transaction() as entries:
            return tuple(entries.require(name) for name in entries.names())

    def lines(self, name: str) -> tuple[Line, ...]:
        """Every entry about one dataset, oldest first."""
        with self._transaction() as entries:
            entries.require(clean_name(name))
            return entries.lines(clean_name(name))

    def accept(self, reason: str) -> None:
        """Go on with a ledger that was moved, restored or begun anew; the reason stays on the ledger."""
        with self._transaction(accept=True) as entries:
            entries.append("accept", purpose=_clean_reason(reason))

    def verify(self) -> None:
        """Recompute the whole chain and let SQLite check the file, as every use does; InputError if either fails."""
        with self._transaction():
            pass

    @contextmanager
    def _transaction(self, accept: bool = False) -> Iterator[Entries]:
        """All or nothing, with every other process kept out from the first read to the commit."""
        with store.connect(self.path, self.timeout_s) as db:
            with store.immediate(db, self.path):
                entries = Entries(db)
                if not accept:
                    self._compare(entries)
                before = entries.head()
                if before.count == 0:
                    # Before the first entry: from now on a ledger with entries and without any witness was copied.
                    self._testify(entries, needed=True)
                yield entries
                changed = entries.head() != before
            if changed or accept:
                # Under the lock again, so that a slower process cannot put an older witness over a newer one.
                try:
                    with store.immediate(db, self.path):
                        self._testify(Entries(db))
                except InputError:
                    pass  # The entries are on disk; the next call brings the witness up to date.

    def _compare(self, entries: Entries) -> None:
        head = entries.head()
        near, far = witness.read(witness.beside(self.path)), witness.read(witness.in_state(head.ledger))
        seen = [found for found in (near, far) if found is not None]
        if not seen and head.count == 0:
            return
        missing = max((found.count - head.count for found in seen), default=0)
        if missing > 0:
            what = f"lacks {missing} entries that it once had: it was rolled back, or copied and used elsewhere"
        elif not seen:
            what = "has entries but no witness: it was copied from elsewhere"
        elif any(not entries.had(found) for found in seen):
            what = "is not the one that was here before: it was replaced, or copied and used elsewhere"
        else:
            if not entries.is_sound():
                raise self._altered()
            if any(found != head for found in (near, far)):
                self._testify(entries)  # A crash after a commit, or a lost witness: the ledger is ahead, which heals.
            return
        raise BudgetError(
            f"The ledger '{self.path.name}' {what}; put the right file back, or, if what is missing was never "
            'released, go on with: wayveil ledger accept --reason "...".'
        )

    def _altered(self) -> InputError:
        return InputError(
            f"The ledger '{self.path.name}' was altered or damaged; restore it from a copy and run: "
            'wayveil ledger accept --reason "...".'
        )

    def _testify(self, entries: Entries, needed: bool = False) -> None:
        head = entries.head()
        try:
            witness.write(witness.beside(self.path), head)
        except OSError as error:
            if needed:
                raise InputError(
                    f"Cannot write next to the ledger '{self.path.name}': {error.strerror}; free space or choose "
                    "another --ledger."
                ) from None
        try:
            witness.write(witness.in_state(head.ledger), head)
        except OSError:
            pass  # No state folder (a container, a service account): the witness next to the ledger remains.


def as_table(path: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """The verified ledger as plain values for `ledger show`; a ledger that does not exist is empty and stays so."""
    ledger = Ledger(path)
    if not ledger.path.exists() and not witness.beside(ledger.path).exists():
        return []
    ledger.verify()
    return [
        {
            "name": dataset.name,
            "total": decimal_text(dataset.total),
            "spent": decimal_text(dataset.spent),
            "left": decimal_text(dataset.left),
            "total_delta": decimal_text(dataset.total_delta),
            "spent_delta": decimal_text(dataset.spent_delta),
            "opened": dataset.opened_utc,
            "lines": [
                {
                    "kind": line.kind,
                    "name": line.name,
                    "epsilon": decimal_text(line.epsilon),
                    "delta": decimal_text(line.delta),
                    "time": line.time_utc,
                    "purpose": line.purpose,
                    "measurement": line.measurement,
                }
                for line in ledger.lines(dataset.name)
            ],
            "warnings": list(dataset.warnings),
        }
        for dataset in ledger.datasets()
    ]


def clean_name(name: str) -> str:
    """The name of a dataset in one spelling; it may end up in logs, so it is kept short and printable."""
    name = unicodedata.normalize("NFC", name).strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(f"A dataset's name has 1 to {LONGEST_NAME} printable characters; choose another --dataset.")
    return name


def _clean_reason(reason: str) -> str:
    reason = reason.strip()
    if not reason or len(reason) > LONGEST_REASON or not reason.isprintable():
        raise InputError(f'A reason is one line of 1 to {LONGEST_REASON} printable characters; write --reason "...".')
    return reason


def _refusal(known: Dataset, asked: Fraction) -> str:
    cure = "lower --epsilon" if known.left > 0 else "make more from the release that was paid for, which is free"
    return (
        f"Dataset '{known.name}' is asked for {decimal_text(asked)} but {decimal_text(known.left)} of "
        f"{decimal_text(known.total)} remains ({decimal_text(known.spent)} is spent); {cure}, or raise the "
        f'total with: wayveil ledger allow "{known.name}" --total {decimal_text(known.spent + asked)} --reason "...".'
    )


def _refusal_delta(known: Dataset, asked: Fraction) -> str:
    return (
        f"Dataset '{known.name}' is asked for a delta of {decimal_text(asked)} but its total is "
        f"{decimal_text(known.total_delta)} ({decimal_text(known.spent_delta)} is spent); leave --delta out, or raise "
        f'it with: wayveil ledger allow "{known.name}" --total E --total-delta D --reason "...".'
    )
