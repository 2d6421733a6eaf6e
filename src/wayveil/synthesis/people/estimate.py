"""What a release says about people: estimates from the noisy answers; public guesses where nothing was asked.

Each table is an average over models (`posterior`), the first of which is that trips belong to people at random. So
noise alone does not make people with unrelated trips return to places.

Privacy: free (post-processing).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.questions.answer import Answer
from wayveil.questions.people import PEOPLE_PREFIX, PersonQuestion
from wayveil.questions.people.question import TRIP_CLASSES
from wayveil.release import Release
from wayveil.synthesis.people.numbers import trip_numbers
from wayveil.synthesis.people.tables import NoisyTables, Tables, questions_asked

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PeopleModel:
    """What a release says about people.

    Privacy: free (post-processing).
    """

    trips: Floats
    """Shares of people with 1, 2, … trips."""
    answers: Mapping[str, Answer]
    """Answers to the questions about people, by name; empty if nothing was asked."""
    number: float
    """Estimated number of people."""

    @property
    def measured(self) -> bool:
        """False if nothing was asked about people, so that public guesses are used."""
        return bool(self.answers)

    @property
    def mean_trips(self) -> float:
        """Expected number of trips of a person."""
        return float(self.trips @ np.arange(1, len(self.trips) + 1))

    def people_of(self, trips: int) -> int:
        """How many people make so many trips."""
        return int(np.clip(round(trips / self.mean_trips), 1, trips))

    def questions(self, scope: Scope) -> dict[str, PersonQuestion]:
        """The questions about people, by name, in the form in which tables are estimated."""
        return questions_asked(self.answers, scope)

    def habits(self, expected: Sequence[Tables]) -> "Habits":
        """How people travel; `expected` are the tables of each rhythm, first those of trips assigned at random."""
        unrelated = expected[0]
        if self.measured:
            number = np.arange(1.0, len(self.trips) + 1)
            of_class = np.bincount(TRIP_CLASSES.index(number), weights=self.trips, minlength=len(TRIP_CLASSES))
            noisy = NoisyTables(self.answers, np.asarray(self.number * of_class, np.float64))
            asked = {**unrelated, **noisy.estimates(expected)}
            near, at_first = _share_of_second(asked["continuity"]), _share_of_ends_at_first(asked["anchors"])
        else:
            asked = {**unrelated, **{name: np.array(table) for name, table in GUESSED_TABLES.items()}}
            # Surveys count all trips, but at most `max_per_user` of each person are used, so active days are lost.
            asked["days"] = (_rows(asked["days"]) + _rows(unrelated["days"])) / 2
            near, at_first = np.array(GUESSED_CONTINUITY), np.array(GUESSED_ENDS_AT_FIRST)
        return Habits(
            days=_rows(asked["days"]),
            day_trips=_shares(asked["day_trips"]),
            continuous=_share_to_arrange(near, _share_of_second(unrelated["continuity"])),
            stays=Coupling(_rows(unrelated["stays"]), _rows(asked["stays"])),
            places=_rows(asked["places"]),
            ranges=_rows(asked["gyration"][None]),
            ends_at_first=float(_share_to_arrange(at_first, _share_of_ends_at_first(unrelated["anchors"]))),
            dates=_ratios(asked["dates"], unrelated["dates"]),
        )


@dataclass(frozen=True, eq=False)
class Coupling:
    """Changes values of unrelated trips so that they have the wanted distribution (a maximal coupling).

    A value is kept with probability min(1, wanted/unrelated) and otherwise drawn from the bins that have too few. So as
    few values as possible change, and none where the two distributions agree.
    """

    unrelated: Floats
    """Share of each bin among unrelated trips, in rows."""
    wanted: Floats
    """Share of each bin among the trips of people, in the same rows."""

    def bins(
        self,
        row: Integers,
        bin_of: Integers,
        random: np.random.Generator,
        room: Floats | None = None,
    ) -> Integers:
        """The new bin of each value, or its old one; `room` is the possible part of each bin, from 0 to 1."""
        shares = [table[row] if room is None else table[row] * room for table in (self.unrelated, self.wanted)]
        unrelated, wanted = (share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300) for share in shares)
        at = np.arange(len(row))
        kept = random.random(len(row)) * unrelated[at, bin_of] <= wanted[at, bin_of]
        weight = np.maximum(wanted - unrelated, 0.0)
        running = np.cumsum(weight, axis=1)
        drawn = (running <= random.random(len(row))[:, None] * running[:, -1:]).sum(axis=1)
        return np.where(kept | (running[:, -1] <= 0), bin_of, np.minimum(drawn, weight.shape[1] - 1))


def coupled(wanted: Floats, row: Integers, bin_of: Integers, random: np.random.Generator) -> Integers:
    """The new bin of each value: within a row, values have the wanted shares, and as few of them as possible change."""
    counts = np.zeros(wanted.shape)
    np.add.at(counts, (row, bin_of), 1.0)
    return Coupling(_rows(counts), wanted).bins(row, bin_of, random)


@dataclass(frozen=True, eq=False)
class Habits:
    """How people travel; every row of shares adds up to one."""

    days: Floats
    """(classes of trips, `DAYS_SHARE`) active days divided by trips."""
    day_trips: Floats
    """Shares of active days by number of trips (`DAY_TRIPS`)."""
    continuous: Floats
    """Probability with which a trip is made to start where the previous one ended, by gap (`GAPS_H`)."""
    stays: Coupling
    """(parts of the day, `GAPS_H`) times between two trips."""
    places: Floats
    """(classes of trips, `PLACES_SHARE`) places divided by starts and ends."""
    ranges: Floats
    """(1, `GYRATION_KM`) radii of gyration."""
    ends_at_first: float
    """Share of trips that are made to end at the person's first place, which stands for the most frequent one."""
    dates: Floats
    """Factor on the number of trips in each column of the question about dates."""


