"""Exact counts of impossible trips of a person: two at once, or a jump between two."""

import numpy as np

from wayveil.core.scope import Scope
from wayveil.questions.people.trips_of_people import PeopleTrips
from wayveil.synthesis.place.caps import fastest_mps


def impossible_trips(trips: PeopleTrips, scope: Scope) -> tuple[int, int]:
    """(overlaps, jumps): trips that start before the previous one ended, or too far from its end to be reached."""
    gap_s = trips.t0[trips.later] - trips.t1[trips.later - 1]
    overlaps = gap_s < 0
    jumps = ~overlaps & (trips.apart_m > np.maximum(gap_s, 0.0) * fastest_mps(scope))
    return int(overlaps.sum()), int(jumps.sum())
