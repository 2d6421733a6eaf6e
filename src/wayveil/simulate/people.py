"""Trips of the residents: homes, workplaces, habits, rush hours and weekends."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.week import DAY_S, WEEK_S
from wayveil.simulate.city import City

# All of the following numbers are invented.
USERS_PER_BATCH = 2048
"""Residents drawn at a time."""
MOST_TRIPS_PER_USER = 140
"""Maximum number of trips of a resident."""
_ANCHORS = 130
"""About the number of places that residents visit; a city with many hot spots has more."""
_TAIL = 1.25
"""Exponent of the power law of the number of trips per resident."""
_REACH_M = 4500.0
"""Distance over which the attraction of a place falls by a factor of e."""
_LOOKAHEAD_S = 5400.0
"""Time after departure for which a route avoids areas that will close."""

# Slots of a day: middle and spread of the departure (hours), weight on weekdays and on weekends.
_SLOTS = np.array(
    [
        (7.8, 0.55, 5.0, 0.5),  # out in the morning
        (10.3, 0.50, 1.5, 2.0),
        (12.8, 0.45, 1.8, 2.4),
        (15.2, 0.50, 1.8, 2.6),
        (17.8, 0.60, 5.0, 2.2),  # back in the evening
        (21.2, 0.80, 1.6, 3.0),  # out at night
    ]
)
_HALF_WINDOW_H = np.array([1.1, 0.9, 0.9, 0.9, 1.1, 1.4])
"""Departures are at most this far from the middle of their slot."""


@dataclass(frozen=True, eq=False)
class Trips:
    """One row per trip, sorted by user and departure: between `node` and an anchor, given by its index."""

    user: NDArray[np.int64]
    anchor: NDArray[np.int64]
    node: NDArray[np.int64]
    to_anchor: NDArray[np.bool_]
    """Whether it goes from `node` to the anchor; otherwise it goes back."""
    depart_utc: NDArray[np.float64]
    driver_type: NDArray[np.int64]
    closed: NDArray[np.int64]
    """Bit k is set if closure k applies at some time in the 90 minutes after departure."""
    day: NDArray[np.int64] | None = None
    """Day of each trip where days are whole (`diaries`)."""


@dataclass(frozen=True, eq=False)
class Anchors:
    """Junctions where people work, shop or meet."""

    node: NDArray[np.int64]
    work: NDArray[np.float64]
    leisure: NDArray[np.float64]


def place_anchors(city: City, rng: np.random.Generator) -> Anchors:
    """Junctions around the hot spots, and some in residential areas, with heavy-tailed weights."""
    xy = city.streets.node_xy
    per_spot = max(2, min(_ANCHORS * 3 // 4 // len(city.hot_spots), 12))
    nodes, work, leisure = [], [], []
    for spot in city.hot_spots:
        target = np.array([spot.x_m, spot.y_m]) + rng.normal(0, spot.spread_m, (per_spot, 2))
        share = spot.weight * rng.dirichlet(np.full(per_spot, 0.8))
        for place, weight in zip(target, share):
            nodes.append(int(np.argmin(((xy - place) ** 2).sum(axis=1))))
            work.append(weight * (1 - spot.leisure))
            leisure.append(weight * spot.leisure)
    corners = rng.choice(len(xy), max(8, _ANCHORS // 4), p=city.home_weight)  # shops and friends
    nodes += corners.tolist()
    work += [0.06] * len(corners)
    leisure += (0.2 * rng.gamma(0.7, size=len(corners))).tolist()
    node, where = np.unique(nodes, return_inverse=True)
    sums = [np.bincount(where, weights=np.array(values) + 1e-6) for values in (work, leisure)]
    return Anchors(node, sums[0] / sums[0].sum(), sums[1] / sums[1].sum())


def draw_trips(city: City, anchors: Anchors, batch: int, seed: int) -> Trips:
    """All trips of one batch of users; independent of other batches, so that batches can be streamed."""
    rng = np.random.default_rng([seed, 2, batch])
    n, xy = USERS_PER_BATCH, city.streets.node_xy
    days, first_s = days_of(city)
    slots = len(_SLOTS) * days
    count = np.minimum(np.floor(rng.random(n) ** (-1 / _TAIL)).astype(int), min(MOST_TRIPS_PER_USER, slots))
    home, at_work, leisure_of = choose_places(city, anchors, n, rng)
    roams = rng.random(n) < 0.08 + 0.3 * (count > 40)  # couriers and taxis travel anywhere at any hour
    shift_h = np.where(roams, rng.uniform(0, 24, n), np.clip(rng.normal(0, 0.45, n), -1.2, 1.2))
    by_day_h = np.clip(rng.normal(0, 1.0, (n, days)), -2, 2)  # departures on weekends are less regular

    user, slot = _pick_slots(count, roams, days, first_s, rng)
    kind, day = slot % len(_SLOTS), slot // len(_SLOTS)
    spread, half = _SLOTS[kind, 1], _HALF_WINDOW_H[kind]
    late_h = np.clip(rng.normal(0, spread), -half, half)
    weekend = weekday_of(city, first_s, day) >= 5
    shift = shift_h[user] + by_day_h[user, day] * np.where(weekend, 1.0, 0.15)
    hour = (_SLOTS[kind, 0] + late_h + shift) % 24
    depart = first_s + day * DAY_S + np.floor(hour * 3600)

    commutes = ~roams[user] & ~weekend & np.isin(kind, (0, 4)) & (rng.random(len(user)) < 0.85)
    leisure_place = leisure_of[user, rng.integers(0, 3, len(user))]
    anchor = np.where(commutes, at_work[user], leisure_place)
    free = rng.random(len(user)) < 0.5 + 0.2 * (hour < 14) - 0.2 * (hour > 19)
    to_anchor = np.where(commutes, kind == 0, free)
    node = home[user]
    # Around noon people leave from work; couriers and taxis travel between any two places.
    from_work = ~roams[user] & ~weekend & np.isin(kind, (1, 2, 3)) & (rng.random(len(user)) < 0.5)
    node = np.where(from_work, anchors.node[at_work[user]], node)
    anywhere = rng.choice(len(xy), len(user), p=city.home_weight)
    node = np.where(roams[user], anywhere, node)
    some = rng.choice(len(anchors.node), len(user), p=(anchors.work + anchors.leisure) / 2)
    anchor = np.where(roams[user], some, anchor)
    driver_type = user % 2
    order = np.lexsort((depart, user))
    closed = closed_bits(city, depart)
    columns = (user + batch * n, anchor, node, to_anchor, depart, driver_type, closed)
    return Trips(*(np.asarray(column)[order] for column in columns))


def choose_places(
    city: City, anchors: Anchors, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(home node, anchor of work, three anchors of leisure) of n people; near anchors are chosen more often."""
    xy = city.streets.node_xy
    home = rng.choice(len(xy), n, p=city.home_weight)
    near = -np.hypot(*(xy[home][:, None] - xy[anchors.node][None]).transpose(2, 0, 1)) / _REACH_M
    at_work = _choose(np.log(anchors.work) + 0.6 * near, rng)
    leisure_of = np.column_stack([_choose(np.log(anchors.leisure) + near, rng) for _ in range(3)])
    return home, at_work, leisure_of


