"""Variable-length n-grams (Chen, Acs, Castelluccia: CCS 2012), reimplemented from the paper.

Trajectories are sequences of cells, cut at a public length, with an end symbol. A tree counts the grams of up to n
cells; nodes below the threshold are cut; children are made to add up to their parent. Sequences grow from the longest
gram that matches their last cells.

The ε that is left at a node is shared equally among the levels of its predicted height. This is the number of levels
after which its noisy count falls below the threshold if each level multiplies the count by the share of the most
frequent cell. All levels together spend one share of ε, because a trajectory's weights along each path of the tree add
up to at most 1.
"""

import math

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import trace, uniform_grid
from wayveil.baselines.mechanism import Features
from wayveil.baselines.method import Method, Run
from wayveil.baselines.sequences import cell_rows, drawn_points
from wayveil.baselines.trees import Level, kept, make_level
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ACROSS = 8
"""Cells of the grid in each direction."""
END = ACROSS**2
"""The end symbol."""
LONGEST = 12
"""l_max: cells of a trajectory, the end included; the rest is cut."""
ORDERS = 3
"""n_max: cells of the longest gram."""


def _make(run: Run) -> Trajectories:
    count = run.count()
    grid = uniform_grid(run.box, ACROSS)
    routes = trace(*run.data, grid, min(run.box.width_m, run.box.height_m) / (4 * ACROSS))
    levels = _grow(run, cell_rows(routes, LONGEST, END))
    return drawn_points(run, grid, _draw_sequences(levels, run.size(count), run.rng))


def _grow(run: Run, rows: Ints) -> list[Level]:
    """The tree: levels[k] has the grams of k + 1 cells.

    The weight of a gram is the part of the share that its node spends, divided by the maximum number of grams.

    Privacy: spends the share "grams".
    """
    owner, place = np.nonzero(rows >= 0)
    node, above, levels = np.zeros(len(owner), np.int64), np.zeros(1), []
    left, heights = np.ones(1), np.full(1, float(ORDERS))
    for depth in range(ORDERS):
        part = left / heights
        symbol = np.where(place + depth < LONGEST, rows[owner, np.minimum(place + depth, LONGEST - 1)], -1)
        here = np.flatnonzero((node >= 0) & (symbol >= 0))
        here = here[part[node[here]] > 0]
        features = Features(owner[here], node[here] * (END + 1) + symbol[here], part[node[here]] / LONGEST)
        size = len(above) * (END + 1)
        noisy = run.mechanism.sums("grams", features, max(size, 1))[:size]
        one = np.repeat(part, END + 1) / LONGEST  # the weight of one gram; 0 below nodes that have nothing left
        noisy = np.divide(noisy, one, out=np.zeros(size), where=one > 0)
        code = kept(noisy / np.repeat(_threshold(run, part), END + 1), 1.0)
        parent = code // (END + 1)
        total = above if depth else np.array([max(noisy[code].sum(), 1.0)])
        level = make_level(parent, code % (END + 1), noisy[code], total, END + 1)
        levels.append(level)
        left = (left - part)[level.parent]
        likeliest = float(levels[0].count.max(initial=0.0)) / max(float(levels[0].count.sum()), 1.0)
        heights = _heights(level.count / _threshold(run, left), likeliest, ORDERS - 1 - depth)
        node, above = level.find(node, symbol), level.count
    return levels


def _threshold(run: Run, part: Floats) -> Floats:
    """Twice the standard deviation of the noise of a count that has this part of the share."""
    epsilon: Floats = run.mechanism.epsilon("grams") * np.maximum(part, 1e-12)
    return 2.0 * math.sqrt(2.0) * LONGEST / epsilon


def _heights(count: Floats, likeliest: float, most: int) -> Floats:
    """Number of levels below nodes of these counts (in thresholds) if each child has the share `likeliest` of it.

    Privacy: free (post-processing).
    """
    levels = np.log(np.maximum(count, 1.0)) / -np.log(np.clip(likeliest, 1e-9, 0.999))
    heights: Floats = np.clip(np.ceil(levels), 1.0, max(most, 1))
    return heights


def _draw_sequences(levels: list[Level], n: int, rng: np.random.Generator) -> Ints:
    """(n, LONGEST) cells, each drawn from the children of the longest gram that ends the sequence; -1 after the end.

    Privacy: free (post-processing).
    """
    rows = np.full((n, LONGEST), -1, np.int64)
    first = levels[0]
    no_end = Level(first.parent, first.symbol, np.where(first.symbol == END, 0.0, first.count), 1, END + 1)
    if len(first) == 0 or no_end.count.sum() <= 0:
        return rows
    rows[:, 0] = first.symbol[no_end.draw(np.zeros(n, np.int64), rng)]
    suffix = [first.find(np.zeros(n, np.int64), rows[:, 0])] + [np.full(n, -1)] * (ORDERS - 2)
    walking = np.ones(n, bool)
    for step in range(1, LONGEST):
        chosen = np.full(n, -1)
        for order in reversed(range(1, ORDERS)):
            child = levels[order].draw(suffix[order - 1], rng)
            new = (chosen < 0) & (child >= 0)
            chosen[new] = levels[order].symbol[child[new]]
        walking &= (chosen >= 0) & (chosen != END)
        if not walking.any():
            break
        rows[walking, step] = chosen[walking]
        symbol = np.where(walking, chosen, -1)
        longer = [levels[order].find(suffix[order - 1], symbol) for order in range(1, ORDERS - 1)]
        suffix = [first.find(np.zeros(n, np.int64), symbol), *longer]
    return rows


n_gram = Method(
    name="n-gram",
    reference="Chen, Acs, Castelluccia: CCS 2012",
    idea="A tree of grams of cells; sequences grow from the longest matching gram until the end symbol.",
    protects="one trajectory, added or removed",
    proof="A trajectory has at most 12 grams of each length, whose weights of 1/12 of their nodes' parts add up to 1.",
    leaks="Not private: box and number of trajectories are exact; noise is floating-point.",
    shares={"count": "0.04", "grams": "0.96"},
    published_shares={"grams": "1"},
    make=_make,
)
