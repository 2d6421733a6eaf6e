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
"""Random halves of the real people whose divergence is the floor; their mean is given."""
_FEWEST = 4
"""People on each side without whom there is nothing to compare."""


@dataclass(frozen=True)
class PeopleScore:
    """One measure: the divergence of synthetic from real people, and of two halves of the real people."""

    name: str
    title: str
    value: float
    floor: float


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
    """Synthetic trips that start where the person cannot be in time at the scope's top speed."""
    classifier: float | None
    """Area under the curve of a classifier of real and synthetic people: 0.5 = indistinguishable, 1 = always
    distinguished. None without scikit-learn."""


    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """One line per measure: divergence and floor."""
        wide = max(len(score.title) for score in self.scores)
        lines = [f"{'people':<{wide}}    value    floor"]
        lines += [f"{score.title:<{wide}}  {score.value:7.4f}  {score.floor:7.4f}" for score in self.scores]
        real, made = self.zipf
        lines += [f"{'Zipf exponent (real, synthetic)':<{wide}}  {real:7.2f}  {made:7.2f}"]
        lines += [f"{'overlapping trips, jumps':<{wide}}  {self.overlaps:7d}  {self.jumps:7d}"]
        if self.classifier is not None:
            lines += [f"{'classifier (0.5 is best)':<{wide}}  {self.classifier:7.2f}"]
        return "\n".join(lines)


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
    if min(side.people for side in sides) < _FEWEST:
        raise InputError(f"Comparing people needs at least {_FEWEST} on each side.")
    random = np.random.default_rng(seed)
    halves = [_half(sides[0].people, random) for _ in range(_SPLITS)]
    scores = []
    for name, measure in MEASURES.items():
        value = divergence(*(measure.counts(side) for side in sides))
        floor = [divergence(measure.counts(sides[0], half), measure.counts(sides[0], 1.0 - half)) for half in halves]
        scores.append(PeopleScore(name, measure.title, value, float(np.mean(floor))))
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
    """A row of features for each person: the measures, averaged where a person has several values."""
    columns = []
    for measure in MEASURES.values():
        person, values = measure.values(trips)
        number = np.maximum(np.bincount(person, minlength=trips.people), 1)
        columns.append(np.bincount(person, weights=np.log1p(np.abs(values)), minlength=trips.people) / number)
    repeated = np.bincount(trips.person, weights=trips.repeats > 0, minlength=trips.people)
    columns.append(repeated / np.maximum(trips.trips, 1))
    return np.column_stack(columns)


def classify(sides: Sequence[PeopleTrips], seed: int) -> float | None:
    """Cross-validated area under the curve of a classifier on the features of people."""
    try:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.model_selection import cross_val_score
    except ImportError:
        return None
    random = np.random.default_rng(seed)
    most = min(side.people for side in sides)
    rows = [features(side)[random.permutation(side.people)[:most]] for side in sides]
    model = RandomForestClassifier(200, min_samples_leaf=3, random_state=seed)
    folds = min(5, most)
    scores = cross_val_score(model, np.vstack(rows), np.repeat([0, 1], most), cv=folds, scoring="roc_auc")
    return float(scores.mean())


def _half(people: int, random: np.random.Generator) -> NDArray[np.float64]:
    half = np.zeros(people)
    half[random.permutation(people)[: people // 2]] = 1.0
    return half
