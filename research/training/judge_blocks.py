"""What users get, on simulated cities, in large blocks too: which weights, and how far to go back to Bayesian sums.

    python research/training/judge_blocks.py [--weights FILE ...] [--cities 2] [--workers 15] [--out FILE]

Three families: the 30 validation cities of `judge.py`, held-out cities under roaming scopes (384 cells a side, 20,000
trips or 5,000 hours), and untidy ones under such scopes (ends beside the streets, maps that say less). `net` is the
guarded network; `net 0.5` and `net 1.0` have their block sums moved that share of the way to the Bayesian ones.
JSD in nats at 1, 4, 16 and 64 cells; `far`, the root of the energy distance; the spread as a share
of the truth's.
"""

import argparse
import json
import multiprocessing
import os
from functools import cache, partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from judge import keep_blocks, use_weights
from product import WEIGHTS_FILE, pool
from samples import Release, roaming_releases, validation_releases
from streets import KINDS
from unfamiliar import jsd, refined

SIDES = (1, 4, 16, 64)
SHARES = (0.0, 0.5, 1.0)
FAMILIES = {
    "roaming": roaming_releases,
    "validation": validation_releases,
    "untidy": partial(roaming_releases, untidy=True),
}
MEASURES = (*(f"jsd{side}" for side in SIDES), "far", "spread", "spread_error")


def far(p: np.ndarray, q: np.ndarray, side: int = 8) -> float:
    """Root of the energy distance −Σ d_i·d_j·|x_i − x_j| / Σ p_i·q_j·|x_i − x_j| with d = p − q, on blocks of cells."""
    a, b = (pool(field / field.sum(), side) for field in (p, q))
    distance = _distances(a.shape)
    gap = (a - b).ravel()
    return float(np.sqrt(max(-(gap @ distance @ gap), 0.0) / (a.ravel() @ distance @ b.ravel())))


@cache
def _distances(shape: tuple[int, int]) -> np.ndarray:
    y, x = np.mgrid[: shape[0], : shape[1]].reshape(2, -1).astype(float)
    return np.hypot(x[:, None] - x, y[:, None] - y)


def deviation(field: np.ndarray) -> float:
    """Root mean square distance from the mean, in cells."""
    total, squares = field.sum(), 0.0
    for axis in (0, 1):
        mass, at = field.sum(axis=1 - axis), np.arange(field.shape[axis])
        squares += (mass @ at**2) / total - ((mass @ at) / total) ** 2
    return float(np.sqrt(squares))


def measures(true: np.ndarray, found: np.ndarray) -> list[float]:
    """In the order of `MEASURES`."""
    ratio = deviation(found) / max(deviation(true), 1e-9)
    return [*(jsd(pool(true, side), pool(found, side)) for side in SIDES), far(true, found), ratio, abs(ratio - 1)]


def variants(made: Release, weights: list[Path | None]):
    """(name, occupancy, end points) of Bayes and of each file of weights with each share of the Bayesian sums."""
    bayes = made.occupancy, made.end_points
    yield "bayes", bayes
    sides = made.occupancy_levels[0].side, made.end_levels[0].side
    for path in weights:
        use_weights(path or WEIGHTS_FILE)
        fields = [part.field for part in refined(made)]
        for share in SHARES:
            moved = [keep_blocks(*each, share) for each in zip(fields, bayes, sides, strict=True)]
            yield f"{path.parent.name + '/' + path.stem if path else 'shipped'} {share}", tuple(moved)


def rows_of(task: tuple[str, str, int, list[Path | None]]) -> list[dict]:
    """One row a release, field and variant."""
    family, kind, number, weights = task
    rows = []
    for epsilon, mapped, made in FAMILIES[family](kind, number):
        hours = number % 3 == 2 if family == "validation" else number % 2 == 1
        truth = made.view.occupancy, made.view.end_points
        for name, fields in variants(made, weights):
            for field, true, found in zip(("occupancy", "end_points"), truth, fields, strict=True):
                rows.append({
                    "family": family, "kind": kind, "number": number, "hours": hours, "epsilon": epsilon,
                    "mapped": mapped, "field": field, "variant": name, "measures": measures(true, found),
                })  # fmt: skip
    return rows


def table(rows: list[dict]) -> str:
    """By family, field and map: one line a variant with the means over cities and ε, `far` by ε as well."""
    lines = []
    for family in dict.fromkeys(r["family"] for r in rows):
        for field in ("occupancy", "end_points"):
            for mapped in (False, True):
                same = [r for r in rows if (r["family"], r["field"], r["mapped"]) == (family, field, mapped)]
                lines.append(f"{family}, {field}, {'map' if mapped else 'no map'}: " + " ".join(MEASURES)
                             + " | far at each epsilon | hours: jsd1 far")  # fmt: skip
                for name in dict.fromkeys(r["variant"] for r in same):
                    part = [r for r in same if r["variant"] == name]
                    lines.append(f"  {name:24s}" + _means(part))
    return "\n".join(lines)


def _means(part: list[dict]) -> str:
    place = MEASURES.index("far")
    text = " ".join(f"{value:7.4f}" for value in np.mean([r["measures"] for r in part], axis=0)) + " |"
    for epsilon in sorted({r["epsilon"] for r in part}):
        text += f" {np.mean([r['measures'][place] for r in part if r['epsilon'] == epsilon]):6.4f}"
    hours = [r["measures"] for r in part if r["hours"]]
    if hours:
        text += f" | {np.mean(hours, axis=0)[0]:6.4f} {np.mean(hours, axis=0)[place]:6.4f}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, action="append", help="other weights beside the shipped ones")
    parser.add_argument("--without-shipped", action="store_true")
    parser.add_argument("--cities", type=int, default=3, help="of each kind and family")
    parser.add_argument("--first", type=int, default=0, help="number of the first city of each kind")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file for the rows")
    chosen = parser.parse_args()
    weights = ([] if chosen.without_shipped else [None]) + (chosen.weights or [])
    tasks = [
        (family, kind, number, weights)
        for number in range(chosen.first, chosen.first + chosen.cities)
        for family in FAMILIES
        for kind in KINDS
    ]
    rows = []
    with multiprocessing.get_context("spawn").Pool(chosen.workers) as workers:
        for part in workers.imap(rows_of, tasks):
            rows += part
    if chosen.out:
        chosen.out.write_text(json.dumps(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
