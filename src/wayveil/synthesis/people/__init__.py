"""Synthetic people: trips become the trips of people, one after the other.

Privacy: free (post-processing).
"""

from wayveil.synthesis.people.estimate import PeopleModel, people_model
from wayveil.synthesis.people.number import trips_of_people
from wayveil.synthesis.people.people import with_people

__all__ = ["PeopleModel", "people_model", "trips_of_people", "with_people"]
