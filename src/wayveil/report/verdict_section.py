"""The first section of the data sheet: what the data is good for.

Privacy: free (post-processing of the release).
"""

from dataclasses import dataclass

from wayveil.synthesis.uncertainty.uncertainty import Uncertainty
from wayveil.synthesis.uncertainty.verdict import Verdict, sentence, verdicts

_ADVICE = {
    "good": "use it",
    "rough": "use it for orders of magnitude",
    "noise": "do not use it",
}


@dataclass(frozen=True)
class VerdictLine:
    """One kind of result as text."""

    title: str
    word: str
    error: str
    percent: int
    """The error in percent, at most 100: the width of the bar."""
    meaning: str
    advice: str


@dataclass(frozen=True)
class VerdictSection:
    """The conclusion, a line for each kind of result, and whether the map shows nothing but noise."""

    sentence: str
    lines: tuple[VerdictLine, ...]
    poor_map: bool
    """Whether streets (or, where no routes were recorded, trips between zones) are noise. The page then begins
    without sample trips and with fewer highlights."""
    limit: str = ""
    """What was not measured at all: routes of trips with two points, and trips of a person beyond the limit."""


def verdict_section(found: Uncertainty) -> VerdictSection:
    """The section for one release.

    Privacy: free (post-processing).
    """
    all_verdicts = verdicts(found)
    words = {verdict.kind: verdict.word for verdict in all_verdicts}
    poor = words.get("streets", words.get("zones", "noise")) == "noise"
    limits = (_NO_ROUTES if "streets" not in words else "", _limit(found))
    return VerdictSection(sentence(all_verdicts), tuple(map(_line, all_verdicts)), poor, " ".join(filter(None, limits)))


_NO_ROUTES = (
    "The trips were recorded at their ends only: nothing is known about streets and routes, and lengths and speeds are "
    "those of straight lines."
)


def _limit(found: Uncertainty) -> str:
    release = found.release
    if release.unit != "user":
        return ""
    most = release.max_per_user
    return f"At most {most} trips of each person count; further trips are missing from all counts."


def _line(verdict: Verdict) -> VerdictLine:
    percent = round(100 * verdict.error)
    error = "less than 1 %" if verdict.error < 0.01 else f"about {min(percent, 100)} %"
    if percent > 100:
        error = "more than 100 %"
    title = verdict.about.title[0].upper() + verdict.about.title[1:]
    return VerdictLine(title, verdict.word, error, min(percent, 100), verdict.about.meaning, _ADVICE[verdict.word])
