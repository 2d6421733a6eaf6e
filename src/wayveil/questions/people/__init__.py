"""Questions about people: each concerns all trajectories of a user together.

Each user adds a vector of L1 norm at most `resolution`, however many trajectories they have, so the sensitivity is one
user and not `max_per_user` (docs/explanation/method.md, Lemma 10).
"""

from wayveil.questions.people.question import PEOPLE_PREFIX, PersonQuestion

__all__ = ["PEOPLE_PREFIX", "PersonQuestion"]
