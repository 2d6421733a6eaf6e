"""What a page says about a promise, in plain words."""

import contextlib
import math
import warnings
from collections.abc import Mapping
from fractions import Fraction

from wayveil.callers import measuring_level
from wayveil.errors import FewTrajectoriesWarning
from wayveil.questions.answer import Answer
from wayveil.questions.end_point_hours import EndPointHours
from wayveil.release.release import Release


def noise_words(answer: Answer) -> str:
    """The noise of an answer in trajectories: one number, or from where to where."""
    least, most = (number(answer.noise * factor) for factor in answer.question.noise_range)
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
        return f"one person with all their trajectories (at most {release.max_per_user} of each person were used)"
    return "one trajectory"


def promise(release: Release) -> list[str]:
    """The promise of a release in sentences that need no mathematics."""
    epsilon = float(release.epsilon)
    thing = "a person's trajectories were" if release.unit == "user" else "a trajectory was"
    factor = math.exp(min(epsilon, 700.0))
    sure = 1 / (1 + math.exp(-epsilon))
    factor_text = f"{factor:.2f}" if factor < 100 else f"{factor:.3g}"
    lines = [
        f"Whether {thing} in the original data or not, the probability of every possible result, this one "
        f"included, changes at most by the factor e^ε = {factor_text}.",
        f"So if somebody was 50 % sure that {thing} in the data, this release can make them {_percent(sure)} sure, "
        "whatever else they know and however much they compute.",
        "Nothing here was copied: the synthetic trajectories were drawn from noisy counts, without another look at "
        "the data. Whatever is computed from them costs no more privacy.",
    ]
    if release.delta > 0:
        lines.insert(2, f"With a probability of at most δ = {release.delta:.1e} the factor may be larger.")
    return lines


_ENOUGH = 1_000
"""N·ε/c below which the pictures of docs/explanation/which-epsilon.md are mostly prior."""
_HEARD = 1.0
"""Noise units below which the number of trajectories itself says nothing."""
_CHECK = (
    " If you expected more, `wayveil check FILE --scope SCOPE` tells you whether the columns, the time zone or the box "
    "are wrong."
)


def few_words(release: Release, cure: bool = False) -> str | None:
    """A sentence where N·ε/c, the noisy number of trajectories over the scale of the noise, is small; else None.

    With `cure` also what its owner can do about it.

    Privacy: free (post-processing).
    """
    if not any(answer.name == "count" for answer in release.answers):
        return None
    number = max(float(release["count"].counts[0]), 0.0)
    most = release.max_per_user if release.unit == "user" else 1
    if number * float(release.epsilon) / (most or 1) >= _ENOUGH:
        return None
    at_most, fewer = "", ""
    if release.unit == "user":
        at_most, fewer = f" and at most {most} a user", ", fewer a user"
    scale = release["count"].noise
    if number < _HEARD * scale:
        return (
            f"The noisy number of trajectories is near zero: with ε = {decimal(release.epsilon)}{at_most} its noise "
            f"alone is about ± {scale:,.0f}, and the release says hardly anything about the data."
        ) + (f" More data{fewer} or a larger ε would help.{_CHECK} -n or n= sets how many are made." if cure else "")
    return (
        f"About {number:,.0f} trajectories are few for ε = {decimal(release.epsilon)}{at_most}: much of the result is "
        "what cities usually look like, not what the data says."
    ) + (f" More data{fewer} or a larger ε would help (docs/explanation/which-epsilon.md).{_CHECK}" if cure else "")


def warn_few(release: Release) -> None:
    """`few_words` as a warning that points at the line that called `measure` or `Synthesizer.fit`.

    Privacy: free (post-processing).
    """
    few, level = few_words(release, cure=True), measuring_level()
    if few is None or level is None:
        return
    more = "Unless n= is given, as many synthetic trajectories are made as the noisy count says."
    # Where warnings are errors, a release that has been paid for must not be lost to one.
    with contextlib.suppress(FewTrajectoriesWarning):
        warnings.warn(f"{few} {more}", FewTrajectoriesWarning, stacklevel=level)


