"""The questions of a release with their shares of ε, in the order in which answers may depend on each other.

The count comes first and sets the sizes of the others; then the end points, coarse blocks before their detail, and the
occupancy and the passage, with small cells where end points lie close together; then histograms and tables; then the
questions about regions, which are cut from the noisy end points. To add a question, write its file and add one line
here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from wayveil.core.scope import Scope
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
from wayveil.questions.passage import Passage
from wayveil.questions.people import PersonQuestion
from wayveil.questions.people.chains import Continuity, Repetition, Stays
from wayveil.questions.people.places import AnchorDistance, Anchors, Gyration, Places
from wayveil.questions.people.rhythm import ActiveDays, Dates, TripsPerDay, TripsPerPerson
from wayveil.questions.question import Question
from wayveil.questions.rest_share import RestShare
from wayveil.questions.start_minus_end import StartMinusEnd
from wayveil.questions.top_speed import TopSpeed


@dataclass(frozen=True)
class Entry:
    """One question with the weights of its share of ε: for a strong signal, and for a weak one.

    Weights are relative, so the share of a new question comes from all others in proportion.
    """

    question: type[Question]
    strong: int
    weak: int


CATALOGUE = (
    Entry(Count, 10, 10),
    Entry(EndPoints, 50, 60),
    Entry(EndPointsDetail, 186, 180),
    Entry(Occupancy, 90, 70),
    Entry(OccupancyDetail, 295, 210),
    Entry(Passage, 16, 10),
    Entry(StartMinusEnd, 24, 10),
    Entry(Length, 54, 130),
    Entry(Displacement, 26, 90),
    Entry(Duration, 26, 40),
    Entry(MeanSpeed, 17, 15),
    Entry(TopSpeed, 10, 5),
    Entry(RestShare, 5, 2),
    Entry(MeanInterval, 16, 30),
    Entry(MedianInterval, 5, 3),
    Entry(GapRatio, 10, 5),
    Entry(DurationSpikes, 8, 2),
    Entry(DisplacementLength, 20, 10),
    Entry(LengthDuration, 17, 8),
    Entry(DepartureHour, 18, 30),
    Entry(DepartureWeek, 12, 5),
    Entry(OriginDestinationCoarse, 30, 25),
    Entry(OriginDestination, 55, 50),
    Entry(EndPointHours, 0, 0),  # takes a ninth of the end points' ε, where that is enough
)
"""The weights add up to 1,000, so they read as thousandths of ε; the optimum is flat (docs/explanation/method.md).
Questions of one `budget_group` divide its ε again once the noisy count is known (`shares.divided`)."""

PEOPLE_QUESTIONS: tuple[tuple[type[PersonQuestion], int], ...] = (
    (TripsPerPerson, 14),
    (ActiveDays, 6),
    (TripsPerDay, 4),
    (Dates, 4),
    (Continuity, 6),
    (Stays, 10),
    (Anchors, 3),
    (AnchorDistance, 1),
    (Places, 4),
    (Gyration, 8),
    (Repetition, 1),
)
"""The questions about people, asked at user level, each with its relative share of their part of the budget
(`shares.PEOPLE_SHARE`). The shares were set by hand on simulated people, where the optimum is flat. They are smallest
for what the synthesis does not use."""

QUESTIONS: Mapping[str, type[Question]] = {
    **{entry.question.name: entry.question for entry in CATALOGUE},
    **{question.name: question for question, _ in PEOPLE_QUESTIONS},
}
"""All questions, those about people last."""


def shares_of(entries: Sequence[Entry]) -> dict[str, Fraction]:
    """Share of ε by question, for a strong signal; the shares add up to one."""
    whole = sum(entry.strong for entry in entries)
    return {entry.question.name: Fraction(entry.strong, whole) for entry in entries if entry.strong}


SHARES: Mapping[str, Fraction] = shares_of(CATALOGUE)
"""Share of ε by question, for a strong signal."""


def finest_questions(scope: Scope) -> list[Question]:
    """The questions whose exact sums are added up while the data is read, each once."""
    found = (question.finest(scope) for question in QUESTIONS.values())
    return list(dict.fromkeys(question for question in found if question is not None))
