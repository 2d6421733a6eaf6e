"""What a reader should conclude from the scores: words, groups of metrics, and the metrics that matter for a use.

Privacy: not private (trusted side only).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from wayveil.errors import InputError
from wayveil.evaluation.floor import FEWEST, similar_sizes

Purpose = Literal["planning", "simulation", "research"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Places and streets": (
        "path_density_100", "density_100", "path_density_500", "density_500", "density_1000", "query_error",
        "coverage_tau",
    ),
    "Trips between places": (
        "trip_1000", "trip_2000", "trip_500", "trip_6x6", "endpoints_100", "start_500", "end_500", "start_100",
        "end_100", "trip_100",
    ),
    "Hours": ("start_hour", "start_week", "start_place_hour"),
    "Lengths and speeds": ("length", "speed", "duration", "length_20", "top_speed"),
    "Whole routes": ("relation", "relation_time", "diameter", "pattern_f1", "pattern_support"),
    "Recording": ("interval", "longest_step"),
}  # fmt: skip
"""Every metric once; the important groups, and the important metrics of a group, come first."""

MATTERS: Mapping[Purpose, tuple[str, ...]] = {
    "planning": ("path_density_100", "path_density_500", "trip_1000", "trip_2000", "start_hour", "start_place_hour",
                 "length", "speed"),
    "simulation": ("path_density_100", "trip_500", "trip_1000", "start_hour", "start_week", "length", "speed",
                   "duration", "relation_time"),
    "research": ("density_100", "endpoints_100", "trip_1000", "length", "relation", "relation_time", "start_week",
                 "pattern_f1", "longest_step"),
}  # fmt: skip
"""What counts: for planning, flows on streets and between zones at the hours of a day; for simulation, the departures
and routes that vehicles are given; for research, the distributions that papers compare, and whole trips."""

OF_ROUTES = (
    "path_density_100", "path_density_500", "relation", "relation_time", "pattern_f1", "pattern_support",
    "longest_step",
)  # fmt: skip
"""Metrics of the route between the ends, which say nothing about trips with two points."""
NO_ROUTES = "is not judged by metrics of routes, because hardly any real trip has points between its ends"

GOOD, ROUGH = 0.2, 0.45
"""Largest distances from the floor that are called good and rough: the bounds for trips between zones in
`wayveil.release.kinds`."""
NO_USE = "no use"
"""The word of a metric whose floor is too high to judge, and of a use with too many such metrics."""
NO_VERDICT = "no verdict"
"""The word of a use for which too few metrics were computed."""
_LINEAR = {"query_error", "coverage_tau", "pattern_f1", "pattern_support"}
"""Metrics that are not divergences: a distance from the floor is the difference itself."""
_JUDGED = 2 / 3
"""Least share of the metrics of a use that must be computed, and of the computed ones that must have a floor low enough
to judge; otherwise a few metrics would decide alone."""
_ALL_METRICS = "evaluate all metrics, times included, for a verdict"
_SATURATED = 0.5
"""Floor of a divergence, as a share of its largest value, above which the metric cannot distinguish good from bad
data."""


class Scored(Protocol):
    """One metric: its value with its interval, and its floor."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def floor(self) -> float: ...
    @property
    def higher_is_better(self) -> bool: ...


@dataclass(frozen=True)
class Conclusion:
    """How good data is for one use: a word, the words of its metrics, and details."""

    purpose: Purpose
    word: str
    """'good', 'rough' or 'poor'; 'no verdict' if too few of its metrics were computed, 'no use' if too few can be
    judged."""
    words: Mapping[str, str]
    details: str
    """How many of its metrics are good, and which are the weakest."""


def distance(name: str, score: Scored) -> float | None:
    """How far a score is from its floor, from 0 to about 1; None if the floor is too high to judge.

    It is 0 where the floor lies in the 95 % interval of the value. For a divergence D it is √(2·(D − floor)), because
    √(2·D) bounds the share of trips or points in a wrong cell (Pinsker's inequality).
    """
    value, floor = score.value, score.floor
    if not (math.isfinite(value) and math.isfinite(floor)):
        return None
    above = max((floor - value) if score.higher_is_better else (value - floor), 0.0)
    if score.low <= floor <= score.high:
        above = 0.0
    if name in _LINEAR:
        return above
    return None if floor > _SATURATED * math.log(2) else math.sqrt(2 * above)


def word_of(name: str, score: Scored) -> str:
    """'good', 'rough' or 'poor', by the distance from the floor; 'no use' if the floor is too high to judge."""
    away = distance(name, score)
    return NO_USE if away is None else _word(away)


