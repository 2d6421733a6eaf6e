"""What the owner of a ledger can do after a refusal: a call in Python, or a command in a shell."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from wayveil.errors import Remedy

LIST = Remedy("wayveil.Ledger().table()", "wayveil ledger show")
"""Shows the datasets on the ledger."""


@dataclass(frozen=True)
class Remedies:
    """The remedies for the ledger at a path; None is the user's own ledger."""

    path: str | os.PathLike[str] | None

    def allow(self, name: str, unit: str, total: str | None, total_delta: str | None = None) -> Remedy:
        """Change the total of a dataset; without a total, nothing is promised to that unit any more."""
        more = "" if total_delta is None else f", total_delta={total_delta}"
        option = "" if total_delta is None else f" --total-delta {total_delta}"
        return Remedy(
            f"{self._ledger}.allow({name!r}, {total}, '...', unit={unit!r}{more})",
            self._command(f'allow {shlex.quote(name)} --unit {unit} --total {total or "none"}{option} --reason "..."'),
        )

    def accept(self) -> Remedy:
        """Go on with the ledger as it is."""
        return Remedy(f"{self._ledger}.accept('...')", self._command('accept --reason "..."'))

    def open(self, name: str, unit: str) -> Remedy:
        """Open a dataset."""
        ledger = "" if self.path is None else f", ledger={self._ledger}"
        return Remedy(
            f"wayveil.open_dataset(data, {name!r}, E, unit={unit!r}{ledger})",
            self._command(f"open FILE --dataset {shlex.quote(name)} --unit {unit} --total E"),
        )

    @property
    def _ledger(self) -> str:
        return f"wayveil.Ledger({'' if self.path is None else repr(os.fspath(self.path))})"

    def _command(self, words: str) -> str:
        ledger = "" if self.path is None else f" --ledger {shlex.quote(os.fspath(self.path))}"
        return f"wayveil ledger {words}{ledger}"


def all_of(remedies: Sequence[Remedy]) -> Remedy:
    """All of these, in this order, as one line."""
    return Remedy("; ".join(one.call for one in remedies), " && ".join(one.command for one in remedies))
