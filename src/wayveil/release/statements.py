"""Statements about a release in plain language, for reports, `describe` and warnings."""

import contextlib
import math
import warnings
from collections.abc import Mapping
from fractions import Fraction

from wayveil.core.warning_location import measuring_level
from wayveil.errors import FewTrajectoriesWarning
from wayveil.questions.answer import Answer
from wayveil.questions.end_point_hours import EndPointHours
from wayveil.questions.shares import LEAST_PER_PERSON
from wayveil.release.number import estimate_number
from wayveil.release.release import Release


def noise_text(answer: Answer) -> str:
    """The noise of an answer in trajectories: one number or a range."""
    least, most = (number(answer.noise * factor) for factor in answer.noise_range)
    return f"± {least}" if least == most else f"± {least} to {most}"


def number(value: float) -> str:
    """A short decimal without trailing zeros."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def decimal(value: Fraction | float, places: int = 6) -> str:
    """An exact short decimal where there is one, rounded otherwise."""
    return f"{float(value):.{places}f}".rstrip("0").rstrip(".") or "0"


def protected(release: Release) -> str:
    """Who or what is protected."""
    if release.unit == "user":
        limit = f"at most {release.max_per_user} of each person {'count' if release.delta else 'were used'}"
        return f"one person with all their trajectories ({limit})"
    return "one trajectory"


def promise(release: Release) -> list[str]:
    """The promise of a release in plain sentences."""
    epsilon = float(release.epsilon)
    thing = "a person's trajectories were" if release.unit == "user" else "a trajectory was"
    factor = math.exp(min(epsilon, 700.0))
    sure = 1 / (1 + math.exp(-epsilon))
    factor_text = f"{factor:.2f}" if factor < 100 else f"{factor:.3g}"
    lines = [
        f"Whether or not {thing} in the original data, the probability of every possible result, including this "
        f"one, changes by at most a factor of e^ε = {factor_text}.",
        f"For example, someone who was 50 % sure that {thing} in the data can become {_percent(sure)} sure, "
        "whatever else they know and however much they compute.",
        "Nothing was copied: the synthetic trajectories were drawn from noisy counts, without reading the data "
        "again. Anything computed from them costs no further privacy.",
    ]
    if release.delta > 0:
        lines.insert(2, delta_text(release.delta))
    return lines


def delta_text(delta: float) -> str:
    """What δ means, for readers without mathematics."""
    chance = f"one in {1 / delta:,.0f}" if delta < 0.5 else f"{100 * delta:.0f} %"
    return (
        f"This holds except for a small failure probability δ = {delta:g}, {chance}: with at most that probability the "
        "noise is such that more can be learned about somebody."
    )


_ENOUGH = 1_000
"""N·ε/c below which the result mostly reflects the prior (see docs/explanation/which-epsilon.md)."""
_VISIBLE = 2.0
"""A number of trajectories below this many noise scales is not informative."""
_ADVICE = (
    " More data{fewer} or a larger ε would help (docs/explanation/which-epsilon.md). If you expected more, run "
    "wayveil.check(data, scope) to see whether the columns, the time zone or the box are wrong. Set the number of "
    "synthetic trajectories with n=; by default it is the noisy count."
)


def low_count_text(release: Release, advice: bool = False) -> str | None:
    """A sentence if N·ε/c, the noisy number of trajectories relative to the noise, is small, else None.

    With `advice`, it also says what the owner can do.

    Privacy: free (post-processing).
    """
    if not any(answer.name == "count" for answer in release.answers):
        return None
    found = estimate_number(release)
    number, scale = found.value, found.noise
    most = release.max_per_user if release.unit == "user" else 1
    if number / _whole_noise(release) >= _ENOUGH:
        return None
    at_most, fewer = "", ""
    if release.unit == "user":
        at_most, fewer = f" and at most {most} per user", ", fewer trajectories per user"
    what_to_do = _ADVICE.format(fewer=fewer) if advice else ""
    if number < _VISIBLE * scale:
        return (
            f"The number of trajectories, estimated from all answers, is near zero: with ε = "
            f"{decimal(release.epsilon)}{at_most}, its noise is about ± {scale:,.0f}, so the release contains hardly "
            f"any information about the data.{what_to_do}"
        )
    return (
        f"About {number:,.0f} trajectories are few for ε = {decimal(release.epsilon)}{at_most}: much of the result "
        f"reflects what cities usually look like, not the data.{what_to_do}"
    )


def _whole_noise(release: Release) -> float:
    """Noise of the count if it got the whole budget: c/ε, or with Gaussian noise that of its clipping bound."""
    count = release["count"]
    if count.clipping is None:
        return (release.max_per_user if release.unit == "user" else 1) / float(release.epsilon)
    return count.noise * math.sqrt(count.epsilon / release.epsilon)


def warn_few(release: Release) -> None:
    """`low_count_text` as a warning that points at the line that called `measure` or `Synthesizer.fit`.

    Privacy: free (post-processing).
    """
    few, level = low_count_text(release, advice=True), measuring_level()
    if few is None or level is None:
        return
    # If warnings are turned into errors, a release that has been paid for must not be lost.
    with contextlib.suppress(FewTrajectoriesWarning):
        warnings.warn(few, FewTrajectoriesWarning, stacklevel=level)


_LARGE = 5.0
"""Above this ε, a statement warns: e^5 is a factor of 148."""


def number_of_rules(notes: Mapping[str, str]) -> int | None:
    """The number of rules in the notes of a synthetic file; None if it is not there."""
    text = notes.get("rules", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def rules_statement(given: int | None, made_with: int | None) -> str | None:
    """A sentence about rules that are not shown on the page; None if all are shown.

    `given` is the number of rules on the page (None: none were given), `made_with` that with which the data was made
    (None: unknown).
    """
    if made_with is None:
        return None if given else "No rules were given for this page."
    if made_with == 0 or made_with == given:
        return None if given else "Made without rules."
    with_rules = f"Made with {made_with:,} rule{'' if made_with == 1 else 's'}"
    if not given:
        return f"{with_rules}, which {'was' if made_with == 1 else 'were'} not given for this page."
    return f"{with_rules}; {given:,} {'is' if given == 1 else 'are'} shown on this page."


def not_promised(release: Release, hours_closed: bool | None = False) -> list[str]:
    """What the promise does not cover; `hours_closed` says whether the data obeys rules with hours (None: unknown)."""
    lines = [
        "Facts about the city as a whole (which streets are busy, when people travel) are meant to stay visible.",
        "The data is synthetic: use it for questions about many trajectories, not about a single one; rare places "
        "and rare hours are the least accurate.",
        "Where the data was too noisy, the fine structure of the map comes from a prior (what streets usually look "
        "like): traffic on a particular street may not be real.",
        _place_and_hour(release, hours_closed),
        "Lengths, durations, mean speeds and top speeds were measured; where in a trip someone is slow, fast or "
        "stands still is a guess. Regular sampling intervals are mostly kept; some are changed so that no step is "
        "too fast.",
    ]
    if hours_closed:
        lines.append(
            "Trips avoid areas that are closed at certain hours by departing at other hours, if that is enough: "
            "where people travel at these hours depends mainly on the rules. If too many trips would cross an area, "
            "all trips avoid it at all hours."
        )
    if release.unit == "trajectory":
        lines.insert(
            0,
            "One trajectory is protected, not a person: someone with k trajectories in the data is protected with k "
            "times ε.",
        )
    else:
        lines.insert(0, "Groups of k people (a family, a fleet) are protected with k times ε.")
    lines += [text for text in (no_people_text(release), low_count_text(release)) if text]
    if large := large_epsilon_text(release):
        lines.insert(0, large)
    return lines


def _place_and_hour(release: Release, hours_closed: bool | None) -> str:
    aside = "" if hours_closed is False else "apart from the rules, "
    if EndPointHours.name in release:
        question = release[EndPointHours.name].question
        assert isinstance(question, EndPointHours)
        return (
            f"Time of day and place were measured together for {question.groups} regions and {question.parts} parts of "
            f"the {question.period}: {aside}it is roughly right at which time of day trips go inward or outward, and "
            "in which of these regions they start and end, but not on which street."
        )
    if hours_closed is None:
        return "Time of day and place were measured separately: do not compare the maps of different hours."
    return (
        f"Time of day and place were measured separately: {aside}where people travel is the same at every hour, so "
        "do not compare the maps of different hours."
    )


def map_hours_statement(release: Release, hours_closed: bool | None = False) -> str | None:
    """One line next to the hours of the map; None if place and hour were not measured together: the map has no hours.

    `hours_closed` is as for `not_promised`.
    """
    if EndPointHours.name not in release:
        return None
    if hours_closed:
        return "Differences between hours come mainly from the rules, which moved trips to other hours."
    return "Place and hour were measured together for large regions only: compare districts, not streets."


def large_epsilon_text(release: Release) -> str | None:
    """A sentence if ε is so large that the guarantee is weak, else None."""
    if float(release.epsilon) <= _LARGE:
        return None
    return f"ε = {decimal(release.epsilon)} is large: with a factor of e^ε, much can be learned about one record."


def no_people_text(release: Release) -> str | None:
    """A sentence if questions about people were left out because they would have been mostly noise, else None.

    Privacy: free (it follows from the noisy number of users).
    """
    if release.unit != "user" or release.max_per_user < LEAST_PER_PERSON:
        return None
    if any(answer.question.about_people for answer in release.answers):
        return None
    return (
        "Nothing was asked about how the trips of a person are related, because noise would hide it with so few "
        "people. Synthetic people follow public guesses instead."
    )


def _percent(share: float) -> str:
    if share > 0.9995:
        return "almost 100 %"
    return f"at most {100 * share:.1f} %" if share > 0.99 else f"at most {100 * share:.0f} %"
