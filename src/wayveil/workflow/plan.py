"""Expected errors of a measurement, before anything is read or spent.

The noise of every question follows from the promise alone, and so does the error of the number of trips
(`expected_number`). The errors that noise causes in other results were measured on simulated cities. A table stores
them by the size of the city and the signal, N·ε with Laplace noise for single trajectories
(research/benchmarks/plan_errors.py). Any other promise is looked up at the signal at which such a release would have
the same noise. Looking the errors up takes no time; simulating a city would take minutes.

Privacy: free (public values only).
"""

import json
import math
import os
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from wayveil.core.scope import Scope
from wayveil.core.whole_number import as_whole_number
from wayveil.errors import InputError
from wayveil.io.scope_files import scope_of
from wayveil.privacy.budget import Number, decimal_text, exact_delta, exact_epsilon
from wayveil.privacy.mechanism import Cost
from wayveil.privacy.unit import Unit, parse_unit
from wayveil.questions.catalogue import QUESTIONS, SHARES
from wayveil.questions.norms import guessed_norm, norms_part
from wayveil.questions.shares import measurement_cost
from wayveil.release.kinds import KINDS
from wayveil.workflow.expected_number import People, expected_number_error

TABLE = Path(__file__).with_name("expected_errors.json")
"""Written by research/benchmarks/plan_errors.py."""
OTHER_DELTA = "1e-6"
"""The δ that is proposed if none was given."""
MOST_TRIPS = 10**12
"""Larger numbers are probably typing errors."""


@dataclass(frozen=True)
class ExpectedError:
    """The expected error of one kind of result, as a share: 0 is exact."""

    kind: str
    error: float

    @property
    def word(self) -> str:
        """'good', 'rough' or 'noise'."""
        return KINDS[self.kind].word(self.error)

    @property
    def percent(self) -> str:
        """The error in percent, such as '20 %'."""
        if self.error > 1:
            return "over 100 %"
        return f"{100 * self.error:.0f} %" if self.error >= 0.01 else "1 %"


@dataclass(frozen=True)
class Setting:
    """One promise, and what can be expected from it."""

    epsilon: str
    delta: float
    unit: str
    max_per_user: int | None
    trips_used: int
    """At user level, trips of a user beyond the limit are not used."""
    results: tuple[ExpectedError, ...]

    def __getitem__(self, kind: str) -> ExpectedError:
        return next(result for result in self.results if result.kind == kind)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "epsilon": self.epsilon, "delta": self.delta, "unit": self.unit, "max_per_user": self.max_per_user,
            "trips_used": self.trips_used,
            "results": {result.kind: {"error": round(result.error, 3), "word": result.word} for result in self.results},
        }  # fmt: skip


@dataclass(frozen=True)
class Plan(Setting):
    """What can be expected, and what other settings would give; the result of `wayveil.plan`.

    Examples
    --------
    >>> import wayveil
    >>> expected = wayveil.plan(trips=20_000, epsilon=1, scope="san-francisco")
    >>> expected.results[0].kind
    'number'
    >>> expected
    Plan(epsilon=1, unit='trajectory'; print it for details)

    Privacy
    -------
    Free (public values only).
    """

    others: tuple[Setting, ...] = ()

    def __repr__(self) -> str:
        delta = f", delta={self.delta:g}" if self.delta else ""
        most = f", max_per_user={self.max_per_user}" if self.max_per_user is not None else ""
        return f"Plan(epsilon={self.epsilon}{delta}, unit='{self.unit}'{most}; print it for details)"

    def __str__(self) -> str:
        """Return one sentence about all kinds of results."""
        parts = (f"{KINDS[one.kind].title}: {one.word} (about {one.percent} off)" for one in self.results)
        return f"Expected: {'; '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**super().to_dict(), "others": [other.to_dict() for other in self.others]}


