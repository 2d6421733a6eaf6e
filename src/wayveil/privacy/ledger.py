"""The durable account of spent privacy: it refuses first, commits second, and only then may noise be drawn.

One SQLite file per data owner holds an append-only chain of entries: a dataset is opened, a total is changed, budget is
spent. `Ledger.spend` writes all lines of a measurement in one transaction on disk before it returns. A measurement
reads the data first, spends second and draws noise third; so a process that is killed while it reads has spent
nothing and may simply be started again, and one that is killed after the spend has spent, whatever it had written.

The ledger keeps what is promised per trajectory and per user (see `wayveil.privacy.accounts`). The file itself, its
locks and its witnesses are handled by `wayveil.privacy.ledger_file`.
"""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from wayveil.core import outcome
from wayveil.errors import REMEDY, BudgetError, InputError
from wayveil.io.ledger_paths import default_path, ledger_files
from wayveil.privacy.accounts import Charge, Dataset, Kind, Loss, refusal
from wayveil.privacy.budget import Number, decimal_text, exact_delta, exact_epsilon
from wayveil.privacy.entries import Entry, Line, now_utc, unknown_dataset
from wayveil.privacy.ledger_arguments import clean_name, clean_reason, kind_of, only_total
from wayveil.privacy.ledger_file import LedgerFile
from wayveil.privacy.ledger_table import dataset_table
from wayveil.privacy.unit import Unit

__all__ = ["Ledger", "Receipt", "Spend", "clean_name", "default_path", "kind_of", "ledger_files"]


@dataclass(frozen=True)
class Spend:
    """One line of a measurement: the question, its exact cost, and its purpose."""

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
        self._file = LedgerFile(path, timeout_s)

    @property
    def path(self) -> Path:
        """The ledger file."""
        return self._file.path

    def __repr__(self) -> str:
        return f"Ledger('{self.path.name}')"

    @property
    def secret(self) -> bytes:
        """The key of `ContentDigest`; it never leaves the trusted side."""
        with self._file.transaction() as entries:
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
        with self._file.transaction() as entries:
            known = entries.dataset(name)
            if known is not None:
                allow = self._file.remedies.allow(name, kind, "E")
                raise BudgetError(f"Dataset '{name}' is already open; change its total with: {REMEDY}.", allow)
            entries.append(Entry("open", name, epsilon=epsilon, delta=delta, unit=kind))
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
        name, reason = clean_name(name), clean_reason(reason)
        epsilon = None if total is None else exact_epsilon(total, "total")
        kind = None if unit is None else kind_of(unit)
        with self._file.transaction() as entries:
            known = entries.require(name)
            kind = kind or only_total(known)
            if epsilon is None:
                entries.append(Entry("waive", name, purpose=reason, unit=kind))
                return entries.require(name)
            before = known.account(kind)
            if total_delta is not None:
                delta = exact_delta(total_delta)
            else:
                delta = Fraction(0) if before.total is None else before.total.delta
            self._check_total(known, kind, Loss(epsilon, delta))
            entries.append(Entry("allow", name, epsilon=epsilon, delta=delta, purpose=reason, unit=kind))
            return entries.require(name)

    def _check_total(self, known: Dataset, kind: Kind, total: Loss) -> None:
        """BudgetError for a total that the measurements so far exceed, or that they cannot promise."""
        spent = known.account(kind).spent
        if spent is None:
            raise BudgetError(
                f"Dataset '{known.name}' cannot promise a total per user, because it has trajectory-level "
                "measurements, which cost a user with k trajectories k times their epsilon; state that nothing is "
                f"promised per user with: {REMEDY}.",
                self._file.remedies.allow(known.name, "user", None),
            )
        if total.epsilon < spent.epsilon:
            raise BudgetError(
                f"Dataset '{known.name}' has already spent {decimal_text(spent.epsilon)} per {kind}; a total of "
                f"{decimal_text(total.epsilon)} is below that, so choose a higher one."
            )
        if total.delta < spent.delta:
            raise BudgetError(
                f"Dataset '{known.name}' has already spent a delta of {decimal_text(spent.delta)} per {kind}; choose "
                "a higher total_delta=."
            )

    def check_spend(self, name: str, lines: Sequence[Spend], *, unit: Unit) -> None:
        """BudgetError if `spend` would now refuse these lines on a dataset that is open; nothing is written.

        It reserves nothing: another process may spend in the meantime, so `spend` checks again.
        """
        name, charge = clean_name(name), _charge(lines, unit)
        with self._file.reading() as entries:
            known = None if entries is None else entries.dataset(name)
            if known is not None and (error := refusal(known, charge, self._file.remedies)) is not None:
                raise error

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
        charge, measurement, now = _charge(lines, unit), secrets.token_hex(8), now_utc()
        with outcome.stated_in_errors(), self._file.transaction(spends=True) as entries:
            known = entries.dataset(name)
            if known is None:
                if total_if_new is None:
                    opening = self._file.remedies.open(name, unit.kind)
                    raise BudgetError(f"Dataset '{name}' is not on the ledger; open it with: {REMEDY}.", opening)
                delta = charge.loss.delta if total_delta_if_new is None else exact_delta(total_delta_if_new)
                total = exact_epsilon(total_if_new, "total")
                entries.append(Entry("open", name, epsilon=total, delta=delta, unit=unit.kind))
                known = entries.require(name)
            if (error := refusal(known, charge, self._file.remedies)) is not None:
                raise error
            for line in lines:
                spend = Entry("spend", name, line.name, line.epsilon, line.delta, line.purpose, measurement)
                entries.append(replace(spend, unit=unit, time_utc=now))
            entries.remember(name, digest)
            dataset = entries.require(name, digest)
            if dataset.charges != (*known.charges, charge):
                raise self._file.altered()
        return Receipt(dataset, measurement, now, lines)

    def datasets(self) -> tuple[Dataset, ...]:
        """Every dataset by name, with what it has spent; none, if there is no ledger."""
        with self._file.reading() as entries:
            return () if entries is None else tuple(entries.require(name) for name in entries.names())

    def lines(self, name: str) -> tuple[Line, ...]:
        """Every entry about one dataset, oldest first."""
        name = clean_name(name)
        with self._file.reading() as entries:
            if entries is None:
                raise unknown_dataset(name)
            entries.require(name)
            return entries.lines(name)

    def table(self) -> list[dict[str, Any]]:
        """Every dataset with its totals, what was spent on it, when and for what, as plain values."""
        return [dataset_table(dataset, self.lines(dataset.name)) for dataset in self.datasets()]

    def accept(self, reason: str) -> None:
        """Continue with a ledger that was moved, restored or started again; the reason stays in the ledger."""
        with self._file.transaction(accept=True) as entries:
            entries.append(Entry("accept", purpose=clean_reason(reason)))


def _charge(lines: Sequence[Spend], unit: Unit) -> Charge:
    """What all lines of one measurement cost together."""
    if not lines or any(line.epsilon < 0 or line.delta < 0 for line in lines):
        raise InputError("A measurement needs at least one line, and no line may cost less than 0.")
    loss = Loss(sum((line.epsilon for line in lines), Fraction(0)), sum((x.delta for x in lines), Fraction(0)))
    if loss.epsilon <= 0:
        raise InputError("A measurement must cost more than 0.")
    return Charge(loss, unit)