_LARGE = 5.0


def made_rules(notes: Mapping[str, str]) -> int | None:
    """How many rules a synthetic file says that it was made with; None where it does not say."""
    said = notes.get("rules", "")
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 10 else None


def rules_words(given: int | None, made: int | None) -> str | None:
    """A sentence about the rules that the page was not given; None where it was given them all.

    `given` is how many the page was given (None = nobody gave any), `made` how many the data was made with.
    """
    if made is None:
        return None if given else "No rules were given to this page."
    if made == 0 or made == given:
        return None if given else "Made without rules."
    with_rules = f"Made with {made:,} rule{'' if made == 1 else 's'}"
    if not given:
        return f"{with_rules}, which {'was' if made == 1 else 'were'} not given to this page."
    return f"{with_rules}; {given:,} {'is' if given == 1 else 'are'} given to this page."


def not_promised(release: Release, hours_closed: bool | None = False) -> list[str]:
    """What the promise does not cover; `hours_closed` where the data obeys rules about hours, None = unknown."""
    lines = [
        "Facts about the city as a whole (which streets are busy, when people travel) are meant to stay visible.",
        "The data is synthetic: it answers questions about many trajectories, not about a single one; rare places "
        "and rare hours are the least exact.",
        "The fine structure of the map is a prior, what streets usually look like, where the data was too noisy to "
        "tell: no street is promised to be real traffic.",
        _place_and_hour(release, hours_closed),
        "Where in a trip somebody is slow, fast or stands still is a guess; lengths, durations, mean and top speeds "
        "were asked about. "
        "A device's steady rhythm is mostly kept; else some intervals give way so that no step is too fast.",
    ]
    if hours_closed:
        lines.append(
            "Areas that are closed at certain hours were obeyed by departing at other hours where that was enough: "
            "where people travel at these hours follows from the rules first. An area that too many trips pass for "
            "that is avoided at all hours."
        )
    if release.unit == "trajectory":
        lines.insert(
            0,
            "One trajectory is protected, not a person: somebody with k trajectories in the data is protected with "
            "k times the ε.",
        )
    else:
        lines.insert(0, "Groups (a family, a fleet) of k people are protected with k times the ε.")
    few = few_words(release)
    if few is not None:
        lines.append(few)
    if large := large_words(release):
        lines.insert(0, large)
    return lines


def _place_and_hour(release: Release, hours_closed: bool | None) -> str:
    aside = "" if hours_closed is False else "rules aside, "
    if EndPointHours.name in release:
        regions = release[EndPointHours.name].shape[1]
        return (
            f"Time of day and place were asked about together for {regions} regions and parts of three hours: {aside}"
            "where trips start and end in the morning and in the evening is roughly right, for a single street it is "
            "not."
        )
    if hours_closed is None:
        return "Time of day and place were asked about apart: do not compare the map of one hour with that of another."
    return (
        f"Time of day and place were asked about apart: {aside}where people go is the same at every hour, so do not "
        "compare the map of one hour with that of another."
    )


def hours_of_the_map(release: Release, hours_closed: bool | None = False) -> str:
    """One line beside the map's hours; `hours_closed` as for `not_promised`."""
    if hours_closed:
        return "How the hours differ follows from the rules first: trips left closed areas for other hours."
    if EndPointHours.name in release:
        return "Place and hour were asked about together for large regions only: compare districts, not streets."
    if hours_closed is None:
        return "Place and hour were asked about apart: do not compare the hours."
    return "Place and hour were asked about apart: the hours differ in number, not in place."


def large_words(release: Release) -> str | None:
    """A sentence where ε promises little, else None."""
    if float(release.epsilon) <= _LARGE:
        return None
    return f"ε = {decimal(release.epsilon)} is large: the factor e^ε of the promise allows much to be learned."


def _percent(share: float) -> str:
    if share > 0.9995:
        return "almost 100 %"
    return f"at most {100 * share:.1f} %" if share > 0.99 else f"at most {100 * share:.0f} %"
