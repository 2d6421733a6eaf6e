"""The internal report's own parts: real against synthetic, metrics, audit. Trusted side: this sees the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wayveil.errors import InputError
from wayveil.report.support import Support

_MOST_ROWS = 200


@dataclass(frozen=True)
class MetricRow:
    """One metric as text."""

    name: str
    compares: str
    value: str
    low: str
    high: str
    floor: str
    better: str
    below_floor: bool


@dataclass(frozen=True)
class Audit:
    """The audit's verdict, and what it rests on as a table."""

    verdict: str
    passed: bool | None
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Internal:
    """What only the internal report shows.

    Privacy: not private (trusted side only).
    """

    metrics: tuple[MetricRow, ...]
    audit: Audit | None
    support: Support | None


def make_internal(evaluation: Any | None, audit: Mapping[str, Any] | None, support: Support | None = None) -> Internal:
    """Metrics and audit as rows, and the map of what rests on data.

    `evaluation` is what `wayveil.evaluation.evaluate` gives, its `to_dict()`, or the JSON of `wayveil evaluate`;
    `audit` is the JSON object of `wayveil audit`.

    Privacy: not private (trusted side only).
    """
    return Internal(_metrics(evaluation), None if audit is None else _audit(audit), support)


def _metrics(evaluation: Any | None) -> tuple[MetricRow, ...]:
    if evaluation is None:
        return ()
    from wayveil.evaluation.words import metric_words

    plain = evaluation.to_dict() if hasattr(evaluation, "to_dict") else evaluation
    files = plain.get("files") if isinstance(plain, Mapping) else None
    if isinstance(files, Mapping) and files:  # `wayveil evaluate --json`: the synthetic file comes first
        plain = next(iter(files.values()))
    scores = plain.get("scores") if isinstance(plain, Mapping) else None
    if not isinstance(scores, Mapping):
        raise InputError("The evaluation has no 'scores'; give the JSON that `wayveil evaluate --json` prints.")
    try:
        return tuple(
            MetricRow(
                name=str(name),
                compares=metric_words(str(name)),
                **{part: f"{float(score[part]):.4f}" for part in ("value", "low", "high", "floor")},
                better="higher" if score.get("higher_is_better") else "lower",
                below_floor=bool(score.get("below_floor")),
            )
            for name, score in scores.items()
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("The evaluation is damaged; make it again with `wayveil evaluate --json`.") from None


def _audit(audit: Mapping[str, Any]) -> Audit:
    """A verdict and a table from whatever lists of records the audit holds."""
    if not isinstance(audit, Mapping):
        raise InputError("The audit is not a JSON object; give the file that `wayveil audit` wrote.")
    passed = audit.get("passed")
    verdict = audit.get("verdict")
    if not isinstance(verdict, str):
        verdict = (
            {True: "Passed", False: "Failed"}.get(passed, "No verdict was given.")
            if passed is not None
            else ("No verdict was given.")
        )
    if not isinstance(passed, bool):
        passed = None
    records = next(
        (value for value in audit.values() if isinstance(value, Sequence) and value
         and all(isinstance(record, Mapping) for record in value)), (),
    )[:_MOST_ROWS]  # fmt: skip
    columns = tuple(dict.fromkeys(str(key) for record in records for key in record))
    rows = tuple(tuple(_cell(record.get(name)) for name in columns) for record in records)
    if not records:
        plain = [(key, value) for key, value in audit.items() if isinstance(value, str | int | float | bool)]
        columns = ("", "") if plain else ()
        rows = tuple((str(key), _cell(value)) for key, value in plain if key not in ("verdict", "passed"))
    return Audit(verdict, passed, columns, rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
