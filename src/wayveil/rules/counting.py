"""Count the points and trajectories that violate each rule."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wayveil.rules.motion import Motion
from wayveil.rules.rule import Rule


def violating_trajectories(rules: Iterable[Rule], motion: Motion) -> np.ndarray:
    """Return whether each trajectory breaks at least one rule: (trajectories,) bool."""
    broken = np.zeros(motion.trajectories, dtype=bool)
    owner = motion.owner
    for rule in rules:
        broken[owner[rule.violations(motion)]] = True
    return broken


def count(rules: Iterable[Rule], motion: Motion) -> dict[str, dict[str, int]]:
    """Count the points and the trajectories that break each rule, by the rule's name.

    Parameters
    ----------
    motion
        Trajectories in metres, the result of `motion_of(trajectories, scope)`.

    Examples
    --------
    >>> import wayveil
    >>> city = wayveil.simulate.simulate_city(size_km=(3, 3))
    >>> rides = wayveil.simulate.simulate_trajectories(city, 20)
    >>> limit = wayveil.rules.speed_limit(1000)
    >>> wayveil.rules.count([limit], wayveil.rules.motion_of(rides, city.scope))
    {'speed_limit': {'points': 0, 'trajectories': 0}}

    Privacy
    -------
    Free where the motion is synthetic; on real data the counts are exact and private.
    """
    owner = motion.owner
    result: dict[str, dict[str, int]] = {}
    for rule, name in zip(rules := tuple(rules), unique_names(rules)):
        broken = rule.violations(motion)
        result[name] = {"points": int(broken.sum()), "trajectories": len(np.unique(owner[broken]))}
    return result


def unique_names(rules: Iterable[Rule]) -> list[str]:
    """Return the rules' names; a name that occurred before gets a number."""
    names: list[str] = []
    for rule in rules:
        name, number = rule.name, 2
        while name in names:
            name, number = f"{rule.name} ({number})", number + 1
        names.append(name)
    return names
