"""Trajectories of the simulated city, in memory or streamed, which obey the city's rules."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.trajectories import EMPTY, Trajectories, concatenate, select
from wayveil.core.whole_number import as_whole_number
from wayveil.errors import InputError
from wayveil.io.options import SIMULATED, WriteOptions, writing_format
from wayveil.io.writers.dispatch import write_trajectories
from wayveil.io.writers.parquet import write_parts
from wayveil.progress import Progress, quiet
from wayveil.rules import motion_of, read_rules, violating_trajectories
from wayveil.simulate.city import City, simulate_city
from wayveil.simulate.diaries import draw_diaries, whole_days
from wayveil.simulate.drive import LONGEST_S, Drives, Fixes, drive, sample
from wayveil.simulate.kinematics import move
from wayveil.simulate.people import Anchors, Trips, draw_trips, place_anchors
from wayveil.simulate.recorders import record
from wayveil.simulate.routes import Router, make_router, walk

_MOST = 100_000_000
"""Maximum number of trajectories of a dataset."""
_SHORTEST_S = 120.0
"""Duration of the shortest trip that is recorded."""


@dataclass(frozen=True)
class Behaviour:
    """Which parts of the simulation are detailed.

    All are off by default, so that the embedded city stays as it is; `DETAILED` has them all on.

    Examples
    --------
    >>> from wayveil.simulate import DETAILED, simulate_city, simulate_trajectories
    >>> city = simulate_city(seed=0, size_km=(3, 3))
    >>> len(simulate_trajectories(city, n=20, behaviour=DETAILED))
    20
    """

    diaries: bool = False
    """People have a home, a workplace and whole days: each trip starts where the last one ended, most trips go inward
    in the morning and outward in the evening."""
    kinematics: bool = False
    """Trips stop at red lights, slow down in turns, accelerate and brake."""
    recorders: bool = False
    """People have devices of several kinds, which record by time or distance, with gaps and errors of single fixes."""


USUAL = Behaviour()
DETAILED = Behaviour(diaries=True, kinematics=True, recorders=True)


def simulate_trajectories(
    city: City, n: int = 10_000, seed: int = 0, *, behaviour: Behaviour = USUAL, progress: Progress = quiet
) -> Trajectories:
    """n trajectories with users, sorted by user and time; the same arguments give the same trajectories.

    Privacy: free (simulated data).
    """
    if as_whole_number(n, "n=", 0, _MOST) == 0:
        return EMPTY
    return concatenate(list(simulate_batches(city, n, seed, behaviour=behaviour, progress=progress)))


def simulate_to_parquet(
    path: str | Path,
    n: int = 1_000_000,
    seed: int = 0,
    *,
    city: City | None = None,
    behaviour: Behaviour = USUAL,
    progress: Progress = quiet,
) -> City:
    """Stream n trajectories to a Parquet file: sorted, in constant memory; times are Unix seconds.

    Returns the city.

    Privacy: free (simulated data).
    """
    city = simulate_city(seed) if city is None else city
    count = as_whole_number(n, "n=", 0, _MOST)
    batches = simulate_batches(city, count, seed, behaviour=behaviour, progress=progress) if count else [EMPTY]
    write_parts(batches, Path(path), WriteOptions(private=False, notes={"origin": SIMULATED}), whole=True)
    return city


def simulate_to_file(
    path: Path, n: int, seed: int = 0, *, city: City, behaviour: Behaviour = USUAL, progress: Progress = quiet
) -> None:
    """Write n trajectories to a file: streamed to Parquet, or through memory to the format of another extension.

    Privacy: free (simulated data).
    """
    if writing_format(path) == "parquet":
        simulate_to_parquet(path, n, seed, city=city, behaviour=behaviour, progress=progress)
    else:
        people = simulate_trajectories(city, n, seed, behaviour=behaviour, progress=progress)
        write_trajectories(people, path, WriteOptions(private=False, notes={"origin": SIMULATED}))


def simulate_batches(
    city: City, n: int, seed: int = 0, *, behaviour: Behaviour = USUAL, progress: Progress = quiet
) -> Iterator[Trajectories]:
    """The trajectories of `simulate_trajectories`, one batch of users at a time.

    A batch depends on the city, its number and the seed only.
    """
    progress("routes", 0.0)
    traffic = prepare_traffic(city)
    drawn = batch = empty_batches = 0
    while drawn < n:
        piece = _batch(traffic, batch, seed, behaviour)
        batch += 1
        empty_batches = 0 if len(piece) else empty_batches + 1
        if empty_batches > 20:
            raise InputError("This city is too small for a trip; give it a larger size.")
        if not len(piece):
            continue
        if drawn + len(piece) > n:
            piece = select(piece, np.arange(n - drawn))
        drawn += len(piece)
        progress("trajectories", drawn / n)
        yield piece


@dataclass(frozen=True, eq=False)
class Traffic:
    """The objects that all batches share: router, anchors, and the rules that a trajectory must obey."""

    city: City
    router: Router
    anchors: Anchors
    rules: tuple[Any, ...]


def prepare_traffic(city: City) -> Traffic:
    """Anchors, router and rules of a city.

    They do not depend on the seed, so datasets with different seeds are samples of one population.
    """
    rng = np.random.default_rng([city.seed, 3])
    anchors = place_anchors(city, rng)
    rules = read_rules(city.rules_geojson, city.scope, city.roadmap)
    return Traffic(city, make_router(city, anchors.node, rng), anchors, rules)


def _batch(traffic: Traffic, batch: int, seed: int, behaviour: Behaviour) -> Trajectories:
    city = traffic.city
    trips = (draw_diaries if behaviour.diaries else draw_trips)(city, traffic.anchors, batch, seed)
    rng = np.random.default_rng([seed, 4, batch])
    routes = walk(traffic.router, trips.anchor, trips.node, trips.to_anchor, trips.closed, trips.driver_type)
    hour = city.scope.local_seconds(trips.depart_utc) / 3600 % 24
    drives = (move if behaviour.kinematics else drive)(traffic.router, *routes, hour, rng)
    duration = drives.duration_s
    window = city.scope.time_window()
    fits = (duration > _SHORTEST_S) & (duration <= LONGEST_S)
    fits &= _no_overlap(trips, duration)
    if window is not None:
        fits &= trips.depart_utc + duration < window[1] - 1
    which = np.flatnonzero(whole_days(trips, fits))
    if len(which) == 0:
        return EMPTY
    result = _points(city, trips, which, _record(drives, trips, which, behaviour, rng))
    # A few trajectories violate a rule because a long step cuts a corner; they are sampled more densely.
    broken = _broken(traffic, result)
    if not broken.any():
        return result
    again = _points(city, trips, which[broken], sample(drives, which[broken], rng, dense=True))
    still = _broken(traffic, again)
    index = np.r_[which[~broken], which[broken][~still]]
    order = index.argsort(kind="stable")
    kept = ~np.isin(np.arange(len(fits)), which[broken][still])
    order = order[whole_days(trips, kept)[index[order]]]
    return select(concatenate([select(result, ~broken), select(again, ~still)]), order)


def _no_overlap(trips: Trips, duration_s: NDArray[np.float64]) -> NDArray[np.bool_]:
    """False for a trip that starts before the same user's previous trip has ended."""
    after = trips.depart_utc[1:] > trips.depart_utc[:-1] + duration_s[:-1]
    apart: NDArray[np.bool_] = np.r_[True, after | (trips.user[1:] != trips.user[:-1])]
    return apart


def _record(
    drives: Drives, trips: Trips, which: NDArray[np.int64], behaviour: Behaviour, rng: np.random.Generator
) -> Fixes:
    if behaviour.recorders:
        return record(drives, which, trips.user[which], rng)
    return sample(drives, which, rng)


def _points(city: City, trips: Trips, which: NDArray[np.int64], fixes: Fixes) -> Trajectories:
    offsets, x, y, at_s = fixes
    scope = city.scope
    margin_m = 0.5  # so that points rounded to 7 decimals stay in the box
    x, y = np.clip(x, margin_m, scope.width_m - margin_m), np.clip(y, margin_m, scope.height_m - margin_m)
    lon, lat = scope.to_degrees(x, y)
    t_utc = at_s + np.repeat(trips.depart_utc[which], np.diff(offsets))
    return Trajectories(offsets, np.round(lon, 7), np.round(lat, 7), np.floor(t_utc), trips.user[which])


def _broken(traffic: Traffic, trajectories: Trajectories) -> NDArray[np.bool_]:
    return violating_trajectories(traffic.rules, motion_of(trajectories, traffic.city.scope))
