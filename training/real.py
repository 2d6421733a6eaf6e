"""The trained network's first sight of real data: JSD of Bayes and network against the true density at 100 m.

    python training/real.py --data FOLDER --name cabspotting --scope san-francisco --roads FOLDER/roads/sf_roads.parquet

Trusted side only: it reads private trajectories. It is run after training and nothing of it goes back into training.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from wayveil.formats.roads import read_roads
from wayveil.grid import Grid, base_grid
from wayveil.measure import measure
from wayveil.prepare import prepare
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.scope import Scope, read_scope
from wayveil.source import open_source
from wayveil.synthesis.estimate import cell_area, noisy_levels
from wayveil.synthesis.field import estimate_field
from wayveil.synthesis.learned.refine import refine
from wayveil.synthesis.road_features import road_features


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--scope", required=True)
    parser.add_argument("--roads", type=Path)
    parser.add_argument("--noises", type=int, default=2)
    chosen = parser.parse_args()
    scope = read_scope(chosen.scope)
    grid = base_grid(scope)
    area = cell_area(grid)
    source = open_source(chosen.data / f"{chosen.name}.parquet")
    true = truth(source, scope, grid)
    maps = [None] + ([road_features(read_roads(chosen.roads), grid, scope)] if chosen.roads else [])
    for epsilon in (0.1, 0.5, 1.0):
        for seed in range(1, chosen.noises + 1):
            release = measure(source, scope, epsilon=epsilon, unit=Unit.trajectory(), noise=SeededNoise(seed))
            total = max(float(release["count"].counts[0]), 1.0)
            levels, end_levels = noisy_levels(release, "occupancy"), noisy_levels(release, "end_points")
            for roads in maps:
                bayes = estimate_field(levels, total, area, features=roads or ())
                base = (bayes / bayes.max()) ** 1.5
                ends = estimate_field(end_levels, total, area, base=base, coarse_base=bayes, neighbours=False)
                began = time.process_time()
                better = refine(levels, total, area, bayes, kind="occupancy", road_features=roads)
                better_ends = refine(
                    end_levels, total, area, ends, kind="end_points", occupancy=better.field, road_features=roads
                )
                row = {
                    "name": chosen.name, "epsilon": epsilon, "seed": seed, "mapped": roads is not None,
                    "side": levels[-1].side, "shares": [better.share, better_ends.share],
                    "refine_cpu_s": round(time.process_time() - began, 2),
                }  # fmt: skip
                for name, before, after in (
                    ("points", bayes, better.field),
                    ("occupancy", bayes, better.field),
                    ("end_points", ends, better_ends.field),
                ):
                    row[name] = [round(jsd(true[name], estimate), 4) for estimate in (before, after)]
                row["top_half_holds"] = [round(top_half_holds(f, true["occupancy"]), 3) for f in (bayes, better.field)]
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
