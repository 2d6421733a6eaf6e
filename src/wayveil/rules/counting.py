"""Counting: how many points and trajectories break which rule."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wayveil.rules.motion import Array, Motion, module_of, sum_by_trajectory
from wayveil.rules.rule import Rule


def trajectory_penalty(rule: Rule, motion: Motion) -> Array:
    """Return P_j, the sum of the penalty over the points of each trajectory: (trajectories,).

    Privacy: free where the motion is synthetic.
    """
    return sum_by_trajectory(rule.penalty(motion), motion, module_of(motion))


def violating_trajectories(rules: Iterable[Rule], motion: Motion) -> np.ndarray:
    """Return whether each trajectory breaks at least one rule: (trajectories,) bool."""
    broken = np.zeros(motion.trajectories, dtype=bool)
    owner = motion.owner
    for rule in rules:
        broken[owner[rule.violations(motion)]] = True
    return broken


def count(rules: Iterable[Rule], motion: Motion) -> dict[str, dict[str, int]]:
    """Return {rule's name: {"points": violating points, "trajectories": trajectories with at least one}}.

    Privacy: free where the motion is synthetic; on real data the counts are exact and private.
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
