"""What the self-check audits, and its verdicts: a small simulated city with canaries, and one case per method."""

from dataclasses import dataclass, replace

import numpy as np

from wayveil.audit.bounds import Bound
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, select
from wayveil.simulate import Behaviour, simulate_city, simulate_trajectories


@dataclass(frozen=True)
class Case:
    """One method, the ε that it claims, the bound that its runs prove, and the verdict."""

    method: str
    epsilon: float
    allowed: float
    """ε; 2ε where the neighbouring datasets differ by a replacement, which is one removal and one addition."""
    bound: float
    verdict: str
    """'convicted' if bound > allowed, else 'acquitted'."""
    expected: str
    runs: int
    """On each of the two datasets."""
    seen: str
    """The event that distinguishes the two datasets, or what else was found."""

    @property
    def right(self) -> bool:
        """Whether the audit's verdict is correct."""
        return self.verdict == self.expected


def case(
    method: str, epsilon: float, bound: Bound, expected: str, allowed: float | None = None, more: str = ""
) -> Case:
    """The verdict on one method."""
    limit = epsilon if allowed is None else allowed
    verdict = "convicted" if bound.epsilon > limit else "acquitted"
    seen = f"{bound.event} ({bound.likely.value:.1%} against {bound.unlikely.value:.1%}){more}"
    return Case(method, epsilon, limit, bound.epsilon, verdict, expected, bound.runs, seen)


@dataclass(frozen=True, eq=False)
class World:
    """A small simulated city, a box three times as wide and high around it, and canaries."""

    scope: Scope
    wide: Scope
    data: Trajectories
    holdout: Trajectories
    standing: Trajectories
    """Stands still in the north-east corner: all its weight in one cell of every question."""
    crossing: Trajectories
    """Goes from corner to corner: start and end differ."""
    far: Trajectories
    """Stands far outside the city, inside the wide frame."""
    residents: Trajectories
    """Whole days of people, one of whom has made a fifth of all trips."""
    other_residents: Trajectories
    """The same without that person."""


def make_world() -> World:
    """A city of 3 × 3 km: 300 trajectories, 100 held-out ones, three canaries, and residents with whole days."""
    city = simulate_city(seed=0, size_km=(3, 3))
    scope = city.scope
    data = simulate_trajectories(city, n=300, seed=1)
    data = Trajectories(data.offsets, data.lon, data.lat, data.t_utc)
    others = simulate_trajectories(city, n=100, seed=2)
    height_deg, width_deg = scope.north - scope.south, scope.east - scope.west
    wide = scope.model_copy(update={"south": scope.south - height_deg, "north": scope.north + height_deg,
                                    "west": scope.west - width_deg, "east": scope.east + width_deg})  # fmt: skip
    residents = simulate_trajectories(city, 200, seed=1, behaviour=Behaviour(diaries=True))
    person = np.where(np.arange(200) < 40, -1, np.asarray(residents.user, np.int64))
    residents = replace(residents, user=person)
    window = scope.time_window()
    begin = 0.0 if window is None else window[0] + 8 * 3600
    still, across = np.full(8, 0.97), np.linspace(0.03, 0.97, 8)
    return World(
        scope,
        wide,
        data,
        Trajectories(others.offsets, others.lon, others.lat, others.t_utc),
        _canary(scope, still, begin),
        _canary(scope, across, begin),
        _canary(wide, still, begin),
        residents,
        select(residents, np.flatnonzero(person >= 0)),
    )


def _canary(scope: Scope, share: np.ndarray, begin_utc: float) -> Trajectories:
    # Eight points: a weight of 1/8 is exact in fixed point, so the canary uses the whole of its sensitivity.
    lon, lat = scope.to_degrees(share * scope.width_m, share * scope.height_m)
    return Trajectories(np.array([0, 8]), lon, lat, np.asarray(begin_utc + 60.0 * np.arange(8), np.float64))
