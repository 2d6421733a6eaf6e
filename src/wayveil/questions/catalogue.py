"""The questions of a release with their shares of ε, in the order in which answers may depend on each other.

The count comes first and sets the sizes of the others; then the end points, coarse blocks before their detail, and the
occupancy, with small cells where end points lie close together; then histograms and tables; then the questions about
regions, which are cut from the noisy end points. To add a question, write its file and add one line here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from wayveil.grid import Grid
from wayveil.privacy.budget import Budget
from wayveil.privacy.mechanism import Cost
from wayveil.privacy.unit import Unit
from wayveil.questions.count import Count
from wayveil.questions.departure_hour import DepartureHour
from wayveil.questions.departure_week import DepartureWeek
from wayveil.questions.displacement import Displacement
from wayveil.questions.displacement_length import DisplacementLength
from wayveil.questions.duration import Duration, DurationSpikes
from wayveil.questions.end_point_hours import EndPointHours
from wayveil.questions.end_points import EndPoints, EndPointsDetail
from wayveil.questions.gap_ratio import GapRatio
from wayveil.questions.length import Length
from wayveil.questions.length_duration import LengthDuration
from wayveil.questions.mean_interval import MeanInterval
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.questions.median_interval import MedianInterval
from wayveil.questions.occupancy import Occupancy, OccupancyDetail
from wayveil.questions.origin_destination import OriginDestination, OriginDestinationCoarse
from wayveil.questions.question import Question
from wayveil.questions.start_minus_end import StartMinusEnd
from wayveil.questions.top_speed import TopSpeed
from wayveil.scope import Scope


@dataclass(frozen=True)
class Entry:
    """One question and its share of ε in thousandths."""

    question: type[Question]
    per_mille: int


CATALOGUE = (
    Entry(Count, 10),
    Entry(EndPoints, 50),
    Entry(EndPointsDetail, 170),
    Entry(Occupancy, 90),
    Entry(OccupancyDetail, 300),
    Entry(StartMinusEnd, 25),
    Entry(Length, 62),
    Entry(Displacement, 30),
    Entry(Duration, 30),
    Entry(MeanSpeed, 20),
    Entry(TopSpeed, 10),
    Entry(MeanInterval, 20),
    Entry(MedianInterval, 5),
    Entry(GapRatio, 10),
    Entry(DurationSpikes, 10),
    Entry(DisplacementLength, 23),
    Entry(LengthDuration, 20),
    Entry(DepartureHour, 18),
    Entry(DepartureWeek, 12),
    Entry(OriginDestinationCoarse, 30),
    Entry(OriginDestination, 55),
    Entry(EndPointHours, 0),  # takes its ε from the end points, where there are many
)
"""The shares add up to one; the optimum is flat (docs/explanation/method.md). Questions of one ledger line divide its ε
again once the noisy count is known (`divided`)."""

QUESTIONS: Mapping[str, type[Question]] = {entry.question.name: entry.question for entry in CATALOGUE}

SHARES: Mapping[str, Fraction] = {
    entry.question.name: Fraction(entry.per_mille, 1000) for entry in CATALOGUE if entry.per_mille
}


def measurement_cost(epsilon: Fraction, delta: Fraction, unit: Unit) -> Cost:
    """ε (and δ) divided among the questions of the catalogue.

    Privacy: free; it says what may be spent and spends nothing itself.
    """
    return Cost.of(epsilon, delta, unit, SHARES, max(question.resolution for question in QUESTIONS.values()))


def finest_questions(scope: Scope) -> list[Question]:
    """The questions whose exact sums are added up while the data is read, each once."""
    found = (question.finest(scope) for question in QUESTIONS.values())
    return list(dict.fromkeys(question for question in found if question is not None))


def divided(budget: Budget, line_signals: Mapping[str, float], grid: Grid) -> Budget:
    """The same budget with the ε of each ledger line divided by what the noisy count says that it is worth.

    `line_signals` are the noise units of each line, m̃·ε_line / c.

    Privacy: free (post-processing of the noisy count); the sum of every line stays the same.
    """
    lines = ledger_lines(budget.shares)
    shares = {
        name: lines[question.line] * question.part_of_line(line_signals[question.line], grid)
        for name, question in QUESTIONS.items()
    }
    return Budget(budget.epsilon, {name: share for name, share in shares.items() if share})


def ledger_lines(shares: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Shares by line of the ledger: it is charged before the noisy count decides how a line is divided."""
    lines: dict[str, Fraction] = {}
    for name, share in shares.items():
        line = QUESTIONS[name].line
        lines[line] = lines.get(line, Fraction(0)) + share
    return lines
