"""The parts of the internal report: real against synthetic data, metrics, audit. Trusted side: this reads the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wayveil.errors import InputError
from wayveil.evaluation.conclusion import MATTERS, PURPOSES, conclude, conclusion_line, in_groups, word_of
from wayveil.evaluation.metric_descriptions import metric_description
from wayveil.report.differences import Differences
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
    word: str
    """'good', 'rough' or 'poor', by its distance from the floor."""
    uses: str
    """The uses for which it matters."""


@dataclass(frozen=True)
class _Scored:
    """The parts of a score from which conclusions are drawn."""

    value: float
    low: float
    high: float
    floor: float
    higher_is_better: bool


@dataclass(frozen=True)
class UseVerdict:
    """How good the data is for one use, from the distances of the metrics that matter for it to their floors."""

    use: str
    word: str
    sentence: str


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
    """One feature that tells synthetic from real trips, as text."""

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

    conclusion: str | None
    """One sentence: what to conclude; None without an evaluation."""
    uses: tuple[UseVerdict, ...]
    warnings: tuple[str, ...]
    """Why floors may not be comparable."""
    metrics: tuple[tuple[str, tuple[MetricRow, ...]], ...]
    """Groups of metrics, the important ones first."""
    audit: Audit | None
    support: Support | None
    trips: SingleTrips
    differences: Differences | None


def make_internal(
    evaluation: Any | None,
    audit: Mapping[str, Any] | None,
    support: Support | None = None,
    picture: str | None = None,
    differences: Differences | None = None,
) -> Internal:
    """The verdict by use, metrics, audit, a map of where the density is based on data, single trips, and differences.

    `evaluation` is the result of `wayveil.evaluation.evaluate`, its `to_dict()`, or the JSON of `wayveil evaluate`;
    `audit` is the JSON object of `wayveil audit`.

    Privacy: not private (trusted side only).
    """
    plain = _plain(evaluation)
    scores = _scores(plain)
    return Internal(
        conclusion=_conclusion(plain, scores),
        uses=_uses(plain, scores),
        warnings=tuple(map(str, plain.get("warnings", ()))) if isinstance(plain, Mapping) else (),
        metrics=_metrics(scores, plain),
        audit=None if audit is None else _audit(audit),
        support=support,
        trips=_trips(plain, picture),
        differences=differences,
    )


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


def _scores(plain: Any | None) -> dict[str, _Scored]:
    if plain is None:
        return {}
    scores = plain.get("scores") if isinstance(plain, Mapping) else None
    if not isinstance(scores, Mapping):
        raise InputError("The evaluation has no 'scores'; give the result of wayveil.evaluate(), or its JSON.")
    try:
        return {str(name): _scored(score) for name, score in scores.items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("The evaluation is damaged; make it again with wayveil.evaluate().") from None


def _scored(score: Mapping[str, Any]) -> _Scored:
    value, low, high, floor = (float(score[part]) for part in ("value", "low", "high", "floor"))
    return _Scored(value, low, high, floor, bool(score.get("higher_is_better")))


def _below_floor(plain: Any | None) -> list[str]:
    if plain is None:
        return []
    return [str(name) for name, score in plain["scores"].items() if score.get("below_floor")]


def _conclusion(plain: Any | None, scores: Mapping[str, _Scored]) -> str | None:
    if plain is None:
        return None
    return conclusion_line(scores, bool(plain.get("too_few")), _below_floor(plain), routes=_routes(plain))


def _routes(plain: Any) -> bool:
    return plain.get("routes") is not False


def _uses(plain: Any | None, scores: Mapping[str, _Scored]) -> tuple[UseVerdict, ...]:
    if plain is None or plain.get("too_few"):
        return ()
    found = (conclude(scores, purpose, routes=_routes(plain)) for purpose in PURPOSES)
    return tuple(UseVerdict(one.purpose, one.word, one.details) for one in found if one is not None)


def _metrics(scores: Mapping[str, _Scored], plain: Any | None) -> tuple[tuple[str, tuple[MetricRow, ...]], ...]:
    below = _below_floor(plain)
    return tuple(
        (group, tuple(_metric_row(name, scores[name], name in below) for name in names))
        for group, names in in_groups(scores).items()
    )


def _metric_row(name: str, score: _Scored, below_floor: bool) -> MetricRow:
    return MetricRow(
        name=name,
        compares=metric_description(name),
        **{part: f"{getattr(score, part):.4f}" for part in ("value", "low", "high", "floor")},
        better="higher" if score.higher_is_better else "lower",
        below_floor=below_floor,
        word=word_of(name, score),
        uses=", ".join(use for use in PURPOSES if name in MATTERS[use]),
    )


def _audit(audit: Mapping[str, Any]) -> Audit:
    """A verdict and a table from the lists of records in the audit."""
    if not isinstance(audit, Mapping):
        raise InputError("The audit is not a JSON object; give the file that `wayveil audit` wrote.")
    passed = audit.get("passed")
    if not isinstance(passed, bool):
        passed = None
    verdict = audit.get("verdict")
    if not isinstance(verdict, str):
        verdict = {True: "Passed", False: "Failed", None: "The audit has no verdict."}[passed]
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
