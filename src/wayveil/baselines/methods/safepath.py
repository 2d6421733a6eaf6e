"""SafePath (Al-Hussaeni, Fung, Iqbal, Dagher, Park: Computer Networks 2018), reimplemented from the paper.

A prefix tree over (place, time): a general node is one of 4 × 4 districts in one of four periods of six hours, a
specific node one of its 2 × 2 cells in one of its six hours. Nodes below twice the standard deviation are cut, children
are made to add up, and paths are drawn with a time in each hour, in order.

The authors take both taxonomies and the height from the data owner. Here they are public constants in both modes.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import TwoLevelGrid, uniform_grid
from wayveil.baselines.method import Method, Run
from wayveil.baselines.methods.prefix_tree import DISTRICTS, symbol_of_cell
from wayveil.baselines.prefix_trees import Taxonomy, grow, shares_of
from wayveil.baselines.sequences import at_least_two, padded
from wayveil.baselines.trees import draw_paths
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PERIODS, HOURS = 4, 6
"""Periods of a day, and hours of a period."""
HEIGHT = 6
"""Pairs of place and hour of a trajectory, the end included."""
TAXONOMY = Taxonomy(DISTRICTS**2 * PERIODS, 4 * HOURS)
"""Groups of places and hours, and the places and hours in each group."""
_DAY_S = 86_400.0


def _encode(cell: Ints, hour: Ints) -> Ints:
    place = symbol_of_cell()[cell]
    group = place // 4 * PERIODS + hour // HOURS
    symbol: Ints = group * TAXONOMY.members + place % 4 * HOURS + hour % HOURS
    return symbol


def _decode(symbol: Ints) -> tuple[Ints, Ints]:
    """Cell and hour of each symbol; the inverse of `_encode`."""
    group, member = np.divmod(symbol, TAXONOMY.members)
    place = group // PERIODS * 4 + member // HOURS
    return np.argsort(symbol_of_cell())[place], group % PERIODS * HOURS + member % HOURS


def _make(run: Run) -> Trajectories:
    count = run.count()
    grid = uniform_grid(run.box, 2 * DISTRICTS)
    paths = draw_paths(grow(run.mechanism, _rows(run, grid), TAXONOMY, count), run.size(count), TAXONOMY.end, run.rng)
    symbol = at_least_two(paths, TAXONOMY.end, run.rng)
    known = symbol >= 0
    cell, hour = _decode(symbol[known])
    offsets = ragged.offsets_of(known.sum(1))
    return run.made(offsets, *grid.draw(cell, run.rng), _times(run, offsets, hour))


def _rows(run: Run, grid: TwoLevelGrid) -> Ints:
    """(trajectories, HEIGHT) symbols of the sample points, none twice in a row."""
    offsets, x_m, y_m = run.data
    hour = (run.scope.local_seconds(run.t_utc) % _DAY_S // 3600).astype(np.int64)
    symbol, owner = _encode(grid.locate(x_m, y_m), hour), ragged.owners(np.diff(offsets))
    new = np.ones(len(symbol), bool)
    new[1:] = (symbol[1:] != symbol[:-1]) | (owner[1:] != owner[:-1])
    size = np.bincount(owner[new], minlength=len(offsets) - 1)
    return padded(ragged.offsets_of(size), symbol[new], HEIGHT, TAXONOMY.end)


def _times(run: Run, offsets: Ints, hour: Ints) -> Floats:
    """A time in each hour, in order, on one public day; an hour earlier than the previous one is on the next day.

    Privacy: free (post-processing).
    """
    window = run.scope.time_window()
    midnight = 0.0 if window is None else float(window[0])
    # Local time at that moment, because the hours are local.
    local = float(run.scope.local_seconds(np.array([midnight]))[0] % _DAY_S)
    owner = ragged.owners(np.diff(offsets))
    back = np.zeros(len(hour), np.int64)
    back[1:] = (owner[1:] == owner[:-1]) & (hour[1:] < hour[:-1])
    days = np.cumsum(back)
    days -= days[offsets[:-1]][owner]
    t_utc = midnight - local + (days * 24 + hour + run.rng.random(len(hour))) * 3600.0
    return t_utc[np.lexsort((t_utc, owner))]


safepath = Method(
    name="safepath",
    reference="Al-Hussaeni, Fung, Iqbal, Dagher, Park: Computer Networks 2018",
    idea="A prefix tree over pairs of place and hour with a taxonomy of each; its paths have times.",
    protects="one trajectory, added or removed",
    proof="A trajectory is in one node of each of 12 levels, and their shares add up to epsilon.",
    leaks="Not private: box and number of trajectories are exact; noise is floating-point.",
    shares=shares_of(HEIGHT, count="0.03"),
    published_shares=shares_of(HEIGHT),
    make=_make,
    makes_times=True,
)
