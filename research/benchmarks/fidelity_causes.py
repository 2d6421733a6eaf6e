"""Variants of published modes that show what makes their scores differ from those of the programs.

usage: PYTHONPATH=research/benchmarks wayveil bench utility DATA -o BENCH --epsilons 0.1,0.5,1 --seeds 1 --methods \
fidelity_causes:adatrace_transposed-published,fidelity_causes:coordinate_noise_tenth-published

`baseline_fidelity.py` then has a row for each variant beside the method. None of them is part of the collection.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import TwoLevelGrid
from wayveil.baselines.method import Run
from wayveil.baselines.methods import adatrace, coordinate_noise
from wayveil.core.trajectories import Trajectories

TENTH = 0.1


def transposed(grid: TwoLevelGrid, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of leaves with row and column exchanged inside each coarse cell."""
    first = grid.first_leaf[grid.cell_of_leaf]
    side, inside = grid.splits[grid.cell_of_leaf], np.arange(grid.leaves) - first
    return weight[first + inside % side * side + inside // side]


def _adatrace_transposed(run: Run) -> Trajectories:
    """AdaTrace whose second-level densities are at the transposed place of their coarse cell."""
    model = adatrace._measure(run)
    return adatrace._walk(replace(model, leaf_weight=transposed(model.grid, model.leaf_weight)), run)


def _coordinate_noise_tenth(run: Run) -> Trajectories:
    """CNoise with a tenth of the noise, and points outside the box moved to its border."""
    offsets, x_m, y_m = run.data
    box = run.box
    values = np.column_stack([(x_m - box.x_m) / box.width_m, (y_m - box.y_m) / box.height_m])
    noise = run.mechanism.rows("records", values, np.full(2, 0.5)) - values
    at = np.clip(values + TENTH * noise, 0.0, 1.0)
    return coordinate_noise._copies(run, offsets, box.x_m + at[:, 0] * box.width_m, box.y_m + at[:, 1] * box.height_m)


adatrace_transposed = replace(adatrace.adatrace, name="adatrace-transposed", make=_adatrace_transposed)
coordinate_noise_tenth = replace(
    coordinate_noise.coordinate_noise, name="coordinate-noise-tenth", make=_coordinate_noise_tenth
)
