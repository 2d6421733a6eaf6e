"""The durable account of spent privacy: it refuses first, commits second, and only then may noise be drawn.

One SQLite file per data owner holds an append-only chain of entries: a dataset is opened, a total is changed, budget is
spent. `Ledger.spend` writes all lines of a measurement in one transaction on disk before it returns. A measurement
reads the data first, spends second and draws noise third; so a process that is killed while it reads has spent
nothing and may simply be started again, and one that is killed after the spend has spent, whatever it had written.

The ledger keeps what is promised per trajectory and per user (see `wayveil.privacy.accounts`). Entries are chained by
hashes and their number is witnessed outside the file (see `wayveil.privacy.witness`, which also says what cannot be
noticed). Threads and processes exclude each other (see `wayveil.privacy.locks`).
"""

import os
import secrets
import sqlite3
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wayveil.core import outcome
from wayveil.core.signals import deferred_signals
from wayveil.errors import CHARGED, UNKNOWN_CHARGE, BudgetError, InputError, LedgerWarning
from wayveil.io import ledger_paths
from wayveil.io.ledger_paths import default_path, ledger_files
from wayveil.privacy import store, witness
from wayveil.privacy.accounts import KINDS, Charge, Dataset, Kind, Loss, refusal
from wayveil.privacy.budget import Number, decimal_text, exact_delta, exact_epsilon
from wayveil.privacy.entries import Entries, Line, now_utc
from wayveil.privacy.ledger_table import dataset_table
from wayveil.privacy.unit import Unit

__all__ = ["Ledger", "Receipt", "Spend", "clean_name", "default_path", "ledger_files"]

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


