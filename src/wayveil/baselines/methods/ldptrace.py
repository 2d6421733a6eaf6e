"""LDPTrace (Du, Hu, Zhang, Fang, Chen, Zheng, Gao: VLDB 2023), reimplemented from the paper.

The local model is simulated: each device reports the length of its trajectory (in cells), its start, its end and some
of its moves, each by optimised unary encoding, and the server sees only the reports. The server estimates the counts
and draws first-order walks whose ends depend on length and cell. Every device sends the same number of reports, so that
this number reveals nothing; a device without a further move sends a report of no item.

The shares of ε, how length and cell together end a walk, and the treatment of negative estimates (cut at zero for
lengths, starts and ends, the nearest non-negative table for moves) are our reading, settled by comparing with the
scores of the authors' own code on public data.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.first_order import Walks
from wayveil.baselines.grid import Routes, norm_sub, trace, uniform_grid
from wayveil.baselines.local import Reporter
from wayveil.baselines.method import Method, Run
from wayveil.baselines.sequences import direction, drawn_points
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Ints = NDArray[np.int64]

ACROSS = 6
"""Cells of the grid in each direction."""
CELLS = ACROSS**2
"""Cells of the grid."""
LENGTHS = 24
"""Longer trajectories are counted as this length, in cells."""
QUANTILE = 0.9
"""Quantile of the noisy lengths that sets how many moves each device reports."""
_SHARES = {"lengths": "0.2", "starts": "0.4", "ends": "0.05", "moves": "0.35"}


def _make(run: Run) -> Trajectories:
    grid = uniform_grid(run.box, ACROSS)
    routes = trace(*run.data, grid, min(run.box.width_m, run.box.height_m) / (4 * ACROSS))
    reporter = Reporter.of(run.mechanism, run.devices)
    here = np.arange(len(routes))
    size = np.minimum(routes.size, LENGTHS) - 1
    lengths = np.maximum(reporter.estimate("lengths", here, size, LENGTHS), 0.0)
    start = np.maximum(reporter.estimate("starts", here, routes.start, CELLS), 0.0)
    end = np.maximum(reporter.estimate("ends", here, routes.end, CELLS), 0.0)
    move = _moves(run, routes, lengths, reporter)
    move = norm_sub(move.ravel(), _moves_per_device(lengths) * run.devices).reshape(CELLS, 9)
    walks = Walks(ACROSS, start, move, end)
    return drawn_points(run, grid, walks.draw(run.size(max(run.devices, 1)), run.rng, lengths))


def _moves(run: Run, routes: Routes, lengths: np.ndarray, reporter: Reporter) -> np.ndarray:
    """(CELLS, 9) estimated numbers of devices' moves; a device samples its moves without looking at anyone else's."""
    cumulative = np.cumsum(lengths) / max(lengths.sum(), 1e-12)
    reports = int(np.clip(np.searchsorted(cumulative, QUANTILE), 1, LENGTHS - 1))
    owner, source, target = routes.moves()
    heading = direction(source, target, ACROSS)
    owner, code = owner[heading >= 0], (source * 9 + heading)[heading >= 0]
    order = np.lexsort((run.mechanism.order(len(owner)), owner))
    owner, code = owner[order], code[order]
    rank = ragged.ranks(np.bincount(owner, minlength=len(routes))) if len(owner) else owner
    chosen = [(owner[rank == r], code[rank == r]) for r in range(reports)]
    return reporter.estimate_many("moves", chosen, CELLS * 9).reshape(CELLS, 9)


def _moves_per_device(lengths: np.ndarray) -> float:
    """Mean number of moves of a device: puts moves on the scale of the ends, with which they compete in a walk."""
    return float(max((np.arange(LENGTHS) * lengths).sum() / max(lengths.sum(), 1e-12), 1e-3))


ldptrace = Method(
    name="ldptrace",
    reference="Du, Hu, Zhang, Fang, Chen, Zheng, Gao: VLDB 2023",
    idea="Devices report length, start, end and moves by optimised unary encoding; first-order walks follow them.",
    protects="all data of one device, replaced by any other, even from the server",
    proof="Each report's likelihood ratio is at most e^share for any two items; a device's shares add up to epsilon.",
    leaks="Not private: the box is the exact bounding box of the data; the random bits come from a seeded generator.",
    shares=_SHARES,
    published_shares=_SHARES,
    make=_make,
    local=True,
)
