"""Walks with a given start, end and number of states: P(next | current) · P(end in the remaining steps).

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import draw_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Chain:
    """A Markov chain as (states, moves): where each move leads, and how likely it is (0 where there is none)."""

    target: Ints
    probability: Floats


def bridge(chain: Chain, start: Ints, end: Ints, cells: Ints, longest: int, rng: np.random.Generator) -> Ints:
    """(walks, longest) states of all walks at once; -1 after `cells` states."""
    target, probability = chain.target, chain.probability
    states = len(target)
    steps = np.zeros((states, states))
    np.add.at(steps, (np.repeat(np.arange(states), target.shape[1]), target.ravel()), probability.ravel())
    reach = [np.eye(states)]
    for _ in range(longest):
        reach.append(reach[-1] @ steps)
    reached = np.stack(reach)
    visited = np.full((len(start), longest), -1, np.int64)
    visited[:, 0] = current = start.copy()
    for step in range(1, int(cells.max(initial=1))):
        who = np.flatnonzero(cells > step)
        ways = target[current[who]]
        left = (cells[who] - 1 - step)[:, None]
        weight = probability[current[who]] * reached[left, ways, end[who][:, None]]
        current[who] = ways[np.arange(len(who)), draw_rows(weight, rng)]
        visited[who, step] = current[who]
    return visited
