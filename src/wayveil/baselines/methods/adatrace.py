"""AdaTrace (Gursoy, Liu, Truex, Yu, Wei: CCS 2018), reimplemented from the paper.

A density-aware two-level grid, a first-order Markov chain over the coarse cells, the distribution of trips, a route
length for each trip, and walks that end where the trip ends.

Not here: the paper's three defences against attacks, which read the raw data while synthesising. The scores of
the authors' program are reproduced if rows and columns of the second-level cells are exchanged inside each coarse cell
(`research/benchmarks/fidelity_causes.py`); here they are not.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.bridges import Chain, bridge
from wayveil.baselines.coordinates import Metres
from wayveil.baselines.grid import (
    Routes,
    TwoLevelGrid,
    draw_rows,
    draw_systematic,
    norm_sub,
    trace,
    uniform_grid,
)  # fmt: skip
from wayveil.baselines.mechanism import Features, Mechanism, by_trajectory
from wayveil.baselines.method import Method, Run
from wayveil.baselines.records import leaf_of_cell
from wayveil.baselines.sequences import direction, neighbour_table
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ACROSS = 6
"""Cells of the coarse grid in each direction."""
LONGEST = 4 * ACROSS
"""Cells of the longest route; longer ones are cut."""
PUBLISHED_SHARES = {"grid": "0.05", "mobility": "0.35", "trips": "0.5", "lengths": "0.1"}
SOUND_SHARES = {"count": "0.03", "grid": "0.04", "second level": "0.2", "mobility": "0.2", "trips": "0.43",
                "lengths": "0.1"}  # fmt: skip
VISITS_PER_LEAF = 10.0
"""Constant c of adaptive grids (Qardaji, Yang, Li: ICDE 2013), from which the paper takes its grid: a coarse cell of N
noisy visits is split into sqrt(N ε / c) in each direction."""
LEAKS = (
    "Not private: box and number of trajectories are exact; second-level densities carry no noise; the family of each "
    "trip's route lengths and their largest value are read from the raw data; noise is floating-point."
)


@dataclass(frozen=True, eq=False)
class _Model:
    """The estimates from which the walks are drawn."""

    grid: TwoLevelGrid
    leaf_weight: Floats
    move: Floats
    """(36, 9) probability of each step, by direction; 0 for direction 4 (stay)."""
    trips: Floats
    """(36 · 36,) weights of (start, end)."""
    excess: Floats
    """(36 · 36, LONGEST) distribution of the route's cells beyond the shortest possible number."""
    count: float


def _make(run: Run) -> Trajectories:
    model = _measure(run)
    run.progress("adatrace", 0.5)
    return _walk(model, run)


def _measure(run: Run) -> _Model:
    box, data, mechanism, published = run.box, run.data, run.mechanism, run.published
    count, m = run.count(), run.trajectories
    everyone = np.arange(m)
    coarse = uniform_grid(box, ACROSS)
    grid, leaf_weight = _second_level(data, coarse, count, mechanism, published)
    routes = trace(*data, coarse, min(box.width_m, box.height_m) / ACROSS / 4)
    move = _mobility(routes, mechanism)
    pair = routes.start * ACROSS**2 + routes.end
    trips = mechanism.sums("trips", Features(everyone, pair, np.ones(m)), ACROSS**4)
    trips = np.maximum(trips, 0.0) if published else norm_sub(trips, count)
    lengths = np.minimum(routes.size, LONGEST)
    excess = (
        _published_lengths(pair, lengths, mechanism) if published else _sound_lengths(pair, lengths, trips, mechanism)
    )
    return _Model(grid, leaf_weight, move, trips, excess, count)


def _second_level(
    data: Metres, coarse: TwoLevelGrid, count: float, mechanism: Mechanism, published: bool
) -> tuple[TwoLevelGrid, Floats]:
    """The grid whose dense cells are split, as in adaptive grids, and the weights of its leaves."""
    offsets, x_m, y_m = data
    owner = ragged.owners(np.diff(offsets))
    visits = mechanism.sums("grid", by_trajectory(owner, coarse.locate(x_m, y_m)), ACROSS**2)
    visits = norm_sub(visits, count)
    level_epsilon = mechanism.epsilon("grid" if published else "second level")
    splits = np.clip(np.round(np.sqrt(visits * level_epsilon / VISITS_PER_LEAF)), 1, 16).astype(np.int64)
    grid = TwoLevelGrid(coarse.box, ACROSS, splits)
    features = by_trajectory(owner, grid.locate(x_m, y_m))
    if published:
        return grid, np.asarray(np.bincount(features.bin, features.value, minlength=grid.leaves), np.float64)
    return grid, norm_sub(mechanism.sums("second level", features, grid.leaves), count)


def _neighbours() -> tuple[Ints, NDArray[np.bool_]]:
    target, exists = neighbour_table(ACROSS)
    return target, exists & (np.arange(9) != 4)


def _mobility(routes: Routes, mechanism: Mechanism) -> Floats:
    owner, source, target = routes.moves()
    heading = direction(source, target, ACROSS)
    near = heading >= 0
    noisy = mechanism.sums("mobility", by_trajectory(owner[near], source[near] * 9 + heading[near]), ACROSS**2 * 9)
    _, exists = _neighbours()
    # A little weight everywhere keeps every end reachable.
    weight = np.where(exists, np.maximum(noisy.reshape(-1, 9), 0.0) + 1e-6, 0.0)
    probability: Floats = weight / weight.sum(1, keepdims=True)
    return probability


