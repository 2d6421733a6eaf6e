"""Every error that wayveil raises on purpose.

A message is one sentence that names the thing, the value and the cure. It never contains a coordinate,
an identifier or an exact private count, because messages end up in logs.
"""

import warnings

CHARGED = "The ledger was charged before this happened and stays charged."
"""Part of every message, and a note on every other error, about a failure after the spend."""
UNKNOWN_CHARGE = (
    "Whether the budget was spent is unknown, because the ledger cannot be read back; nothing was released, so check "
    "the disk and then look at `wayveil ledger show`."
)
"""Part of the message about a commit that failed so that not even its outcome can be read."""


def printable(text: str) -> str:
    """The text with control characters escaped: names and values from files must not act on a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class WayveilError(Exception):
    """Anything that wayveil refuses or cannot do; `exit_code` is what the command line returns."""

    exit_code = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(WayveilError):
    """A file, a column, an option or a value that cannot be used as it is."""

    exit_code = 2


class RuleError(InputError):
    """A traffic rule that cannot be read or that contradicts another one."""


class ReleaseError(InputError):
    """A release that cannot be read, is of another version, or was altered."""


class LowSignalError(InputError):
    """A measurement whose noise would hide the data; nothing was read or spent."""


class UnaccountedSpendWarning(UserWarning):
    """A measurement that no ledger records."""


# Each such call spends, so each one warns, and not only the first at its line; a filter of the user's goes before this.
warnings.filterwarnings("always", category=UnaccountedSpendWarning, append=True)


class FewTrajectoriesWarning(UserWarning):
    """A release whose noise is large against what was counted."""


class LeftOutWarning(UserWarning):
    """Synthetic trajectories that no change could make obey the rules."""


class UnusedMapWarning(UserWarning):
    """A road map without a road inside the scope."""


class LedgerWarning(UserWarning):
    """Something about the ledger that its owner should know."""


class BudgetError(WayveilError):
    """A privacy budget that does not allow what was asked."""

    exit_code = 3