def closed_bits(city: City, depart_utc: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which closures apply at some time in the 90 minutes after each departure, as bits."""
    bits = np.zeros(len(depart_utc), np.int64)
    base = city.scope.local_seconds(depart_utc)
    for ahead in np.arange(-300.0, _LOOKAHEAD_S + 900, 900.0):
        week_s = (base + ahead) % WEEK_S
        for k, closure in enumerate(city.closures):
            bits |= closure.holds(week_s).astype(np.int64) << k
    return bits


def days_of(city: City) -> tuple[int, float]:
    """Number of days and the first second of the first one."""
    window = city.scope.time_window()
    if window is None:  # a made-up week that begins on a Monday
        return 7, 345_600.0
    return max(1, round((window[1] - window[0]) / DAY_S)), window[0]


def weekday_of(city: City, first_s: float, day: NDArray[np.int64]) -> NDArray[np.int64]:
    """Weekday of each day; Monday is 0."""
    noon = first_s + day * DAY_S + 43_200
    return (city.scope.local_seconds(noon) // DAY_S).astype(int)


def _choose(log_weight: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One column of each row, with probability proportional to its weight (the Gumbel-max trick)."""
    column: NDArray[np.int64] = (log_weight + rng.gumbel(size=log_weight.shape)).argmax(axis=1)
    return column


def _pick_slots(
    count: NDArray[np.int64], roams: NDArray[np.bool_], days: int, first_s: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`count` different slots for each user, popular ones more often, so that a user's trips seldom overlap."""
    day = np.repeat(np.arange(days), len(_SLOTS))
    weekend = ((day + int(first_s // DAY_S) + 3) % 7) >= 5
    weight = np.where(weekend, np.tile(_SLOTS[:, 3], days), np.tile(_SLOTS[:, 2], days))
    score = np.where(roams[:, None], 0.0, np.log(weight)[None]) + rng.gumbel(size=(len(count), len(day)))
    rank = np.argsort(-score, axis=1)
    chosen = np.arange(len(day))[None] < count[:, None]
    user = ragged.owners(count)
    return user, rank[chosen]
