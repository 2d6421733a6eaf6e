"""Questions about people: each concerns all trajectories of a user together.

Each user adds a vector of L1 norm at most `resolution`, however many trajectories they have, so the sensitivity is one
user and not `max_per_user` (docs/explanation/method.md, Lemma 10).
"""

from wayveil.questions.people.chains import Continuity, Repetition, Stays
from wayveil.questions.people.places import AnchorDistance, Anchors, Gyration, Places
from wayveil.questions.people.question import PEOPLE_PREFIX, PersonQuestion
from wayveil.questions.people.rhythm import ActiveDays, TripsPerDay, TripsPerPerson

PEOPLE_QUESTIONS: tuple[tuple[type[PersonQuestion], int], ...] = (
    (TripsPerPerson, 4),
    (ActiveDays, 3),
    (TripsPerDay, 3),
    (Continuity, 4),
    (Stays, 3),
    (Anchors, 3),
    (AnchorDistance, 1),
    (Places, 4),
    (Gyration, 3),
    (Repetition, 2),
)
"""Each question with its relative share of the budget for people; set by hand, more for what shapes every person."""

__all__ = ["PEOPLE_PREFIX", "PEOPLE_QUESTIONS", "PersonQuestion"]
