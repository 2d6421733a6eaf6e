"""Markov chains over the leaves of a grid, first and second order, and walks of all walkers at once.

Privacy: free (post-processing); the inputs are outputs of the mechanism.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import draw_rows, draw_systematic
from wayveil.core import ragged
from wayveil.core.raking import rake

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LONGEST = 400
"""Cells of the longest walk."""
_WALKERS_AT_ONCE = 50_000
"""Walks drawn at a time, which bounds the memory."""
_RAKING_ROUNDS = 50
"""Rounds of raking that fit trips to the noisy numbers of starts and ends."""
_TEMPER = 0.7
"""Exponent of the chain's own P(end | start), from which the fit begins: 0 = independent, 1 = as in the chain."""
_DIRECTNESS = 0.5
"""Factor on the weight of a route for each of its steps: a walk prefers short routes, as the authors' trips do."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Ordered pairs of states, sorted by (source, target); those of state i are first[i]:first[i + 1]."""

    source: Ints
    target: Ints
    first: Ints

    @classmethod
    def of(cls, source: Ints, target: Ints, states: int) -> "Edges":
        order = np.lexsort((target, source))
        first = np.searchsorted(source[order], np.arange(states + 1))
        return cls(source[order], target[order], first)

    @property
    def states(self) -> int:
        return len(self.first) - 1

    @property
    def degree(self) -> Ints:
        return np.diff(self.first)

    def find(self, source: Ints, target: Ints) -> Ints:
        """Index of each pair, or -1 if it is not an edge."""
        if len(self.source) == 0:
            return np.full(len(source), -1)
        key = self.source * self.states + self.target
        wanted = source * self.states + target
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return np.where(key[at] == wanted, at, -1)


@dataclass(frozen=True, eq=False)
class Chain:
    """P(next | state) on the edges, P(end | state), and what follows from them."""

    edges: Edges
    start: Floats
    end: Floats
    flow: Floats
    """Weight of each edge."""
    step: Floats
    """Probability of each edge, given its source."""
    stop: Floats
    """Probability of ending at each state."""
    visits: Floats
    """(states, states) expected number of visits to j when starting from i: (I − Q)⁻¹."""
    reach: Floats
    """(states, states) the same with Q multiplied by _DIRECTNESS: how directly j is reached from i."""


def make_chain(edges: Edges, start: Floats, end: Floats, flow: Floats) -> Chain:
    """The chain of these weights of starts, ends and moves; edges without weight are dropped."""
    keep = flow > 0
    edges = Edges.of(edges.source[keep], edges.target[keep], edges.states)
    flow = flow[keep]
    leaving = np.bincount(edges.source, flow, minlength=edges.states)
    total = leaving + end
    # A walk ends at a state without successors; a tiny probability of ending at every state keeps the inverse finite.
    stop = np.clip(np.where(total > 0, end / np.where(total > 0, total, 1.0), 1.0), 1e-3, 1.0)
    step = flow / leaving[edges.source] * (1 - stop[edges.source])
    stop = np.where(leaving > 0, stop, 1.0)
    q = np.zeros((edges.states, edges.states))
    q[edges.source, edges.target] = step
    visits, reach = (np.maximum(np.linalg.inv(np.eye(edges.states) - w * q), 0.0) for w in (1.0, _DIRECTNESS))
    return Chain(edges, start, end, flow, step, stop, visits, reach)


