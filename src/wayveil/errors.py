"""Every error that wayveil raises on purpose.

A message is one sentence that names the thing, the value and the cure. It never contains a coordinate,
an identifier or an exact private count, because messages end up in logs.
"""

import warnings

CHARGED = "The ledger was charged before this happened and stays charged."
"""Part of every message, and a note on every other error, about a failure after the spend."""


class WayveilError(Exception):
    """Anything that wayveil refuses or cannot do; `exit_code` is what the command line returns."""

    exit_code = 1


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


class BudgetError(WayveilError):
    """A privacy budget that does not allow what was asked."""

    exit_code = 3
