"""What pooling three opinions on a map does to simulated cities: the network alone against the product's rule.

    python research/training/judge_pooling.py [--cities 1] [--first 12]

The families of `judge_blocks.py`, releases with a map only. JSD in nats at 1, 4, 16 and 64 cells, and `far`.
"""

import argparse
import os
from dataclasses import replace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from judge_blocks import FAMILIES, MEASURES, measures
from product import estimate_field
from samples import END_POINT_POWER, Release
from streets import KINDS
from unfamiliar import refined

from wayveil.synthesis.estimate.fields import END_POINTS, OCCUPANCY, on_a_map

SHOWN = MEASURES.index("far") + 1


def without_map(made: Release) -> Release:
    """The same noisy counts, estimated as if there were no map."""
    area = made.view.area
    occupancy = estimate_field(made.occupancy_levels, made.total, area)
    base = (occupancy / max(occupancy.max(), 1e-300)) ** END_POINT_POWER
    ends = estimate_field(made.end_levels, made.total, area, base=base, coarse_base=occupancy, neighbours=False)
    return replace(made, roads=None, occupancy=occupancy, end_points=ends)


def compared(made: Release) -> np.ndarray:
    """(field, alone or pooled, measure) of one release with a map."""
    alone = [part.field for part in refined(made)]
    unmapped = [part.field for part in refined(without_map(made))]
    sides = made.occupancy_levels[0].side, made.end_levels[0].side
    bayes, truth = (made.occupancy, made.end_points), (made.view.occupancy, made.view.end_points)
    rows = []
    for own, other, plain, side, rule, true in zip(
        alone, bayes, unmapped, sides, (OCCUPANCY, END_POINTS), truth, strict=True
    ):
        pooled = on_a_map(own, other, plain, side, rule)
        rows.append([measures(true, found)[:SHOWN] for found in (own, pooled)])
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cities", type=int, default=1, help="of each kind and family")
    parser.add_argument("--first", type=int, default=12, help="number of the first city of each kind")
    chosen = parser.parse_args()
    for family, releases in FAMILIES.items():
        found = []
        for number in range(chosen.first, chosen.first + chosen.cities):
            for kind in KINDS:
                found += [compared(made) for _, mapped, made in releases(kind, number) if mapped]
        for field, rows in zip(("occupancy", "end points"), np.mean(found, axis=0), strict=True):
            shown = " ".join(f"{a:.4f} → {b:.4f}" for a, b in zip(*rows, strict=True))
            print(f"{family}, {field}, {len(found)} releases: {shown}", flush=True)


if __name__ == "__main__":
    main()