def plan(
    *,
    trips: int,
    scope: Scope | str | os.PathLike[str],
    epsilon: Number,
    unit: Unit | str = "trajectory",
    max_per_user: int | None = None,
    users: int | None = None,
    delta: Number = 0,
) -> Plan:
    """Estimate the errors of a measurement and of data made from it, before anything is read or spent.

    Parameters
    ----------
    trips
        About how many trajectories there are: a public or rough number, not one that was counted for this.
    scope
        The public limits of the data; the size of the box matters.
    epsilon, unit, max_per_user, delta
        The promise, as for `wayveil.measure`.
    users
        About how many users there are; needed at user level. The number of trips per user is assumed to have the given
        mean and a geometric distribution.

    Returns
    -------
    Plan
        The errors by kind of result, in words and numbers, and what up to three other settings would give.

    Examples
    --------
    >>> import wayveil
    >>> expected = wayveil.plan(trips=20_000, scope="san-francisco", epsilon=1)
    >>> expected["hours"].word, expected["number"].word
    ('good', 'good')
    >>> wayveil.plan(trips=500, scope="san-francisco", epsilon="0.1")["zones"].word
    'noise'

    Privacy
    -------
    Free (nothing is read or spent).
    """
    area = scope_of(scope)
    promised = parse_unit(unit, max_per_user)
    count = as_whole_number(trips, "trips=", 1, MOST_TRIPS)
    people = None if users is None else as_whole_number(users, "users=", 1, MOST_TRIPS)
    if promised.kind == "user" and people is None:
        raise InputError("users= is needed at user level: about how many users there are.")
    if people is not None and people > count:
        raise InputError("users= is larger than trips=; every user has at least one trip.")
    given = _Promise(exact_epsilon(epsilon), exact_delta(delta), promised)
    found = _setting(given, count, people, area)
    others = tuple(_setting(other, count, people, area) for other in _others(given, count, people))
    return Plan(**{**vars(found), "others": others})


@dataclass(frozen=True)
class _Promise:
    epsilon: Any
    delta: Any
    unit: Unit


def _others(given: _Promise, trips: int, users: int | None) -> list[_Promise]:
    """The alternatives: three times ε; a δ, if there is none; at user level, another limit on trips per user."""
    delta = exact_delta(OTHER_DELTA)
    others = [_Promise(given.epsilon * 3, given.delta, given.unit)] if given.epsilon <= 300 else []
    if not given.delta:
        others.append(_Promise(given.epsilon, delta, given.unit))
    if given.unit.kind == "user" and users is not None:
        most = given.unit.sensitivity
        # With a δ the noise grows more slowly than the number of trips used; without one, a low limit is usually best.
        suggested = max(round((2 if given.delta else 0.5) * trips / users), 1)
        other = suggested if suggested != most else max(most // 2, 1) if most > 1 else 2
        others.append(_Promise(given.epsilon, given.delta, Unit.user(other)))
    return others


def _setting(promise: _Promise, trips: int, users: int | None, scope: Scope) -> Setting:
    cost = measurement_cost(promise.epsilon, promise.delta, promise.unit)
    unit = promise.unit
    people = None if unit.kind == "trajectory" or users is None else People(users, trips, unit.sensitivity)
    used = float(trips) if people is None else people.used(unit.sensitivity)
    used_per_user = 1.0 if people is None else used / people.users
    side_km = math.sqrt(scope.width_m * scope.height_m) / 1000
    results = [ExpectedError("number", expected_number_error(cost, unit, scope, used, people))]
    for name, kind in KINDS.items():
        if not kind.questions:
            continue
        noises = [_noise(cost, question, unit, used_per_user) * float(SHARES[question]) for question in kind.questions]
        signal = used / math.exp(sum(map(math.log, noises)) / len(noises))
        results.append(ExpectedError(name, _error(name, side_km, used, signal)))
    most = unit.max_per_user if unit.kind == "user" else None
    return Setting(decimal_text(promise.epsilon), float(promise.delta), unit.kind, most, round(used), tuple(results))


def _noise(cost: Cost, name: str, unit: Unit, used_per_user: float) -> float:
    """Scale of the noise of a question, in trajectories, with the shares before the noisy count adjusts them."""
    if cost.rho is None:
        return cost.noise(name, unit)
    question = QUESTIONS[name]
    return cost.gaussian_noise(name, guessed_norm(question, used_per_user), 1 - norms_part(question, unit))


@cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found


def _error(kind: str, side_km: float, trips: float, signal: float) -> float:
    """The error from the table, interpolated on logarithmic axes; outside the table, the value at its edge."""
    table = _table()
    errors = np.asarray(table["errors"][kind], float)
    for axis, value in (("side_km", side_km), ("trips", trips), ("signal", signal)):
        at = np.log(np.asarray(table[axis], float))
        errors = np.apply_along_axis(partial(np.interp, math.log(value), at), 0, errors)
    return float(errors)
