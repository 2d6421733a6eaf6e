"""How many trips to draw for a requested number of people.

Privacy: free (post-processing).
"""

from wayveil.core.whole_number import as_whole_number
from wayveil.errors import InputError
from wayveil.release import Release
from wayveil.synthesis.arguments import wanted_count
from wayveil.synthesis.people.estimate import people_model

MOST_PEOPLE = 10_000_000
"""Larger numbers of people are probably mistakes."""


def trips_of_people(release: Release, n: int | None, people: int | None) -> int:
    """The number of trips: `n`, or as many as `people` people make on average, or the noisy count.

    Raises an InputError if both are given.
    """
    if people is None:
        return wanted_count(release, n)
    if n is not None:
        raise InputError("n= counts trips and people= counts people; give one of them.")
    number = as_whole_number(people, "people=", 1, MOST_PEOPLE)
    model = people_model(release)
    if model is None:
        raise InputError("people= needs a release that protects people; measure with unit='user'.")
    return wanted_count(release, max(round(number * model.mean_trips), number))
