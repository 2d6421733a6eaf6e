"""The ledger as plain values, for `ledger show --json` and for Python."""

from collections.abc import Sequence
from typing import Any

from wayveil.privacy.accounts import Dataset, Kind
from wayveil.privacy.budget import decimal_text
from wayveil.privacy.entries import Line


def dataset_table(dataset: Dataset, lines: Sequence[Line]) -> dict[str, Any]:
    """One dataset: its totals, what was spent on it, when and for what."""
    return {
        "name": dataset.name,
        "opened": dataset.opened_utc,
        "trajectory": account_table(dataset, "trajectory"),
        "user": account_table(dataset, "user"),
        "lines": [_line_table(line) for line in lines],
        "warnings": list(dataset.warnings),
    }


def account_table(dataset: Dataset, kind: Kind) -> dict[str, Any]:
    """One unit's account as plain values."""
    account, at_level = dataset.account(kind), dataset.spent_at(kind)
    total, spent = account.total, account.spent
    return {
        "total": None if total is None else decimal_text(total.epsilon),
        "spent": None if spent is None else decimal_text(spent.epsilon),
        "left": None if account.left is None else decimal_text(account.left),
        "total_delta": None if total is None else decimal_text(total.delta),
        "spent_delta": None if spent is None else decimal_text(spent.delta),
        "bounded": spent is not None,
        "spent_at_this_level": decimal_text(at_level.epsilon),
        "words": dataset.words(kind),
    }


def _line_table(line: Line) -> dict[str, Any]:
    user_spend = line.kind == "spend" and line.unit.kind == "user"
    return {
        "kind": line.kind,
        "name": line.name,
        "epsilon": decimal_text(line.epsilon),
        "delta": decimal_text(line.delta),
        "unit": line.unit.kind,
        "max_per_user": line.unit.max_per_user if user_spend else None,
        "time": line.time_utc,
        "purpose": line.purpose,
        "measurement": line.measurement,
    }
