"""Synthetic people: each synthetic trip is assigned to a person, and the trips of a person form a chain.

Privacy: free (post-processing).
"""

from wayveil.synthesis.people.estimate import PeopleModel, people_model
from wayveil.synthesis.people.number import trips_of_people
from wayveil.synthesis.people.people import with_people

__all__ = ["PeopleModel", "people_model", "trips_of_people", "with_people"]
