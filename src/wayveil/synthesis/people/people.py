"""Assignment of the trips of a shard to people.

The steps: plans (`plan`), assignment of trips to them (`assign`), routes from place to place (`ways`), and an exact
check: a trip that breaks a rule or a cap of the scope, or whose start the person could not reach in time, stays as it
was and gets a person of its own.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.progress import Progress, quiet
from wayveil.questions.people.rhythm import days_per_column
from wayveil.rules import with_scope_bounds
from wayveil.rules.counting import violating_trajectories
from wayveil.rules.rule import Rule
from wayveil.synthesis.people.assign import assign
from wayveil.synthesis.people.ends import exchanged
from wayveil.synthesis.people.estimate import PeopleModel
from wayveil.synthesis.people.numbers import draw_numbers
from wayveil.synthesis.people.plan import Calendar, draw_plans
from wayveil.synthesis.people.rhythms import expected_tables
from wayveil.synthesis.people.state import AssignedTrips, Task, TripTable
from wayveil.synthesis.people.ways import moved_routes, possible_sequence
from wayveil.synthesis.place.caps import beyond_caps, fastest_mps
from wayveil.synthesis.place.track_columns import Tracks, motion_of_tracks, take_tracks, written_degrees


def with_people(
    made: Trajectories,
    model: PeopleModel,
    scope: Scope,
    rules: Sequence[Rule],
    random: np.random.Generator,
    people: int | None = None,
    progress: Progress = quiet,
) -> Trajectories:
    """The trips as chains of people, sorted by person and time, with the number of the person as user.

    If `people` is given, trips that would need more people are left out.
    """
    x_m, y_m = scope.to_metres(made.lon, made.lat)
    tracks = Tracks(made.offsets, x_m, y_m, made.t_utc)
    assigned = _assigned(tracks, model, scope, random, people, progress)
    changed = _as_written(moved_routes(tracks, assigned, scope.width_m, scope.height_m), scope)
    person, trip = assigned.person, assigned.trip
    broken = violating_trajectories(with_scope_bounds(rules, scope), motion_of_tracks(changed, scope))
    allowed = ~(np.asarray(broken, bool) | beyond_caps(changed, scope))
    kept = _feasible(changed, person, allowed, fastest_mps(scope))
    # Trips outside the chains stay as they were, each with a person of its own.
    alone = np.setdiff1d(np.arange(len(tracks)), trip[kept])
    joined = _joined(take_tracks(changed, kept), take_tracks(tracks, alone))
    label = np.r_[person[kept], int(person.max(initial=-1)) + 1 + np.arange(len(alone))]
    label = np.unique(label, return_inverse=True)[1].astype(np.int64)
    order = np.lexsort((joined.t_utc[joined.offsets[:-1]], label))
    if people is not None:
        order = order[label[order] < people]
    joined = take_tracks(joined, order)
    lon, lat = written_degrees(joined.x_m, joined.y_m, scope)
    return Trajectories(joined.offsets, lon, lat, joined.t_utc, label[order])


def _assigned(
    tracks: Tracks,
    model: PeopleModel,
    scope: Scope,
    random: np.random.Generator,
    wanted: int | None,
    progress: Progress,
) -> AssignedTrips:
    """Draw plans of people, assign the trips to them, and find the positions of starts and ends that move."""
    calendar = Calendar.of(scope)
    first, last = tracks.offsets[:-1], tracks.offsets[1:] - 1
    depart = tracks.t_utc[first]
    day = calendar.day_of(depart)
    table = TripTable(
        np.column_stack([tracks.x_m[first], tracks.y_m[first]]), np.column_stack([tracks.x_m[last], tracks.y_m[last]]),
        depart - calendar.midnight[day], tracks.t_utc[last] - depart, calendar.weekend[day].astype(np.float64),
    )  # fmt: skip
    habits = model.habits(expected_tables(table, day, model, scope, random))
    number = model.people_of(len(table)) if wanted is None else wanted
    trips = draw_numbers(model.trips, len(table), min(number, len(table)), random)
    weight = _date_weights(day, calendar, habits.dates[np.arange(len(calendar.midnight)) // days_per_column(scope)])
    plans = draw_plans(trips, habits, weight, random)
    found = assign(Task(table, plans, habits, calendar, fastest_mps(scope)), random, progress)
    return replace(
        found,
        start=_exchanged(found.start, found.start_moves, table.start[found.trip]),
        end=_exchanged(found.end, found.end_moves, table.end[found.trip]),
    )


def _date_weights(day: NDArray[np.int64], calendar: Calendar, factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers of trips by day, times the factors; the numbers on working days and on weekends stay."""
    before = np.bincount(day, minlength=len(calendar.midnight)).astype(np.float64)
    after = before * factor
    for kind in (calendar.weekend, ~calendar.weekend):
        after[kind] *= before[kind].sum() / max(float(after[kind].sum()), 1e-300)
    return after


def _exchanged(
    place: NDArray[np.float64], moves: NDArray[np.bool_], before: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The positions, where those of moved starts or ends are exchanged for positions near their places."""
    result = place.copy()
    result[moves] = exchanged(place[moves], before[moves])
    return result


def _feasible(tracks: Tracks, person: NDArray[np.int64], obeys: NDArray[np.bool_], max_mps: float) -> NDArray[np.int64]:
    """Indices of the tracks that remain when, repeatedly, those that cannot follow the previous one are removed."""
    kept = np.flatnonzero(obeys)
    while len(kept):
        possible = possible_sequence(take_tracks(tracks, kept), person[kept], max_mps)
        if possible.all():
            break
        kept = kept[possible]
    return kept


def _as_written(tracks: Tracks, scope: Scope) -> Tracks:
    """The tracks with positions rounded as in a file, so that checks hold for what is written."""
    x, y = scope.to_metres(*written_degrees(tracks.x_m, tracks.y_m, scope))
    return Tracks(tracks.offsets, x, y, tracks.t_utc)


def _joined(one: Tracks, other: Tracks) -> Tracks:
    offsets = np.r_[one.offsets, one.offsets[-1] + other.offsets[1:]]
    columns = (np.r_[getattr(one, name), getattr(other, name)] for name in ("x_m", "y_m", "t_utc"))
    return Tracks(offsets, *columns)