def trip_distribution(chain: Chain) -> Floats:
    """(states, states) weights of (start, end): the entropy projection onto the noisy margins, a convex fit.

    Each trajectory of L states weighs 1/(L + 1) in the margins, so y = x / (L_ij + 1) is fitted and multiplied back,
    with L_ij the number of states of the shortest route from i to j. The fit starts from the chain's own
    distribution of (start, end), tempered.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import shortest_path

    start, end = chain.start, chain.end
    if start.sum() <= 0 or end.sum() <= 0:
        return np.ones((len(start), len(start)))
    start, end = start / start.sum(), end / end.sum()
    y = start[:, None] * (chain.visits * chain.stop) ** _TEMPER
    y = rake(y, ((0, start), (1, end)), _RAKING_ROUNDS)
    edges = chain.edges
    graph = csr_matrix((np.ones(len(edges.source)), (edges.source, edges.target)), shape=y.shape)
    hops = shortest_path(graph, unweighted=True)
    return np.where(np.isfinite(hops), y * (np.where(np.isfinite(hops), hops, 0.0) + 2), 0.0)


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """P(after | before, at) for the chosen states."""

    edges: Edges
    chosen: NDArray[np.bool_]
    first: Ints
    """(states,) first code of each chosen state; its codes are (slot of before) · degree + (slot of after)."""
    size: int
    step: Floats

    @classmethod
    def choose(cls, chain: Chain, scale: float) -> "SecondOrder":
        """States whose noisy moves are above the noise and that have more than one successor."""
        degree = chain.edges.degree
        leaving = np.bincount(chain.edges.source, chain.flow, minlength=chain.edges.states)
        chosen = (degree >= 2) & (leaving >= 4.0 * scale)
        width = np.where(chosen, degree**2, 0)
        return cls(chain.edges, chosen, ragged.offsets_of(width)[:-1], int(width.sum()), np.zeros(0))

    def _slot(self, state: Ints, neighbour: Ints) -> Ints:
        found = self.edges.find(state, neighbour)
        return np.where(found >= 0, found - self.edges.first[state], -1)

    def row(self, before: Ints, at: Ints) -> Ints:
        """Code of (before, at, first neighbour), or -1 where the second order is not known."""
        slot = self._slot(at, before)
        return np.where(self.chosen[at] & (slot >= 0), self.first[at] + slot * self.edges.degree[at], -1)

    def code(self, before: Ints, at: Ints, after: Ints) -> Ints:
        """Code of each triple, or -1 where its state is not chosen."""
        row, slot = self.row(before, at), self._slot(at, after)
        return np.where((row >= 0) & (slot >= 0), row + slot, -1)

    def with_counts(self, noisy: Floats, chain: Chain) -> "SecondOrder":
        """Shares of the noisy counts, shrunk towards the first order where counts are low."""
        degree = self.edges.degree
        state = np.repeat(np.flatnonzero(self.chosen), degree[self.chosen] ** 2)
        inside = np.arange(self.size) - self.first[state]
        edge = self.edges.first[state] + inside % np.maximum(degree[state], 1)
        row = self.first[state] + inside // degree[state] * degree[state]
        first_order = chain.step[edge] / np.maximum(1 - chain.stop[state], 1e-12)
        count = np.maximum(noisy, 0.0) + 3.0 * degree[state] * first_order
        total = np.bincount(row, count, minlength=self.size)[row]
        return replace(self, step=count / total * (1 - chain.stop[state]))


def walk(chain: Chain, second: SecondOrder, trips: Floats, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Offsets and states of n walks: P(next) · (how directly the trip's end is reached from there).

    P is of second order where it is known, of first order elsewhere. A walk stops when it reaches its end; one that
    ends where it starts may first make a loop.
    """
    states = chain.edges.states
    pair = draw_systematic(trips, n, rng)
    sizes, visited = [], []
    for begin in range(0, n, _WALKERS_AT_ONCE):
        batch = pair[begin : begin + _WALKERS_AT_ONCE]
        size, state = _walk_batch(chain, second, batch // states, batch % states, rng)
        sizes.append(size)
        visited.append(state)
    return ragged.offsets_of(np.concatenate(sizes)), np.concatenate(visited)


def _walk_batch(
    chain: Chain, second: SecondOrder, current: Ints, end: Ints, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    n = len(current)
    target, step, exists = _padded(chain)
    slots = np.arange(target.shape[1])
    before, walking = np.full(n, -1), np.arange(n)
    walkers, visited = [walking], [current.copy()]
    for _ in range(_LONGEST - 2):
        at, goal = current[walking], end[walking]
        weight = np.zeros((len(walking), len(slots) + 1))
        weight[:, :-1] = step[at]
        row = np.where(before[walking] >= 0, second.row(np.maximum(before[walking], 0), at), -1)
        known = np.flatnonzero(row >= 0)
        if len(known):
            index = np.minimum(row[known, None] + slots, second.size - 1)
            weight[known, :-1] = np.where(exists[at[known]], second.step[index], 0.0)
        weight[:, :-1] *= chain.reach[target[at], goal[:, None]]
        arrived = at == goal
        weight[:, -1] = np.where(arrived, chain.stop[at] * chain.reach[at, at], 0.0)
        weight[:, :-1][arrived & (before[walking] >= 0)] = 0.0
        choice = draw_rows(weight, rng)
        # A walker without any path to its end stays where it is.
        going = (choice < len(slots)) & (weight.sum(1) > 0)
        walking, at, choice = walking[going], at[going], choice[going]
        if len(walking) == 0:
            break
        before[walking], current[walking] = at, target[at, choice]
        walkers.append(walking)
        visited.append(current[walking])
    return _in_order(np.concatenate(walkers), np.concatenate(visited), n)


def _padded(chain: Chain) -> tuple[Ints, Floats, NDArray[np.bool_]]:
    """(states, widest) target, probability and existence of each state's edges."""
    edges = chain.edges
    slots = np.arange(max(int(edges.degree.max(initial=1)), 1))
    exists = slots < edges.degree[:, None]
    target, step = np.zeros(exists.shape, np.int64), np.zeros(exists.shape)
    target[exists], step[exists] = edges.target, chain.step
    return target, step, exists


def _in_order(walker: Ints, state: Ints, n: int) -> tuple[Ints, Ints]:
    """How many states each walk has, and its states in order; a walk of one state gets it twice, as start and end."""
    alone = np.bincount(walker, minlength=n) == 1
    walker, state = np.concatenate([walker, walker[alone[walker]]]), np.concatenate([state, state[alone[walker]]])
    order = np.argsort(walker, kind="stable")
    return np.bincount(walker, minlength=n), state[order]