def _shortest(pair: Ints) -> Ints:
    """Cells of the shortest route: Chebyshev distance + 1."""
    start, end = pair // ACROSS**2, pair % ACROSS**2
    up, right = end // ACROSS - start // ACROSS, end % ACROSS - start % ACROSS
    cells: Ints = np.maximum(np.abs(up), np.abs(right)) + 1
    return cells


def _families(mean: Floats) -> Floats:
    """(3, pairs, LONGEST) uniform, geometric and Poisson distributions of the excess with these means."""
    k = np.arange(LONGEST)[None]
    mean = np.clip(mean, 1e-3, LONGEST - 1.0)[:, None]
    uniform = (k <= np.round(2 * mean)).astype(float)
    geometric = np.exp(k * np.log(mean / (1 + mean)))
    log_factorial = np.r_[0.0, np.cumsum(np.log(np.arange(1, LONGEST)))]
    poisson = np.exp(k * np.log(mean) - mean - log_factorial)
    made = np.stack([uniform, geometric, poisson])
    probability: Floats = made / made.sum(2, keepdims=True)
    return probability


def _published_lengths(pair: Ints, lengths: Ints, mechanism: Mechanism) -> Floats:
    """The family nearest to the raw lengths of each trip, around a mean with noise scaled by the raw maximum."""
    excess = np.maximum(lengths - _shortest(pair), 0)
    table = np.bincount(pair * LONGEST + excess, minlength=ACROSS**4 * LONGEST).reshape(-1, LONGEST).astype(float)
    count = table.sum(1)
    true_sum = table @ np.arange(LONGEST)
    largest = np.where(table > 0, np.arange(LONGEST), 0).max(1)
    noise = mechanism.sums("lengths", Features(pair[:0], pair[:0], np.zeros(0)), ACROSS**4)
    mean = np.maximum(true_sum + noise * largest, 0.0) / np.maximum(count, 1.0)
    raw_mean = true_sum / np.maximum(count, 1.0)
    distance = np.abs(_families(raw_mean) - table / np.maximum(count, 1.0)[:, None]).sum(2)
    nearest: Floats = _families(mean)[distance.argmin(0), np.arange(ACROSS**4)]
    return nearest


def _sound_lengths(pair: Ints, lengths: Ints, trips: Floats, mechanism: Mechanism) -> Floats:
    """Geometric around a noisy mean excess of each trip, shrunk towards the mean of its distance class.

    A trajectory adds excess / ACROSS ≤ 1 (a larger excess is cut) to its pair; the family is fixed beforehand and the
    counts are the noisy trips. Clipping before shrinking would turn the noise of rare trips into length.
    """
    excess = np.clip(lengths - _shortest(pair), 0, ACROSS)
    noisy = mechanism.sums("lengths", Features(np.arange(len(pair)), pair, excess / ACROSS), ACROSS**4) * ACROSS
    kind = _shortest(np.arange(ACROSS**4))
    pooled = np.bincount(kind, noisy) / np.maximum(np.bincount(kind, trips), 1.0)
    prior = np.clip(pooled, 0.0, ACROSS)[kind]
    strength = 5.0 * ACROSS / mechanism.epsilon("lengths")
    lengths_by_pair: Floats = _families(np.clip((noisy + strength * prior) / (trips + strength), 0.0, ACROSS))[1]
    return lengths_by_pair


def _walk(model: _Model, run: Run) -> Trajectories:
    """All walkers at once: P(next | current) · P(end in the remaining steps)."""
    rng, n = run.rng, run.size(model.count)
    pair = draw_systematic(model.trips, n, rng)
    end = pair % ACROSS**2
    current = pair // ACROSS**2
    cells = np.minimum(_shortest(pair) + draw_rows(model.excess[pair], rng), LONGEST)
    # A walk that leaves a cell and returns has three cells; a trip of two cells with equal ends is shortened to one.
    cells = np.where((current == end) & (cells == 2), 1, cells)
    target, exists = _neighbours()
    visited = bridge(Chain(target, model.move * exists), current, end, cells, LONGEST, rng)
    # A trip inside one cell still has a start and an end.
    visited[cells == 1, 1] = visited[cells == 1, 0]
    points = np.maximum(cells, 2)
    offsets = ragged.offsets_of(points)
    cell = visited[np.arange(LONGEST)[None] < points[:, None]]
    x_m, y_m = model.grid.draw(leaf_of_cell(model.grid, model.leaf_weight, cell, rng), rng)
    return run.made(offsets, x_m, y_m)


adatrace = Method(
    name="adatrace",
    reference="Gursoy, Liu, Truex, Yu, Wei: CCS 2018",
    idea="Two-level grid, first-order Markov chain, trips and route lengths; walks that end where the trip ends.",
    protects="one trajectory, added or removed",
    proof="Each trajectory weighs at most 1 in each of six vectors of sums, and their shares add up to epsilon.",
    leaks=LEAKS,
    shares=SOUND_SHARES,
    published_shares=PUBLISHED_SHARES,
    make=_make,
)
