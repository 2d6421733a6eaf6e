"""Variable-length n-grams (Chen, Acs, Castelluccia: CCS 2012), our own code from the paper.

Trajectories are sequences of cells, cut at a public length, with an end symbol. A tree counts the grams of up to n
cells with noise l_max/ε of the level; nodes below the threshold are cut; children are made to add up to their parent.
Sequences grow from the longest gram that matches their last cells.

The published mode shares what is left of ε at a node by its predicted height, as the authors do: the number of levels
after which its count, divided equally among the symbols on each, is no larger than the noise. (That the children are
equal is our simplification.) The default mode has the same share for each level, so that the ledger's lines are known
before any data is read.
"""

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
    return drawn_points(run, grid, _write(levels, run.size(count), run.rng))


def _grow(run: Run, rows: Ints) -> list[Level]:
    """The tree: levels[k] has the grams of k + 1 cells."""
    who, place = np.nonzero(rows >= 0)
    node, above, levels = np.zeros(len(who), np.int64), np.array([1.0]), []
    left = np.array([sum(run.mechanism.epsilon(f"grams of {k + 1}") for k in range(ORDERS))])
    for depth in range(ORDERS):
        name = f"grams of {depth + 1}"
        inside = place + depth < LONGEST
        symbol = np.where(inside, rows[who, np.minimum(place + depth, LONGEST - 1)], -1)
        here = (node >= 0) & (symbol >= 0)
        features = Features(who[here], node[here] * (END + 1) + symbol[here], np.full(here.sum(), 1.0 / LONGEST))
        size = max(len(above) * (END + 1), 1)
        noisy = run.mechanism.sums(name, features, size) * LONGEST
        share = np.full(len(above), run.mechanism.epsilon(name))
        if run.published:
            share = left / _heights(above, depth, LONGEST / left)
            exact = np.bincount(features.bin, minlength=size).astype(float)
            factor = run.mechanism.epsilon(name) / np.repeat(share, END + 1)[:size]
            noisy = exact + (noisy - exact) * factor if len(above) else exact
        threshold = 2.0 * np.sqrt(2.0) * LONGEST / np.repeat(share, END + 1)
        code = kept(noisy[: len(threshold)] / np.maximum(threshold, 1e-12), 1.0)
        parent = code // (END + 1)
        total = above if depth else np.array([max(noisy[code].sum(), 1.0)])
        level = make_level(parent, code % (END + 1), noisy[code], total, END + 1)
        levels.append(level)
        left = np.maximum(left - share, 1e-9)[level.parent]  # what is spent leaves nothing but noise below
        node, above = level.find(node, symbol), level.count
    return levels


def _heights(count: Floats, depth: int, scale: Floats) -> Floats:
    """Predicted number of further levels below a node: log of count over noise, base the number of cells."""
    if depth == 0:
        return np.full(len(count), float(ORDERS))
    predicted = np.log(np.maximum(count / scale, 1.0)) / np.log(END + 1)
    heights: Floats = np.clip(np.ceil(predicted), 1.0, ORDERS - depth)
    return heights


def _write(levels: list[Level], n: int, rng: np.random.Generator) -> Ints:
    """(n, LONGEST) cells, each drawn after the longest gram that the last cells make; -1 after the end.

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


_GRAMS = {f"grams of {k + 1}": "0.32" for k in range(ORDERS)}
"""Shares of ε of the n-grams of each length, all alike."""

n_gram = Method(
    name="n-gram",
    reference="Chen, Acs, Castelluccia: CCS 2012",
    idea="A tree of grams of cells; sequences grow from the longest matching gram until the end symbol.",
    protects="one trajectory, added or removed",
    proof="A trajectory has at most 12 grams of each length, each weighs 1/12; the levels' shares add up to epsilon.",
    leaks="Not private: box and number of trajectories are exact, noise is floating-point.",
    shares={"count": "0.04", **_GRAMS},
    published_shares=_GRAMS,
    make=_make,
)
