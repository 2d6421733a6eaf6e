"""The ledger file: one transaction at a time, compared with its witnesses before and recorded by them afterwards.

Threads and processes exclude each other (see `wayveil.privacy.locks`). Entries are chained by hashes, and their number
is witnessed outside the file (see `wayveil.privacy.witness`, which also says what cannot be noticed).
"""

import os
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from wayveil.core import outcome
from wayveil.core.signals import deferred_signals
from wayveil.errors import CHARGED, REMEDY, UNKNOWN_CHARGE, BudgetError, InputError, LedgerWarning
from wayveil.io import ledger_paths
from wayveil.privacy import store, witness
from wayveil.privacy.entries import Entries
from wayveil.privacy.remedies import Remedies


class LedgerFile:
    """The file at `path`, by default the user's ledger; it is created on first use."""

    def __init__(self, path: str | os.PathLike[str] | None, timeout_s: float) -> None:
        self.path = ledger_paths.resolved(path)
        self.timeout_s = timeout_s
        self.remedies = Remedies(path)

    @contextmanager
    def reading(self) -> Iterator[Entries | None]:
        """The entries, or None if there is no ledger; none is created."""
        with store.exclusive(self.path, self.timeout_s, create=False) as there:
            if there:
                with self._begin() as entries:
                    yield entries
                return
            seen = witness.read(ledger_paths.near_witness(self.path))
            if seen is not None and seen.count > 0:
                raise self._lost(f"lacks {seen.count} entries that it once had: it was deleted or moved away")
            yield None

    @contextmanager
    def transaction(self, *, accept: bool = False, spends: bool = False) -> Iterator[Entries]:
        """All or nothing, with every other thread and process kept out until the witnesses are written."""
        with (
            store.exclusive(self.path, self.timeout_s, create=True),
            self._begin(accept=accept, spends=spends) as entries,
        ):
            yield entries

    @contextmanager
    def _begin(self, *, accept: bool = False, spends: bool = False) -> Iterator[Entries]:
        with store.transaction(self.path, self.timeout_s) as db:
            entries = Entries(db)
            if not accept:
                self._check_witnesses(entries)
            before = entries.head()
            if before.count == 0:
                # Written before the first entry, so a ledger that has entries but no witness must be a copy.
                self._write_witnesses(entries, needed=True, replace=accept)
            yield entries
            after = entries.head()
            # A signal must not separate the commit from its record and from the witnesses.
            with deferred_signals():
                self._commit(db, after, spends)
                if after == before:
                    return
                if spends:
                    outcome.record(CHARGED)
                self._write_witnesses(entries, replace=accept)

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
                return Entries(db).contains(after)
        except Exception:
            return None

    def _check_witnesses(self, entries: Entries) -> None:
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
        elif any(not entries.contains(found) for found in seen):
            what = "is not the one that was here before: it was replaced, or copied and used elsewhere"
        else:
            if not entries.is_sound():
                raise self.altered()
            if near != head or (far_place is not None and far != head):
                # A crash after a commit, or a lost witness: the ledger is ahead, so the witnesses follow.
                self._write_witnesses(entries)
            return
        raise self._lost(what)

    def _lost(self, what: str) -> BudgetError:
        return BudgetError(
            f"The ledger '{self.path.name}' {what}; put the right file back, or, if what is missing was never "
            f"released, continue with: {REMEDY}.",
            self.remedies.accept(),
        )

    def altered(self) -> InputError:
        """The error for a ledger whose content is not what was written to it."""
        return InputError(
            f"The ledger '{self.path.name}' was altered or damaged; restore it from a copy and run: {REMEDY}.",
            self.remedies.accept(),
        )

    def _write_witnesses(self, entries: Entries, *, needed: bool = False, replace: bool = False) -> None:
        """Write both witnesses; one that the chain does not contain is only replaced if the owner accepts that."""
        head = entries.head()
        near, far = ledger_paths.near_witness(self.path), ledger_paths.far_witness(head.ledger)
        for place in (near, far):
            seen = None if place is None else witness.read(place)
            if seen is not None and not replace and not entries.contains(seen):
                raise self._lost("was used by another process at the same time, and lacks the entries of one of them")
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
                "if its folder is restored from a backup, the spends since then go unnoticed.",
                LedgerWarning,
                stacklevel=2,
            )
            return
        # If the state folder cannot be written (a container), the witness next to the ledger remains.
        with suppress(OSError):
            witness.write(far, head)


def _commit_words(name: str, saved: bool | None, spends: bool) -> str:
    """The message for a failed commit: the entries are on the ledger, or they are not, or that is unknown."""
    failed = f"The ledger '{name}' could not be saved without an error (the disk is full or failing)"
    if saved is None:
        return f"{failed}. {UNKNOWN_CHARGE}" if spends else f"{failed}, and cannot be read back; check the disk first."
    if saved:
        what = "the budget is spent and nothing was released" if spends else "the change is on it"
        then = ", then raise the total on the ledger to measure again" if spends else ""
        return f"{failed}, but {what}; check the disk{then}." + (f" {CHARGED}" if spends else "")
    what = "nothing was spent" if spends else "nothing was changed"
    return f"{failed} and {what}; free some space and try again."
