"""The content of the public data sheet, from the release and the synthetic data only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wayveil.core.roads import RoadMap
from wayveil.core.trajectories import Trajectories, batches
from wayveil.errors import InputError
from wayveil.questions.rest_share import RestShare
from wayveil.release import Release, statements
from wayveil.report.chart_errors import ChartErrors
from wayveil.report.figures import figures, quantities
from wayveil.report.map_data import map_data
from wayveil.report.uncertain_layer import uncertain_layer
from wayveil.report.verdict_section import VerdictSection, verdict_section
from wayveil.rules import count, motion_of
from wayveil.synthesis.uncertainty.uncertainty import can_be_judged, uncertainty


@dataclass(frozen=True)
class LedgerLine:
    """One question of the release: its meaning, its cost and its noise."""

    name: str
    meaning: str
    epsilon: str
    percent: float
    noise: str


@dataclass(frozen=True)
class RuleLine:
    """The description of one rule, with the exact number of violations in the synthetic data."""

    name: str
    words: str
    points: int
    trajectories: int


@dataclass(frozen=True)
class Sheet:
    """Everything on the public page: computed from the release, the synthetic data and public inputs alone.

    Privacy: free (post-processing).
    """

    place: str
    private: bool
    epsilon: str
    delta: str | None
    protected: str
    neighbours: str
    trajectories: int
    points: int
    promise: tuple[str, ...]
    not_promised: tuple[str, ...]
    ledger: tuple[LedgerLine, ...]
    scope: tuple[tuple[str, str], ...]
    steps: tuple[str, ...]
    rules: tuple[RuleLine, ...]
    rules_missing: str | None
    """A sentence if the rules on the page are not those that the data was made with; None otherwise."""
    roads_given: bool
    figures: tuple[str, ...]
    map: dict[str, Any]
    hours: str | None
    """Which comparisons between the hours of the map are valid; None for a map without hours."""
    verdict: VerdictSection | None
    """What the data is good for; None for a release that does not answer all questions."""
    errors: ChartErrors | None
    """The error bars of the charts."""
    software: str
    citation: str


def make_sheet(
    release: Release,
    synthetic: Trajectories,
    *,
    roads: RoadMap | None = None,
    rules: Sequence[Any] | None = None,
    notes: Mapping[str, str] | None = None,
) -> Sheet:
    """The public sheet of a synthetic dataset.

    Parameters
    ----------
    rules
        Rules from `wayveil.rules.read_rules`; their violations in the synthetic data are counted.
    notes
        The metadata of the synthetic file (`wayveil.io.files.read_metadata`).

    Privacy: free (post-processing).
    """
    if len(synthetic) == 0:
        raise InputError("The synthetic data is empty; give the file that `wayveil synthesize` wrote.")
    scope = release.scope
    given = tuple(rules or ())
    lines = _rule_lines(given, synthetic, release)
    metadata = notes or {}
    made_with = statements.number_of_rules(metadata)
    hours_closed: bool | None = any(rule.closed_hours() is not None for rule in given)
    if not hours_closed and len(given) < (made_with if made_with is not None else 1):
        hours_closed = None  # rules that this page does not know may have closed hours
    obeyed = bool(lines) and all(line.points == 0 for line in lines)
    found = uncertainty(release) if can_be_judged(release) else None
    errors = None if found is None else ChartErrors.of(found)
    drawings = tuple(figures(quantities(synthetic, scope), errors=errors))
    layer = None if found is None else uncertain_layer(found)
    return Sheet(
        place=scope.name,
        private=release.private,
        epsilon=statements.decimal(release.epsilon),
        delta=f"{release.delta:.1e}" if release.delta > 0 else None,
        protected=statements.protected(release),
        neighbours=release.neighbours,
        trajectories=len(synthetic),
        points=len(synthetic.lon),
        promise=tuple(statements.promise(release)),
        not_promised=(*statements.not_promised(release, hours_closed), *_rest_caveat(release)),
        ledger=_ledger(release),
        scope=_scope_rows(release),
        steps=_steps(metadata["roads"] == "true" if "roads" in metadata else roads is not None, obeyed),
        rules=lines,
        rules_missing=statements.rules_statement(None if rules is None else len(given), made_with),
        roads_given=roads is not None,
        figures=drawings,
        map=map_data(scope, {"Synthetic": synthetic}, roads, given, layer),
        hours=statements.map_hours_statement(release, hours_closed),
        verdict=None if found is None else verdict_section(found),
        errors=errors,
        software=release.software,
        citation=_citation(release),
    )


def _ledger(release: Release) -> tuple[LedgerLine, ...]:
    return tuple(
        LedgerLine(
            answer.name,
            answer.question.words(),
            statements.decimal(answer.epsilon),
            100 * float(answer.epsilon / release.epsilon),
            statements.noise_text(answer),
        )
        for answer in release.answers
    )


def _scope_rows(release: Release) -> tuple[tuple[str, str], ...]:
    scope, caps = release.scope, release.scope.caps
    days = "not published" if scope.first_day is None else f"{scope.first_day} to {scope.last_day}"
    return (
        ("Name", scope.name),
        ("Box", f"{scope.south:g}° to {scope.north:g}° north, {scope.west:g}° to {scope.east:g}° east (WGS 84), "
                f"{scope.width_m / 1000:.1f} by {scope.height_m / 1000:.1f} km"),
        ("Time zone", scope.timezone),
        ("Days", days),
        *((("Hours of the day", scope.hours),) if scope.hours else ()),
        ("Limits of each trajectory", f"{caps.points} points, {caps.length_km:g} km, {caps.duration_h:g} hours, "
                                     f"{caps.speed_kmh:g} km/h between two points"),
    )  # fmt: skip


def _steps(with_roads: bool, obeyed: bool) -> tuple[str, ...]:
    route = " on a public road map" if with_roads else ""
    rules = " and obey the traffic rules above" if obeyed else ""
    return (
        "Scope: box, days and caps were chosen without looking at the data.",
        "Measure: each question of the ledger was answered once, as integer sums with integer noise. The scale of "
        "the noise follows from the question's sensitivity and its share of ε.",
        "Estimate: smooth, non-negative densities were estimated from the noisy answers.",
        f"Synthesize: candidate trajectories{route} were weighted so that they give nearly the same answers to the "
        "questions"
        f"{rules}.",
    )


def _rule_lines(rules: tuple[Any, ...], synthetic: Trajectories, release: Release) -> tuple[RuleLine, ...]:
    if not rules:
        return ()
    pieces = [count(rules, motion_of(piece, release.scope)) for piece in batches(synthetic)]
    return tuple(
        RuleLine(
            name,
            rule.describe(),
            sum(piece[name]["points"] for piece in pieces),
            sum(piece[name]["trajectories"] for piece in pieces),
        )
        for rule, name in zip(rules, pieces[0])
    )


def _rest_caveat(release: Release) -> list[str]:
    """A caveat about the time at rest, which synthesis reproduces only roughly; none if noise hides the real one."""
    answer = next((answer for answer in release.answers if isinstance(answer.question, RestShare)), None)
    if answer is None or answer.counts.sum() <= len(answer.counts) * answer.noise:
        return []
    assert isinstance(answer.question, RestShare)
    counts, edges = np.maximum(answer.counts, 0.0), np.asarray(answer.question.bins.edges)
    share = float(counts @ (edges[1:] + edges[:-1]) / 2 / counts.sum())
    return [
        "Synthetic trajectories may stand still for a different share of their time than the real ones, for which the "
        f"release gives about {share:.0%}."
    ]


def _citation(release: Release) -> str:
    guarantee = f"ε = {statements.decimal(release.epsilon)}"
    if release.delta > 0:
        guarantee += f", δ = {release.delta:.1e}"
    days = "" if release.scope.first_day is None else f", {release.scope.first_day} to {release.scope.last_day}"
    return (
        f"Synthetic trajectories of {release.scope.name}{days}. Made with {release.software} from a differentially "
        f"private release ({guarantee}; protected: {statements.protected(release)})."
    )