def conclude(scores: Mapping[str, Scored], purpose: Purpose, *, routes: bool = True) -> Conclusion | None:
    """The conclusion for one use, from those of its metrics that were computed; None if there are none.

    The word is that of the mean distance from the floor. Without `routes`, the metrics of routes do not count.
    """
    matters = [name for name in MATTERS[purpose] if routes or name not in OF_ROUTES]
    found = {name: distance(name, scores[name]) for name in matters if name in scores}
    if not found:
        return None
    known = {name: away for name, away in found.items() if away is not None}
    words = {name: _word(away) for name, away in known.items()}
    if len(found) < _JUDGED * len(matters):
        details = f"only {len(found)} of {len(matters)} metrics that matter were computed; {_ALL_METRICS}"
        return Conclusion(purpose, NO_VERDICT, words, details)
    if len(known) < _JUDGED * len(found):
        details = f"{len(found) - len(known)} of {len(found)} metrics that matter cannot be judged with so few trips"
        return Conclusion(purpose, NO_USE, words, details)
    good = sum(word == "good" for word in words.values())
    weak = [f"{name} ({words[name]})" for name in sorted(known, key=known.__getitem__, reverse=True)[:2]
            if words[name] != "good"]  # fmt: skip
    summary = f"{good} of {len(words)} metrics that matter are good ({_criterion(words)})"
    word = _word(sum(known.values()) / len(known))
    return Conclusion(purpose, word, words, f"{summary}; furthest: {', '.join(weak)}" if weak else summary)


def _criterion(names: Iterable[str]) -> str:
    """What `distance` and `_word` call good, for these metrics."""
    linear = [name for name in names if name in _LINEAR]
    more = f", or {GOOD:g} for {' and '.join(linear)}" if linear else ""
    return f"at most {GOOD**2 / 2:.2g} worse than the floor{more}, or the floor is within the 95 % interval"


def conclusion_line(
    scores: Mapping[str, Scored],
    too_few: bool,
    below_floor: Iterable[str],
    purpose: Purpose | None = None,
    *,
    routes: bool = True,
) -> str:
    """The first line of an evaluation: what a reader should conclude; `routes` as in `conclude`."""
    if too_few:
        return f"Nothing can be concluded: there are fewer than {FEWEST} trajectories on one side."
    copied = list(below_floor)
    if copied:
        return (
            f"Do not publish before an audit: {', '.join(copied)} {'is' if len(copied) == 1 else 'are'} below the "
            "floor, which is a sign of copied records."
        )
    uses = PURPOSES if purpose is None else (purpose,)
    found = [one for one in (conclude(scores, use, routes=routes) for use in uses) if one is not None]
    if not found:
        return "Nothing can be concluded: no metric that matters for this use was computed."
    judged = [one for one in found if one.word not in (NO_USE, NO_VERDICT)]
    if purpose is not None:
        if judged:
            return f"This data is {judged[0].word} for {purpose}: {judged[0].details}."
        begin = "No verdict" if found[0].word == NO_VERDICT else "Nothing can be concluded"
        return f"{begin} for {purpose}: {found[0].details}."
    parts = [f"This data is {', '.join(f'{one.word} for {one.purpose}' for one in judged)}."] if judged else []
    if lost := _either(one.purpose for one in found if one.word == NO_USE):
        parts.append(f"Nothing can be concluded for {lost}: with so few trips, most metrics cannot be judged.")
    if missing := _either(one.purpose for one in found if one.word == NO_VERDICT):
        parts.append(f"No verdict for {missing}: too few metrics were computed; {_ALL_METRICS}.")
    return " ".join(parts)


def floor_warnings(scores: Mapping[str, Scored], n_real: int, n_synthetic: int) -> list[str]:
    """Why floors of these scores may not be comparable with other floors, one sentence each.

    Parameters
    ----------
    n_real, n_synthetic
        Numbers of trajectories.
    """
    if min(n_real, n_synthetic) < FEWEST:
        return []
    notes = []
    if not similar_sizes(n_real, n_synthetic):
        notes.append(
            "has less than half as many trajectories as the real data: its floors are those of small samples and are "
            "not comparable with floors at other sizes, and no search for copied records is made"
        )
    elif n_synthetic > 1.05 * n_real:
        notes.append(
            "has more trajectories than the real data: its floors are extrapolated, not measured, and are not "
            "comparable with floors at other sizes"
        )
    elif n_synthetic < 0.95 * n_real:
        notes.append(
            "has fewer trajectories than the real data: divergences and floors depend on that number, so compare each "
            "value with its own floor"
        )
    saturated = [name for name, score in scores.items() if name not in _LINEAR and distance(name, score) is None]
    if saturated:
        notes.append(f"cannot be judged by {', '.join(saturated)}: even the floor is close to the largest value")
    return notes


def in_groups(names: Iterable[str]) -> dict[str, list[str]]:
    """The given metrics by group, in the order of `GROUPS`; names without a group at the end."""
    left = list(names)
    result = {group: [name for name in members if name in left] for group, members in GROUPS.items()}
    known = {name for members in result.values() for name in members}
    result["Others"] = [name for name in left if name not in known]
    return {group: members for group, members in result.items() if members}


def purpose_of(given: str | None) -> Purpose | None:
    """The use of this name, or None; InputError for an unknown one."""
    if given is None:
        return None
    for purpose in PURPOSES:
        if purpose == given:
            return purpose
    raise InputError(f"Unknown use '{given}'; choose from {', '.join(PURPOSES)}.")


def _either(words: Iterable[str]) -> str:
    return " or ".join(", ".join(words).rsplit(", ", 1))


def _word(away: float) -> str:
    return "good" if away <= GOOD else "rough" if away <= ROUGH else "poor"
