"""Raking (iterative proportional fitting): weights scaled until their margins have the target shares.

Each margin divides the weights into groups. A round goes through the margins and scales each group by target / current
share. Without limits this converges, among the weights that have all target margins, to those with the least
Kullback–Leibler divergence from the initial weights. If no weights have all margins (because margins contradict each
other, or weights are zero), they are met approximately.

Similar loops that are not raking: `fit.weights` (mirror descent with a step that depends on each answer's noise),
`router.balance_routes` and `points.fit_slowness` (routes or points are computed again in each round), and
`hours_by_place` (a three-way table that exists only as its factors).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Margin = tuple[int | NDArray[np.int64], NDArray[np.float64]]
"""An axis of a two-way table, or the group of each weight; and the target share of each group."""


@dataclass(frozen=True)
class Limits:
    """Limits on the weights during raking."""

    most_factor: float = np.inf
    """The largest factor by which a step scales a weight; its inverse is the smallest."""
    bounds: tuple[float, float] | None = None
    """Smallest and largest weight after each round, over their mean; the mean then becomes 1."""
    rows_add_to_one: bool = False
    """Whether each row of a two-way table is scaled to the sum 1 after each margin."""


NO_LIMITS = Limits()


def rake(
    weight: NDArray[np.float64],
    margins: Sequence[Margin],
    rounds: int,
    *,
    total: float | None = 1.0,
    power: float = 1.0,
    limits: Limits = NO_LIMITS,
) -> NDArray[np.float64]:
    """Weights whose sums over the groups of each margin are `total` × the target shares. Overwrites `weight`.

    Parameters
    ----------
    total
        None to leave the sum of the weights unconstrained.
    power
        Exponent of the factors; with less than 1, a few rounds reach the targets only in part.
    """
    most_factor, bounds = limits.most_factor, limits.bounds
    for _ in range(rounds):
        for where, target in margins:
            if isinstance(where, int):
                current = weight.sum(axis=1 - where)
            else:
                current = np.bincount(where.ravel(), weight.ravel(), minlength=len(target))
            current /= weight.sum() if total is None else total
            # A group without weight stays unchanged; the factor of a group with very little must not overflow.
            factor = np.divide(target, np.maximum(current, 1e-12), out=np.ones(len(target)), where=current > 0)
            if power != 1.0:
                factor **= power
            np.clip(factor, 1 / most_factor, most_factor, out=factor)
            weight *= np.expand_dims(factor, 1 - where) if isinstance(where, int) else factor[where]
            if limits.rows_add_to_one:
                weight /= weight.sum(axis=1, keepdims=True)
        if bounds is not None:
            weight = np.clip(weight / weight.mean(), *bounds)
    return weight
