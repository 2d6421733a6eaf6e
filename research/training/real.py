r"""The estimates that users get, on real data: Bayes and network against the true density, cell by cell and coarsely.

    python research/training/real.py --data FOLDER --name cabspotting --scope san-francisco \
        --roads FOLDER/roads/sf_roads.parquet

JSD at one cell; under `far` JSD at 20 and 64 cells, the energy distance on blocks of 10 cells, and the spread along x
and y as a share of the truth's.

Trusted side only: it reads private trajectories. It is run after training and nothing of it goes back into training.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from judge import use_weights
from judge_blocks import far
from product import pool

from wayveil.core.grid import Grid, base_grid
from wayveil.core.prepare import prepare
from wayveil.core.scope import Scope
from wayveil.io.roads import read_roads
from wayveil.io.scope_files import read_scope
from wayveil.io.source import open_source
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.questions.levels import noisy_levels
from wayveil.synthesis.estimate import fields
from wayveil.synthesis.estimate.learned.refine import LearnedFallback
from wayveil.synthesis.routes.road_features import road_features


def truth(source, scope: Scope, grid: Grid) -> dict[str, np.ndarray]:
    """Exact densities: points, occupancy (1/n_T a point), end points."""
    fields = {name: np.zeros(grid.cells) for name in ("points", "occupancy", "end_points")}
    for batch in source.batches():
        seen = prepare(batch, scope)
        cell = grid.index(seen.x_m, seen.y_m)
        each = np.repeat(seen.points, seen.points)
        fields["points"] += np.bincount(cell, minlength=grid.cells)
        fields["occupancy"] += np.bincount(cell, 1 / each, minlength=grid.cells)
        some = seen.points > 0
        ends = cell[np.r_[seen.first[some], seen.last[some]]]
        fields["end_points"] += np.bincount(ends, minlength=grid.cells) / 2
    return {name: field.reshape(grid.rows, grid.columns) for name, field in fields.items()}


def jsd(p: np.ndarray, q: np.ndarray) -> float:
    """Jensen–Shannon divergence in nats."""
    p, q = p / p.sum(), q / q.sum()
    middle = (p + q) / 2
    parts = [np.sum(a[a > 0] * np.log(a[a > 0] / middle[a > 0])) for a in (p, q)]
    return float(0.5 * sum(parts))


def top_half_holds(estimate: np.ndarray, true: np.ndarray) -> float:
    """Share of the truth in the densest cells that hold half of the estimate."""
    order = np.argsort(-estimate.ravel())
    ahead = np.cumsum(estimate.ravel()[order]) <= 0.5 * estimate.sum()
    return float(true.ravel()[order][ahead].sum() / true.sum())


def coarsely(true: np.ndarray, found: np.ndarray) -> list[float]:
    """JSD at 20 and 64 cells, energy distance, spread along x and y as a share of the truth's."""
    spreads = [_deviation(found.sum(axis=axis)) / _deviation(true.sum(axis=axis)) for axis in (0, 1)]
    parts = [jsd(pool(true, side), pool(found, side)) for side in (20, 64)]
    return [round(value, 5) for value in (*parts, far(true, found, side=10) ** 2, *spreads)]


def _deviation(mass: np.ndarray) -> float:
    at = np.arange(len(mass))
    mean = mass @ at / mass.sum()
    return float(np.sqrt(mass @ (at - mean) ** 2 / mass.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--scope", required=True)
    parser.add_argument("--roads", type=Path)
    parser.add_argument("--noises", type=int, default=2)
    parser.add_argument("--weights", type=Path, help="other weights than the shipped ones")
    parser.add_argument("--alone", action="store_true", help="no other opinion pooled with the network")
    chosen = parser.parse_args()
    if chosen.weights:
        use_weights(chosen.weights)
    if chosen.alone:
        fields.pool_estimates = lambda own, others: own
        fields.with_blocks_of = lambda field, sums_of, side: field
    scope = read_scope(chosen.scope)
    grid = base_grid(scope)
    area = fields.cell_area(grid)
    source = open_source(chosen.data / f"{chosen.name}.parquet")
    true = truth(source, scope, grid)
    maps = [None] + ([road_features(read_roads(chosen.roads), grid, scope)] if chosen.roads else [])
    for epsilon in (0.1, 0.5, 1.0):
        for seed in range(1, chosen.noises + 1):
            release = measure(source, scope, epsilon=epsilon, unit=Unit.trajectory(), noise=SeededNoise(seed))
            count = max(float(release["count"].counts[0]), 1.0)
            levels = [
                noisy_levels([release[f"{field}/{part}"] for part in ("coarse", "detail")])
                for field in ("occupancy", "end_points")
            ]
            for roads in maps:
                row = {"name": chosen.name, "epsilon": epsilon, "seed": seed, "mapped": roads is not None}
                found = []
                for learned in (False, True):
                    began = time.process_time()
                    with warnings.catch_warnings(record=True) as said:
                        warnings.simplefilter("always", LearnedFallback)
                        found.append(fields.estimate_fields(fields.Grids(*levels, count, area, roads or ()), learned))
                    row["learned_cpu_s" if learned else "bayes_cpu_s"] = round(time.process_time() - began, 2)
                row["stepped_back"] = [str(note.message) for note in said]
                for name, which in (("points", 0), ("occupancy", 0), ("end_points", 1)):
                    row[name] = [round(jsd(true[name], both[which]), 4) for both in found]
                for name, which in (("occupancy", 0), ("end_points", 1)):
                    row[f"{name}_far"] = [coarsely(true[name], both[which]) for both in found]
                row["top_half_holds"] = [round(top_half_holds(both[0], true["occupancy"]), 3) for both in found]
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
