"""Every error that wayveil raises on purpose.

A message is one sentence that names the thing, the value and the remedy. It names Python arguments (`unit="user"`) and
calls (`wayveil.check()`); the command line shows them as options and commands. It never contains a coordinate, an
identifier or an exact private count, because messages end up in logs.
"""

import warnings
from dataclasses import dataclass

CHARGED = "The ledger was charged before this happened and stays charged."
"""Added to the message of every failure after the budget was spent, and as a note to errors of other types."""
UNKNOWN_CHARGE = (
    "Whether the budget was spent is unknown, because the ledger cannot be read back; nothing was released, so check "
    "the disk and then look at wayveil.Ledger().table()."
)
"""Part of the message if a commit failed and its outcome cannot be read."""


def printable(text: str) -> str:
    """The text with control characters escaped, because names and values from files must not control the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@dataclass(frozen=True)
class Remedy:
    """The same remedy for a Python program and for a shell."""

    call: str
    command: str


REMEDY = "\0"
"""Placeholder for the remedy in messages. Names and values in messages are printable, so they never contain it."""


class WayveilError(Exception):
    """Base class: anything that wayveil refuses or cannot do. `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, message: str = "", remedy: Remedy | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy

    def __str__(self) -> str:
        return self._text("" if self.remedy is None else self.remedy.call)

    @property
    def command_line_text(self) -> str:
        """The message with a command as its remedy, in place of a Python call."""
        return self._text("" if self.remedy is None else self.remedy.command)

    def _text(self, remedy: str) -> str:
        message = super().__str__()
        return printable(message if self.remedy is None else message.replace(REMEDY, remedy))


class InputError(WayveilError):
    """A file, a column, an option or a value that cannot be used."""

    exit_code = 2


class RuleError(InputError):
    """A traffic rule that cannot be read or that contradicts another one."""


class ReleaseError(InputError):
    """A release that cannot be read, has another version, or was altered."""


class LowSignalError(InputError):
    """A measurement whose noise would hide the data; nothing was read or spent."""


class UnaccountedSpendWarning(UserWarning):
    """A measurement that no ledger records.

    Name the data (`dataset=`) to have every spend added up and limited, or silence the warning.

    Examples
    --------
    >>> import warnings, wayveil
    >>> warnings.simplefilter("ignore", wayveil.UnaccountedSpendWarning)  # doctest: +SKIP

    Privacy
    -------
    The measurement spends privacy budget nevertheless.
    """


# Every such call spends budget, so every one warns, not only the first from its line. The user's own filters come
# first.
warnings.filterwarnings("always", category=UnaccountedSpendWarning, append=True)


class FewTrajectoriesWarning(UserWarning):
    """A release whose noise is large compared with its counts."""


class LeftOutWarning(UserWarning):
    """Synthetic trajectories that were left out, because they could not be made to obey the rules."""


class UnusedMapWarning(UserWarning):
    """A road map without a road inside the scope."""


class LedgerWarning(UserWarning):
    """Something that the owner of the ledger should know."""


class BudgetError(WayveilError):
    """A request that the privacy budget does not allow."""

    exit_code = 3


def in_short(value: object) -> str:
    """At most 120 printable characters: a key in a file may have any length and contain control characters."""
    text = "".join(letter if letter.isprintable() else "?" for letter in str(value)[:120])
    return text if len(str(value)) <= 120 else text + "..."
