"""Whole days of residents: from home to work or elsewhere and back, each trip from where the last one ended.

Homes lie around the centre and workplaces in it, so trips go inward in the morning and outward in the evening.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.week import DAY_S
from wayveil.simulate.city import City
from wayveil.simulate.people import (
    USERS_PER_BATCH,
    Anchors,
    Trips,
    choose_places,
    closed_bits,
    days_of,
    weekday_of,
)

_DAYS = (
    # share of working days, of weekend days, stops between home and home, hours of the departures
    (0.46, 0.04, "work", (7.8, 17.4)),
    (0.17, 0.01, "work leisure", (7.9, 17.3, 19.8)),
    (0.09, 0.00, "work leisure work", (7.9, 12.1, 13.3, 17.6)),
    (0.08, 0.35, "leisure", (10.6, 13.2)),
    (0.06, 0.22, "leisure", (19.2, 22.4)),
    (0.03, 0.18, "leisure leisure", (11.2, 14.1, 17.4)),
)
"""Kinds of days; on the remaining days a person stays at home. Round numbers in the range of travel surveys."""
_RECORDED_TAIL = 0.9
"""Exponent of the power law of the number of recorded days: half of the people have one or two, a few have all."""
_PERSON_SD_H, _DEPARTURE_SD_H, _MOST_H = 0.4, 0.2, 0.45
"""Spread of a person's usual hours, of a single departure around them, and the largest deviation of either."""


def draw_diaries(city: City, anchors: Anchors, batch: int, seed: int) -> Trips:
    """All trips of one batch of people; `Trips.day` says which of them belong to one day."""
    rng = np.random.default_rng([seed, 5, batch])
    home, at_work, leisure = choose_places(city, anchors, USERS_PER_BATCH, rng)
    days, first_s = days_of(city)
    person, day = _recorded_days(days, rng)
    kind = _kinds(weekday_of(city, first_s, day) >= 5, rng)
    shift_h = np.clip(rng.normal(0, _PERSON_SD_H, USERS_PER_BATCH), -_MOST_H, _MOST_H)
    pieces = []
    for number, (_, _, stops, hours) in enumerate(_DAYS):
        rows = np.flatnonzero(kind == number)
        who = person[rows]
        places = [at_work[who] if stop == "work" else _any_of(leisure[who], rng) for stop in stops.split()]
        for k, hour in enumerate(hours):
            late_h = np.clip(rng.normal(0, _DEPARTURE_SD_H, len(rows)), -_MOST_H, _MOST_H)
            depart = first_s + day[rows] * DAY_S + np.floor((hour + shift_h[who] + late_h) * 3600)
            back = k == len(places)
            anchor = places[-1] if back else places[k]
            before = home[who] if back or k == 0 else anchors.node[places[k - 1]]
            pieces.append((who, anchor, before, np.full(len(rows), not back), depart, day[rows]))
    user, anchor, node, to_anchor, depart, of_day = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.lexsort((depart, user))
    driver_type, closed = user % 2, closed_bits(city, np.asarray(depart, np.float64))
    columns = (user + batch * USERS_PER_BATCH, anchor, node, to_anchor, depart, driver_type, closed, of_day)
    return Trips(*(np.asarray(column)[order] for column in columns))


def whole_days(trips: Trips, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """`kept`, without any trip of a day that has lost one: then every trip still starts where the last one ended."""
    if trips.day is None:
        return kept
    key = trips.user * (int(trips.day.max(initial=0)) + 1) + trips.day
    return kept & ~np.isin(key, key[~kept])


def _recorded_days(days: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(person, day) of every recorded day."""
    count = np.minimum(np.floor(rng.random(USERS_PER_BATCH) ** (-1 / _RECORDED_TAIL)), days).astype(np.int64)
    rank = np.argsort(rng.random((USERS_PER_BATCH, days)), axis=1)
    return ragged.owners(count), rank[np.arange(days)[None] < count[:, None]]


def _kinds(weekend: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Row of `_DAYS` for each day; their number for a day at home."""
    drawn = rng.random(len(weekend))
    shares = np.cumsum([row[:2] for row in _DAYS], axis=0)
    of_kind = [np.searchsorted(shares[:, column], drawn, side="right") for column in (0, 1)]
    return np.where(weekend, of_kind[1], of_kind[0]).astype(np.int64)


def _any_of(choices: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    result: NDArray[np.int64] = choices[np.arange(len(choices)), rng.integers(0, choices.shape[1], len(choices))]
    return result
