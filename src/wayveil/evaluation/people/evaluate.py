"""evaluate_people: divergences of person-level measures, with floors and a two-sample classifier.

Privacy: not private (trusted side only).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.evaluation.people.measures import MEASURES, people_trips, zipf_exponent
from wayveil.questions.people.trips_of_people import PeopleTrips
from wayveil.synthesis.people.sequence import impossible_trips

_SPLITS = 5
"""Number of random splits of the real people into halves; the floor is the mean divergence of the halves."""
_GOOD = 1 / 3
"""Largest ratio to the divergence of shuffled trips that is called good."""
_MIN_PEOPLE = 4
"""Minimum number of people on each side."""
_TREES, _MIN_LEAF, _FOLDS = 200, 3, 5
"""Size of the random forest that tells real from synthetic people, and folds of its cross-validation."""


@dataclass(frozen=True)
class PeopleScore:
    """One measure: the divergence of synthetic from real people, and two divergences to compare it with."""

    name: str
    title: str
    value: float
    floor: float
    shuffled: float
    """Divergence of the same synthetic trips when they are assigned to as many people at random."""

    @property
    def word(self) -> str:
        """`good`: at most a third of `shuffled` or twice the floor; else `poor` if above `shuffled`; else `rough`."""
        if self.value <= max(self.shuffled * _GOOD, 2 * self.floor):
            return "good"
        return "rough" if self.value <= self.shuffled else "poor"


@dataclass(frozen=True)
class PeopleReport:
    """What `evaluate_people` found.

    Privacy: not private (trusted side only).
    """

    people: int
    synthetic_people: int
    scores: tuple[PeopleScore, ...]
    zipf: tuple[float, float]
    """Zipf exponent of real and of synthetic people."""
    overlaps: int
    """Synthetic trips that start before the same person's previous one has ended."""
    jumps: int
    """Synthetic trips that start where the person could not arrive in time at the scope's top speed."""
    classifier: float | None
    """Area under the ROC curve of a classifier of real and synthetic people: 0.5 if they are indistinguishable, 1 if
    it is always right. None without scikit-learn."""

    @property
    def verdict(self) -> str:
        """A few sentences: how many measures are good, which are poor, and how many trips are impossible."""
        words = [score.word for score in self.scores]
        poor = [score.title for score in self.scores if score.word == "poor"]
        impossible = self.overlaps + self.jumps
        word = "poor" if poor or impossible else "rough" if "rough" in words else "good"
        return (
            f"People: {word}. {words.count('good')} of {len(words)} measures are good: at most a third of the score of "
            f"the same trips shuffled among people, or near the floor. Worse than shuffled trips: "
            f"{', '.join(poor) or 'none'}." + (f" {impossible:,} trips are impossible." if impossible else "")
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "verdict": self.verdict}

    def __str__(self) -> str:
        """The verdict, and one line per measure: the divergence, its floor, and that of shuffled trips."""
        rows: list[tuple[str, ...]] = [("people", "value", "floor", "shuffled")]
        rows += [(one.title, *(f"{x:.4f}" for x in (one.value, one.floor, one.shuffled))) for one in self.scores]
        rows += [("", "", "", ""), ("", "real", "synthetic", "")]
        rows += [("number of people", f"{self.people:d}", f"{self.synthetic_people:d}", "")]
        rows += [("Zipf exponent", *(f"{x:.2f}" for x in self.zipf), "")]
        rows += [("overlapping trips", "", f"{self.overlaps:d}", ""), ("jumps", "", f"{self.jumps:d}", "")]
        if self.classifier is not None:
            rows += [("classifier (0.5 is best)", "", f"{self.classifier:.2f}", "")]
        width = max(len(row[0]) for row in rows)
        lines = [f"{title:<{width}}" + "".join(f"{cell:>11}" for cell in cells) for title, *cells in rows]
        return "\n".join([self.verdict, "", *(line.rstrip() for line in lines)])


