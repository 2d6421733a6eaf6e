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


def bridge(chain: Chain, start: Ints, end: Ints, sizes: Ints, longest: int, rng: np.random.Generator) -> Ints:
    """(walks, longest) states of all walks at once, `sizes` of them in each walk; -1 after the end."""
    target, probability = chain.target, chain.probability
    states = len(target)
    transition = np.zeros((states, states))
    np.add.at(transition, (np.repeat(np.arange(states), target.shape[1]), target.ravel()), probability.ravel())
    reach = [np.eye(states)]
    for _ in range(longest):
        reach.append(reach[-1] @ transition)
    reached = np.stack(reach)
    visited = np.full((len(start), longest), -1, np.int64)
    visited[:, 0] = current = start.copy()
    for step in range(1, int(sizes.max(initial=1))):
        walking = np.flatnonzero(sizes > step)
        next_states = target[current[walking]]
        left = (sizes[walking] - 1 - step)[:, None]
        weight = probability[current[walking]] * reached[left, next_states, end[walking][:, None]]
        current[walking] = next_states[np.arange(len(walking)), draw_rows(weight, rng)]
        visited[walking, step] = current[walking]
    return visited
