"""Arguments of the ledger in canonical form: the unit of a total, the name of a dataset, the reason for a change."""

import unicodedata

from wayveil.errors import InputError
from wayveil.privacy.accounts import KINDS, Dataset, Kind
from wayveil.privacy.unit import Unit

LONGEST_NAME = 100
"""Characters: a name is printed in tables and messages."""
LONGEST_REASON = 1000
"""Characters: a reason is one line of `wayveil ledger show`."""


def kind_of(unit: Unit | str) -> Kind:
    """'trajectory' or 'user'."""
    kind = unit.kind if isinstance(unit, Unit) else str(unit).strip().lower()
    if kind not in KINDS:
        raise InputError("The unit of a total is unknown; use unit='trajectory' or unit='user'.")
    return kind


def clean_name(name: str) -> str:
    """The name of a dataset in canonical form; it may end up in logs, so it is kept short and printable."""
    name = unicodedata.normalize("NFC", name).strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(f"A dataset's name has 1 to {LONGEST_NAME} printable characters; choose another dataset=.")
    return name


def clean_reason(reason: str) -> str:
    """The reason for a change, as one line."""
    reason = reason.strip()
    if not reason or len(reason) > LONGEST_REASON or not reason.isprintable():
        raise InputError(f'A reason is one line of 1 to {LONGEST_REASON} printable characters; write reason="...".')
    return reason


def only_total(known: Dataset) -> Kind:
    """The unit that has a total, if there is exactly one; otherwise InputError."""
    kinds = [kind for kind in KINDS if known.account(kind).total is not None]
    if len(kinds) != 1:
        how_many = "a total per trajectory and one per user" if kinds else "no total"
        raise InputError(f"Dataset '{known.name}' has {how_many}; add unit='trajectory' or unit='user'.")
    return kinds[0]
