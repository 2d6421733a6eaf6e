"""What a rule is: two functions, a smooth one for descent and a hard one for the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import numpy as np

from wayveil.rules.motion import Array, Motion, module_of, sum_by_trajectory


@runtime_checkable
class Rule(Protocol):
    """A traffic rule.

    `penalty` aims a little inside the rule, by the rule's `margin`, because a written file rounds to 1e-7 degrees
    (about 1 cm); `violations` has no margin. With `without_margin` the penalty is zero exactly where there is no
    violation. What concerns two points stands at the later one, what concerns a trajectory at its last point.
    """

    @property
    def name(self) -> str:
        """What the user calls it."""
        ...

    def describe(self) -> str:
        """The rule in plain words."""
        ...

    def penalty(self, motion: Motion) -> Array:
        """(n,) >= 0, continuous, about the metres (or seconds) by which a point is wrong; numpy or jax."""
        ...

    def violations(self, motion: Motion) -> np.ndarray:
        """(n,) whether each point breaks the rule, exactly; numpy only."""
        ...


def without_margin(rule: Rule) -> Rule:
    """The same rule with a penalty that aims at the rule itself and not a little inside."""
    margins = [field.name for field in dataclasses.fields(rule) if field.name.startswith("margin")]  # type: ignore[arg-type]
    return dataclasses.replace(rule, **dict.fromkeys(margins, 0.0))  # type: ignore[type-var]


def trajectory_penalty(rule: Rule, motion: Motion) -> Array:
    """(trajectories,) P_j = sum of the penalty over a trajectory's points.

    Privacy: free where the motion is synthetic.
    """
    return sum_by_trajectory(rule.penalty(motion), motion, module_of(motion))


def violating_trajectories(rules: Iterable[Rule], motion: Motion) -> np.ndarray:
    """(trajectories,) whether any rule is broken anywhere on each trajectory."""
    broken = np.zeros(motion.trajectories, dtype=bool)
    owner = motion.owner
    for rule in rules:
        broken[owner[rule.violations(motion)]] = True
    return broken


def count(rules: Iterable[Rule], motion: Motion) -> dict[str, dict[str, int]]:
    """{rule's name: {"points": violating points, "trajectories": trajectories with at least one}}.

    Privacy: free where the motion is synthetic; on real data the counts are exact and private.
    """
    owner = motion.owner
    result: dict[str, dict[str, int]] = {}
    for rule, name in zip(rules := tuple(rules), unique_names(rules)):
        broken = rule.violations(motion)
        result[name] = {"points": int(broken.sum()), "trajectories": len(np.unique(owner[broken]))}
    return result


def unique_names(rules: Iterable[Rule]) -> list[str]:
    """The rules' names; where two are the same, the later ones get a number."""
    names: list[str] = []
    for rule in rules:
        name, number = rule.name, 2
        while name in names:
            name, number = f"{rule.name} ({number})", number + 1
        names.append(name)
    return names
