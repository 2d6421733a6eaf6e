"""The prefix tree (Chen, Fung, Desai, Sossou: KDD 2012), reimplemented from the paper.

Trajectories are sequences of cells. Below each node of the tree, the next place is counted twice: first general (one of
4 × 4 districts), then specific (the 2 × 2 cells of the kept districts). With height h, each of the 2h counts has the
same share of ε; nodes below 2√2/ε are cut; constrained inference makes cells consistent with their district and
children with their parent; paths are drawn from the tree.

The authors take the height from the longest trajectory. Here it is a public constant in both modes, because with a
height of a hundred nothing but noise would be left; longer trajectories are cut.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import trace, uniform_grid
from wayveil.baselines.method import Method, Run
from wayveil.baselines.prefix_trees import Taxonomy, grow, shares_of
from wayveil.baselines.sequences import cell_rows, drawn_points
from wayveil.baselines.trees import draw_paths
from wayveil.core.trajectories import Trajectories

DISTRICTS = 4
"""Districts in each direction; each has 2 × 2 cells."""
HEIGHT = 8
"""Places of a trajectory, the end included."""
TAXONOMY = Taxonomy(DISTRICTS**2, 4)
"""Districts, and the cells in each of them."""


def symbol_of_cell() -> NDArray[np.int64]:
    """Symbol of each of the 8 × 8 cells: district · 4 + cell inside the district."""
    across = 2 * DISTRICTS
    row, column = np.divmod(np.arange(across**2), across)
    symbol: NDArray[np.int64] = (row // 2 * DISTRICTS + column // 2) * 4 + row % 2 * 2 + column % 2
    return symbol


def _make(run: Run) -> Trajectories:
    count = run.count()
    grid = uniform_grid(run.box, 2 * DISTRICTS)
    routes = trace(*run.data, grid, min(run.box.width_m, run.box.height_m) / (8 * DISTRICTS))
    symbol = symbol_of_cell()
    cells = cell_rows(routes, HEIGHT, grid.leaves)
    rows = np.where(cells >= 0, np.append(symbol, TAXONOMY.end)[cells], cells)
    levels = grow(run.mechanism, rows, TAXONOMY, count)
    paths = draw_paths(levels, run.size(count), TAXONOMY.end, run.rng)
    return drawn_points(run, grid, np.where(paths >= 0, np.argsort(symbol)[paths], -1))


prefix_tree = Method(
    name="prefix-tree",
    reference="Chen, Fung, Desai, Sossou: KDD 2012",
    idea="A tree of prefixes whose levels alternate between general and specific places; paths are drawn from it.",
    protects="one trajectory, added or removed",
    proof="A trajectory is in one node of each of 16 levels, and their shares add up to epsilon.",
    leaks="Not private: box and number of trajectories are exact; noise is floating-point.",
    shares=shares_of(HEIGHT, count="0.03"),
    published_shares=shares_of(HEIGHT),
    make=_make,
)
