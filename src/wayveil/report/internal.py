"""The parts of the internal report: real against synthetic data, metrics, audit. Trusted side: this reads the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wayveil.errors import InputError
from wayveil.evaluation.metric_descriptions import metric_description
from wayveil.report.support import Support

_MOST_ROWS = 200
"""Rows of a table on the page."""


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
class TripRow:
    """One score of single trips as text."""

    name: str
    compares: str
    value: str
    floor: str
    conclusion: str


@dataclass(frozen=True)
class FeatureRow:
    """One telling feature as text."""

    name: str
    real: str
    synthetic: str
    distance: str


@dataclass(frozen=True)
class SingleTrips:
    """Real and synthetic trips side by side, and their scores where `wayveil evaluate --trips` computed them."""

    picture: str | None
    scores: tuple[TripRow, ...]
    telling: tuple[FeatureRow, ...]


@dataclass(frozen=True)
class Audit:
    """The audit's verdict, and its tests as a table."""

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
    trips: SingleTrips


def make_internal(
    evaluation: Any | None,
    audit: Mapping[str, Any] | None,
    support: Support | None = None,
    picture: str | None = None,
) -> Internal:
    """Metrics and audit as table rows, the map of the data's share, and single trips with their picture.

    `evaluation` is the result of `wayveil.evaluation.evaluate`, its `to_dict()`, or the JSON of `wayveil evaluate`;
    `audit` is the JSON object of `wayveil audit`.

    Privacy: not private (trusted side only).
    """
    plain = _plain(evaluation)
    trips = _trips(plain, picture)
    return Internal(_metrics(plain), None if audit is None else _audit(audit), support, trips)


def _plain(evaluation: Any) -> Any:
    """The evaluation of the first file as plain values; None without one."""
    plain = evaluation.to_dict() if hasattr(evaluation, "to_dict") else evaluation
    files = plain.get("files") if isinstance(plain, Mapping) else None
    if isinstance(files, Mapping) and files:  # `wayveil evaluate --json`: the synthetic file comes first
        return next(iter(files.values()))
    return plain


def _trips(plain: Any | None, picture: str | None) -> SingleTrips:
    found = plain.get("trips") if isinstance(plain, Mapping) else None
    if found is None:
        return SingleTrips(picture, (), ())
    try:
        scores = tuple(
            TripRow(
                name=str(name),
                compares=str(score["compares"]),
                value=f"{float(score['value']):.3g} {score['unit']}".strip(),
                floor=f"{float(score['floor']):.3g}",
                conclusion=str(score["conclusion"]),
            )
            for name, score in found["scores"].items()
        )
        telling = tuple(
            FeatureRow(
                str(row["name"]),
                f"{float(row['real_median']):.3g}",
                f"{float(row['synthetic_median']):.3g}",
                f"{float(row['distance']):.2f}",
            )
            for row in found["telling"]
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("The evaluation is damaged; make it again with wayveil.evaluate().") from None
    return SingleTrips(picture, scores, telling)


def _metrics(plain: Any | None) -> tuple[MetricRow, ...]:
    if plain is None:
        return ()
    scores = plain.get("scores") if isinstance(plain, Mapping) else None
    if not isinstance(scores, Mapping):
        raise InputError("The evaluation has no 'scores'; give what wayveil.evaluate() found, or its JSON.")
    try:
        return tuple(
            MetricRow(
                name=str(name),
                compares=metric_description(str(name)),
                **{part: f"{float(score[part]):.4f}" for part in ("value", "low", "high", "floor")},
                better="higher" if score.get("higher_is_better") else "lower",
                below_floor=bool(score.get("below_floor")),
            )
            for name, score in scores.items()
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("The evaluation is damaged; make it again with wayveil.evaluate().") from None


def _audit(audit: Mapping[str, Any]) -> Audit:
    """A verdict and a table from the lists of records in the audit."""
    if not isinstance(audit, Mapping):
        raise InputError("The audit is not a JSON object; give the file that `wayveil audit` wrote.")
    passed = audit.get("passed")
    verdict = audit.get("verdict")
    if not isinstance(verdict, str):
        verdict = (
            {True: "Passed", False: "Failed"}.get(passed, "The audit has no verdict.")
            if passed is not None
            else ("The audit has no verdict.")
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