class Ledger:
    """The account of spent privacy: how much may be spent on which dataset, and what was spent.

    The file is created on first use, with mode 0600; no connection is held between calls.

    Parameters
    ----------
    path
        The ledger file; by default in your data folder.
    timeout_s
        How long to wait for another process that uses it.

    Examples
    --------
    >>> import wayveil
    >>> ledger = wayveil.Ledger("ledger.sqlite")
    >>> ledger
    Ledger('ledger.sqlite')
    >>> wayveil.open_dataset("rides.csv", "rides", 2, unit="trajectory", ledger=ledger)  # doctest: +SKIP
    >>> ledger.allow("rides", 3, "yearly report")  # doctest: +SKIP
    >>> ledger.table()  # doctest: +SKIP

    Privacy
    -------
    Not private (trusted side only): the file holds a secret and keyed digests; it never leaves the data owner.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, timeout_s: float = 30.0) -> None:
        self.path = ledger_paths.resolved(path)
        self.timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"Ledger('{self.path.name}')"

    @property
    def secret(self) -> bytes:
        """The key of `ContentDigest`; it never leaves the trusted side."""
        with self._transaction() as entries:
            return entries.secret

    def open_dataset(
        self,
        name: str,
        total: Number,
        digest: str | None = None,
        *,
        unit: Unit | str,
        total_delta: Number = 0,
    ) -> Dataset:
        """Name a dataset and set its total per trajectory or per user; later changes go through `allow`."""
        name, epsilon, delta = clean_name(name), exact_epsilon(total, "total"), exact_delta(total_delta)
        kind = kind_of(unit)
        with self._transaction() as entries:
            known = entries.dataset(name)
            if known is not None:
                raise BudgetError(
                    f"Dataset '{name}' is open already; change its total with: "
                    f'wayveil ledger allow "{name}" --unit {kind} --total E --reason "...".'
                )
            entries.append("open", name, epsilon=epsilon, delta=delta, unit=kind)
            entries.remember(name, digest)
            return entries.require(name, digest)

    def allow(
        self,
        name: str,
        total: Number | None,
        reason: str,
        *,
        unit: Unit | str | None = None,
        total_delta: Number | None = None,
    ) -> Dataset:
        """Change the total per trajectory or per user; the reason stays on the ledger.

        A total of None states that nothing is promised to this unit any more. `unit` may be left out where only one
        unit has a total.
        """
        name, reason = clean_name(name), _clean_reason(reason)
        epsilon = None if total is None else exact_epsilon(total, "total")
        kind = None if unit is None else kind_of(unit)
        with self._transaction() as entries:
            known = entries.require(name)
            kind = kind or _only_total(known)
            if epsilon is None:
                entries.append("waive", name, purpose=reason, unit=kind)
                return entries.require(name)
            before = known.account(kind)
            if total_delta is not None:
                delta = exact_delta(total_delta)
            else:
                delta = Fraction(0) if before.total is None else before.total.delta
            if before.spent is None:
                raise BudgetError(
                    f"Dataset '{name}' cannot promise a total per user, because it has trajectory-level measurements, "
                    "which cost a user with k trajectories k times their epsilon; state that nothing is promised "
                    f'per user with: wayveil ledger allow "{name}" --unit user --total none --reason "...".'
                )
            if epsilon < before.spent.epsilon or delta < before.spent.delta:
                raise BudgetError(
                    f"Dataset '{name}' has spent {decimal_text(before.spent.epsilon)} per {kind} already; "
                    f"a total of {decimal_text(epsilon)} is below that, choose a higher one."
                    if epsilon < before.spent.epsilon
                    else f"Dataset '{name}' has spent a delta of {decimal_text(before.spent.delta)} per {kind} "
                    "already; choose a higher total_delta=."
                )
            entries.append("allow", name, epsilon=epsilon, delta=delta, purpose=reason, unit=kind)
            return entries.require(name)

    def spend(
        self,
        name: str,
        lines: Sequence[Spend],
        *,
        unit: Unit,
        total_if_new: Fraction | None = None,
        total_delta_if_new: Fraction | None = None,
        digest: str | None = None,
    ) -> Receipt:
        """Enter all lines of one measurement, or none: refuse first, commit second.

        A name that is not open yet is opened with `total_if_new` for this unit. When this returns, the lines are on
        disk. An error whose message or notes do not contain `CHARGED` or `UNKNOWN_CHARGE` has spent nothing.

        Privacy
        -------
        Spends: the sum of the lines, by sequential composition, whether or not anything is released afterwards.
        """
        name, lines = clean_name(name), tuple(lines)
        if not lines or any(line.epsilon < 0 or line.delta < 0 for line in lines):
            raise InputError("A measurement needs at least one line, and no line may cost less than 0.")
        asked = Loss(sum((line.epsilon for line in lines), Fraction(0)), sum((x.delta for x in lines), Fraction(0)))
        if asked.epsilon <= 0:
            raise InputError("A measurement must cost more than 0.")
        charge, measurement, now = Charge(asked, unit), secrets.token_hex(8), now_utc()
        with outcome.stated_in_errors(), self._transaction(spends=True) as entries:
            known = entries.dataset(name)
            if known is None:
                if total_if_new is None:
                    raise BudgetError(
                        f"Dataset '{name}' is not on the ledger; open it with: "
                        f'wayveil ledger open FILE --dataset "{name}" --unit {unit.kind} --total E.'
                    )
                delta = asked.delta if total_delta_if_new is None else exact_delta(total_delta_if_new)
                total = exact_epsilon(total_if_new, "total")
                entries.append("open", name, epsilon=total, delta=delta, unit=unit.kind)
                known = entries.require(name)
            if (sentence := refusal(known, charge)) is not None:
                raise BudgetError(sentence)
            for line in lines:
                entries.append(
                    "spend", name, line.name, line.epsilon, line.delta, line.purpose, measurement, unit=unit,
                    time_utc=now,
                )  # fmt: skip
            entries.remember(name, digest)
            dataset = entries.require(name, digest)
            if dataset.charges != (*known.charges, charge):
                raise self._altered()
        return Receipt(dataset, measurement, now, lines)

    def datasets(self) -> tuple[Dataset, ...]:
        """Every dataset by name, with what it has spent; none, if there is no ledger."""
        with self._reading() as entries:
            return () if entries is None else tuple(entries.require(name) for name in entries.names())

    def lines(self, name: str) -> tuple[Line, ...]:
        """Every entry about one dataset, oldest first."""
        name = clean_name(name)
        with self._reading() as entries:
            if entries is None:
                raise BudgetError(f"Dataset '{name}' is not on the ledger; see: wayveil ledger show.")
            entries.require(name)
            return entries.lines(name)

    def table(self) -> list[dict[str, Any]]:
        """Every dataset with its totals, what was spent on it, when and for what, as plain values."""
        return [dataset_table(dataset, self.lines(dataset.name)) for dataset in self.datasets()]

    def accept(self, reason: str) -> None:
        """Go on with a ledger that was moved, restored or begun anew; the reason stays on the ledger."""
        with self._transaction(accept=True) as entries:
            entries.append("accept", purpose=_clean_reason(reason))

    def verify(self) -> None:
        """Recompute the whole chain and let SQLite check the file, as every use does; InputError if either fails."""
        with self._reading():
            pass

    @contextmanager
    def _reading(self) -> Iterator[Entries | None]:
        """The entries, or None without a ledger, which is not created."""
        with store.exclusive(self.path, self.timeout_s, create=False) as there:
            if there:
                with self._begun() as entries:
                    yield entries
                return
            seen = witness.read(ledger_paths.near_witness(self.path))
            if seen is not None and seen.count > 0:
                raise self._lost(f"lacks {seen.count} entries that it once had: it was deleted or moved away")
            yield None

    @contextmanager
    def _transaction(self, *, accept: bool = False, spends: bool = False) -> Iterator[Entries]:
        """All or nothing, with every other thread and process kept out until the witnesses are written."""
        with (
            store.exclusive(self.path, self.timeout_s, create=True),
            self._begun(accept=accept, spends=spends) as entries,
        ):
            yield entries

    @contextmanager
    def _begun(self, *, accept: bool = False, spends: bool = False) -> Iterator[Entries]:
        with store.transaction(self.path, self.timeout_s) as db:
            entries = Entries(db)
            if not accept:
                self._compare(entries)
            before = entries.head()
            if before.count == 0:
                # Before the first entry: from now on a ledger with entries and without any witness was copied.
                self._testify(entries, needed=True, replace=accept)
            yield entries
            after = entries.head()
            # A signal must not separate the commit from its record and from the witnesses.
            with deferred_signals():
                self._commit(db, after, spends)
                if after == before:
                    return
                if spends:
                    outcome.record(CHARGED)
                self._testify(entries, replace=accept)

    def _commit(self, db: sqlite3.Connection, after: witness.Witness, spends: bool) -> None:
        """Commit; after an error read the chain back and state what happened."""
        try:
            db.execute("COMMIT")
        except BaseException as error:
            store.discard(db)
            saved = self._is_saved(after)
            if spends and saved is not False:
                outcome.record(CHARGED if saved else UNKNOWN_CHARGE)
            if not isinstance(error, sqlite3.Error):
                raise
            raise InputError(_commit_words(self.path.name, saved, spends)) from None

    def _is_saved(self, after: witness.Witness) -> bool | None:
        """Whether the chain on disk contains an entry; None if it cannot be read."""
        try:
            with store.transaction(self.path, self.timeout_s) as db:
                return Entries(db).had(after)
        except Exception:
            return None

    def _compare(self, entries: Entries) -> None:
        """Refuse a ledger that its witnesses do not recognise, or whose chain is broken."""
        head = entries.head()
        far_place = ledger_paths.far_witness(head.ledger)
        near = witness.read(ledger_paths.near_witness(self.path))
        far = None if far_place is None else witness.read(far_place)
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
            if near != head or (far_place is not None and far != head):
                # A crash after a commit, or a lost witness: the ledger is ahead, so the witnesses follow.
                self._testify(entries)
            return
        raise self._lost(what)

    def _lost(self, what: str) -> BudgetError:
        return BudgetError(
            f"The ledger '{self.path.name}' {what}; put the right file back, or, if what is missing was never "
            'released, go on with: wayveil ledger accept --reason "...".'
        )

    def _altered(self) -> InputError:
        return InputError(
            f"The ledger '{self.path.name}' was altered or damaged; restore it from a copy and run: "
            'wayveil ledger accept --reason "...".'
        )

    def _testify(self, entries: Entries, *, needed: bool = False, replace: bool = False) -> None:
        """Write both witnesses; one that the chain does not contain is only replaced if the owner accepts that."""
        head = entries.head()
        near, far = ledger_paths.near_witness(self.path), ledger_paths.far_witness(head.ledger)
        for place in (near, far):
            seen = None if place is None else witness.read(place)
            if seen is not None and not replace and not entries.had(seen):
                raise self._lost("was used by another process at the same time, and one of the two is not in it")
        try:
            witness.write(near, head)
        except OSError as error:
            if needed:
                raise InputError(
                    f"Cannot write next to the ledger '{self.path.name}': {error.strerror}; free space or choose "
                    "another ledger=."
                ) from None
        if far is None:
            warnings.warn(
                f"This account has no home folder, so the ledger '{self.path.name}' has a witness only next to it: "
                "if its folder is restored from a backup, nothing notices what was spent since.",
                LedgerWarning,
                stacklevel=2,
            )
            return
        # If the state folder cannot be written (a container), the witness next to the ledger remains.
        with suppress(OSError):
            witness.write(far, head)


def kind_of(unit: Unit | str) -> Kind:
    """'trajectory' or 'user'."""
    kind = unit.kind if isinstance(unit, Unit) else str(unit).strip().lower()
    if kind not in KINDS:
        raise InputError("The unit of a total is unknown; use unit='trajectory' or unit='user'.")
    return kind


def clean_name(name: str) -> str:
    """The name of a dataset in one spelling; it may end up in logs, so it is kept short and printable."""
    name = unicodedata.normalize("NFC", name).strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(f"A dataset's name has 1 to {LONGEST_NAME} printable characters; choose another dataset=.")
    return name


def _clean_reason(reason: str) -> str:
    reason = reason.strip()
    if not reason or len(reason) > LONGEST_REASON or not reason.isprintable():
        raise InputError(f'A reason is one line of 1 to {LONGEST_REASON} printable characters; write --reason "...".')
    return reason


def _only_total(known: Dataset) -> Kind:
    kinds = [kind for kind in KINDS if known.account(kind).total is not None]
    if len(kinds) != 1:
        how_many = "a total per trajectory and one per user" if kinds else "no total"
        raise InputError(f"Dataset '{known.name}' has {how_many}; add unit='trajectory' or unit='user'.")
    return kinds[0]


def _commit_words(name: str, saved: bool | None, spends: bool) -> str:
    """One of three: on the ledger, not on it, unknown."""
    failed = f"The ledger '{name}' could not be saved without an error (the disk is full or failing)"
    if saved is None:
        return f"{failed}. {UNKNOWN_CHARGE}" if spends else f"{failed}, and cannot be read back; check the disk first."
    if saved:
        what = "the budget is spent and nothing was released" if spends else "the change is on it"
        then = ", then raise the total with `wayveil ledger allow` to measure again" if spends else ""
        return f"{failed}, but {what}; check the disk{then}." + (f" {CHARGED}" if spends else "")
    what = "nothing was spent" if spends else "nothing was changed"
    return f"{failed} and {what}; free some space and try again."