def evaluate_people(real: Trajectories, synthetic: Trajectories, scope: Scope, seed: int = 0) -> PeopleReport:
    """Compare the people of two sets of trajectories; both need users.

    Privacy
    -------
    Not private (trusted side only).
    """
    for name, side in (("real", real), ("synthetic", synthetic)):
        if side.user is None:
            raise InputError(f"The {name} trajectories have no users, so there are no people to compare.")
    sides = [people_trips(side, scope) for side in (real, synthetic)]
    if min(side.people for side in sides) < _MIN_PEOPLE:
        raise InputError(f"Comparing people needs at least {_MIN_PEOPLE} people on each side.")
    random = np.random.default_rng(seed)
    halves = [_half(sides[0].people, random) for _ in range(_SPLITS)]
    shuffled = _shuffled(sides[1], scope, random)
    scores = []
    for name, measure in MEASURES.items():
        value = divergence(*(measure.counts(side) for side in sides))
        floor = [divergence(measure.counts(sides[0], half), measure.counts(sides[0], 1.0 - half)) for half in halves]
        chance = divergence(measure.counts(sides[0]), measure.counts(shuffled))
        scores.append(PeopleScore(name, measure.title, value, float(np.mean(floor)), chance))
    overlaps, jumps = impossible_trips(sides[1], scope)
    return PeopleReport(
        sides[0].people, sides[1].people, tuple(scores), (zipf_exponent(sides[0]), zipf_exponent(sides[1])),
        overlaps, jumps, classify(sides, seed),
    )  # fmt: skip


def divergence(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Jensen–Shannon divergence in bits: 0 for equal shares, 1 for disjoint ones."""
    p, q = (counts / max(float(counts.sum()), 1e-300) for counts in (one, other))
    middle = (p + q) / 2
    total = 0.0
    for side in (p, q):
        some = side > 0
        total += 0.5 * float((side[some] * np.log2(side[some] / middle[some])).sum())
    return max(total, 0.0)


def features(trips: PeopleTrips) -> NDArray[np.float64]:
    """A row of features for each person: the mean log1p of each measure, and the share of repeated legs."""
    columns = []
    for measure in MEASURES.values():
        person, values = measure.values(trips)
        number = np.maximum(np.bincount(person, minlength=trips.people), 1)
        columns.append(np.bincount(person, weights=np.log1p(np.abs(values)), minlength=trips.people) / number)
    repeated = np.bincount(trips.person, weights=trips.repeats > 0, minlength=trips.people)
    columns.append(repeated / np.maximum(trips.trips, 1))
    return np.column_stack(columns)


def classify(sides: Sequence[PeopleTrips], seed: int) -> float | None:
    """Cross-validated area under the ROC curve of a classifier on the features of people."""
    try:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.model_selection import cross_val_score
    except ImportError:
        return None
    random = np.random.default_rng(seed)
    size = min(side.people for side in sides)
    rows = [features(side)[random.permutation(side.people)[:size]] for side in sides]
    model = RandomForestClassifier(_TREES, min_samples_leaf=_MIN_LEAF, random_state=seed)
    folds = min(_FOLDS, size)
    scores = cross_val_score(model, np.vstack(rows), np.repeat([0, 1], size), cv=folds, scoring="roc_auc")
    return float(scores.mean())


def _shuffled(trips: PeopleTrips, scope: Scope, random: np.random.Generator) -> PeopleTrips:
    """The same trips, each assigned to a person drawn at random."""
    person = random.integers(0, trips.people, len(trips))
    return PeopleTrips.sorted(trips.people, person, trips.x0, trips.y0, trips.x1, trips.y1, trips.t0, trips.t1, scope)


def _half(people: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Weights of people: 1 for a random half, 0 for the others."""
    half = np.zeros(people)
    half[random.permutation(people)[: people // 2]] = 1.0
    return half