GUESSED_DAYS = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    (0.0, 0.0, 0.2, 0.0, 0.5, 0.15, 0.15),
    (0.0, 0.15, 0.2, 0.25, 0.25, 0.1, 0.05),
    (0.05, 0.15, 0.25, 0.3, 0.2, 0.05, 0.0),
    (0.05, 0.15, 0.3, 0.3, 0.15, 0.05, 0.0),
)
GUESSED_DAY_TRIPS = (0.15, 0.4, 0.2, 0.13, 0.08, 0.03, 0.01)
GUESSED_CONTINUITY = (0.8, 0.8, 0.75, 0.75, 0.7, 0.7, 0.65, 0.6, 0.55, 0.5, 0.4, 0.3)
GUESSED_STAYS = (
    (0.1, 0.15, 0.12, 0.12, 0.1, 0.1, 0.07, 0.06, 0.06, 0.07, 0.03, 0.02),
    (0.1, 0.15, 0.15, 0.12, 0.08, 0.12, 0.1, 0.07, 0.03, 0.03, 0.03, 0.02),
    (0.1, 0.2, 0.17, 0.1, 0.04, 0.02, 0.03, 0.07, 0.12, 0.05, 0.06, 0.04),
    (0.05, 0.1, 0.07, 0.04, 0.04, 0.07, 0.1, 0.2, 0.13, 0.1, 0.06, 0.04),
)
GUESSED_PLACES = (
    (0.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.9),
    (0.0, 0.0, 0.1, 0.2, 0.4, 0.15, 0.1, 0.05),
    (0.05, 0.15, 0.25, 0.25, 0.15, 0.1, 0.05, 0.0),
    (0.15, 0.25, 0.3, 0.2, 0.1, 0.0, 0.0, 0.0),
    (0.35, 0.3, 0.2, 0.1, 0.05, 0.0, 0.0, 0.0),
)
GUESSED_ENDS_AT_FIRST = 0.35
GUESSED_TABLES: Mapping[str, tuple[object, ...]] = {
    "days": GUESSED_DAYS, "day_trips": GUESSED_DAY_TRIPS, "stays": GUESSED_STAYS, "places": GUESSED_PLACES,
}  # fmt: skip
"""The `GUESSED_` values are used where nothing was asked: round numbers in the range of travel surveys."""


def people_model(release: Release) -> PeopleModel | None:
    """The model of a user-level release; None at trajectory level, where nothing is known about people."""
    if release.unit != "user":
        return None
    answers = {
        answer.name.removeprefix(PEOPLE_PREFIX): answer
        for answer in release.answers
        if answer.name.startswith(PEOPLE_PREFIX)
    }
    number, trips = trip_numbers(release, answers.get("trips"), _numbers_of_people(answers))
    return PeopleModel(trips, answers, number)


def without_people(release: Release) -> Release:
    """The release without its answers about people, for estimates about single trips."""
    return replace(
        release, answers=tuple(answer for answer in release.answers if not answer.name.startswith(PEOPLE_PREFIX))
    )


def _numbers_of_people(answers: Mapping[str, Answer]) -> list[tuple[float, float]]:
    """(number, standard deviation) of each answer in which everybody is in one bin, other than that about trips."""
    asked = [answer for name, answer in answers.items() if name != "trips" and answer.question.one_hot]
    return [(float(answer.counts.sum()), answer.noise * math.sqrt(2 * answer.counts.size)) for answer in asked]


def _rows(counts: Floats) -> Floats:
    """Shares within each row; an empty row gets those of all rows together."""
    whole = counts.sum(axis=1, keepdims=True)
    return np.asarray(np.where(whole > 0, counts / np.maximum(whole, 1e-300), _shares(counts.sum(axis=0))))


def _ratios(asked: Floats, unrelated: Floats) -> Floats:
    """The first by the second, as shares; one where both are zero."""
    wanted, expected = _shares(asked), _shares(unrelated)
    return np.asarray(np.divide(wanted, expected, out=np.ones_like(wanted), where=expected > 0))


def _share_of_second(counts: Floats) -> Floats:
    """Share of the second column in each row; an empty row gets that of all rows together."""
    whole, overall = counts.sum(axis=1), counts[:, 1].sum() / max(counts.sum(), 1e-300)
    return np.asarray(np.where(whole > 0, counts[:, 1] / np.maximum(whole, 1e-300), overall))


def _share_of_ends_at_first(anchors: Floats) -> Floats:
    """Share of trips of people with several trips that end at their most frequent place."""
    ends = anchors[1:, 1].sum(axis=0)
    return np.asarray(ends[0] / max(ends.sum(), 1e-300))


def _share_to_arrange(share: Floats, chance: Floats) -> Floats:
    """The share p to arrange so that, with what happens by chance, share = p + (1 − p)·chance."""
    return np.asarray(np.clip((share - chance) / np.maximum(1 - chance, 1e-3), 0.0, 1.0))


def _shares(weight: Floats) -> Floats:
    """Weights divided by their sum; equal shares if the sum is zero."""
    whole = float(weight.sum())
    return np.asarray(weight / whole if whole > 0 else np.full(weight.shape, 1 / weight.size))
