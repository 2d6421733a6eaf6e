"""What users get, on simulated validation cities: Bayes, the guarded network, and ways to combine the two.

    python research/training/judge.py [--weights FILE] [--cities 3] [--json FILE]

JSD in nats at one cell and on blocks of 4 and of 16 cells, mean over cities. `net` is the guarded network, `mean` its
geometric mean with Bayes, `+kept` either with Bayesian block sums; end points are given the occupancy of the same name.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from product import Observed, features, pool, refine, spread
from samples import VALIDATION_EPSILONS, Release, validation_releases
from streets import KINDS
from unfamiliar import jsd
from validate import top_half_holds

SIDES = (1, 4, 16)


def keep_blocks(field: np.ndarray, sums_of: np.ndarray, side: int, share: float = 1.0) -> np.ndarray:
    """Block sums moved towards another's; all of the way, the product's `with_blocks_of`, which a test compares."""
    mine, theirs = pool(field, side), pool(sums_of, side)
    factor = np.divide(theirs, mine, out=np.ones_like(mine), where=(mine > 0) & (theirs > 0)) ** share
    kept = field * spread(factor, side, field.shape)
    return kept * (sums_of.sum() / max(kept.sum(), 1e-300))


def variants(made: Release) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Occupancy and end points under each name."""
    roads, area, total = made.roads, made.view.area, made.total
    levels, end_levels = made.occupancy_levels, made.end_levels
    ends_beside = features.inputs_for_occupancy(end_levels, made.end_points, area)
    observed = Observed(levels, total, area, roads)
    net = refine(observed, made.occupancy, kind="occupancy", other_field=ends_beside).field
    found = {"net": net, "mean": np.sqrt(net * made.occupancy)}
    found |= {f"{name}+kept": keep_blocks(field, made.occupancy, levels[0].side) for name, field in found.items()}
    if roads is None:
        found = {name: field for name, field in found.items() if "mean" not in name}
    results = {"bayes": (made.occupancy, made.end_points)}
    for name, occupancy in found.items():
        other_field = features.inputs_for_end_points(occupancy, area)
        ends = refine(
            Observed(end_levels, total, area, roads), made.end_points, kind="end_points", other_field=other_field
        ).field
        if "kept" in name:
            ends = keep_blocks(ends, made.end_points, end_levels[0].side)
        results[name] = occupancy, ends
    return results


def rows_of(kind: str, number: int):
    """One row a release, field and variant."""
    for epsilon, mapped, made in validation_releases(kind, number):
        for name, fields in variants(made).items():
            for field, true, found in zip(
                ("occupancy", "end_points"), (made.view.occupancy, made.view.end_points), fields, strict=True
            ):
                yield {
                    "kind": kind, "hours": number % 3 == 2, "epsilon": epsilon, "mapped": mapped, "field": field,
                    "variant": name, "jsd": [jsd(pool(true, side), pool(found, side)) for side in SIDES],
                    "top_half_holds": top_half_holds(np.log(np.maximum(found, 1e-300)), true),
                }  # fmt: skip


def table(rows: list[dict]) -> str:
    """By field, map and trips or hours: one line a variant, JSD at ε = .1, .5 and 1 for each size of block."""
    lines = []
    for field in ("occupancy", "end_points"):
        for mapped in (False, True):
            for hours in (False, True):
                lines.append(f"{field}, {'map' if mapped else 'no map'}, {'hours' if hours else 'trips'}")
                same = [r for r in rows if (r["field"], r["mapped"], r["hours"]) == (field, mapped, hours)]
                for name in dict.fromkeys(r["variant"] for r in same):
                    text = f"  {name:12s}"
                    for k in range(len(SIDES)):
                        for epsilon in VALIDATION_EPSILONS:
                            part = [r["jsd"][k] for r in same if r["variant"] == name and r["epsilon"] == epsilon]
                            text += f" {np.mean(part):6.4f}"
                        text += "  |"
                    held = [r["top_half_holds"] for r in same if r["variant"] == name]
                    lines.append(f"{text} top half {np.mean(held):5.3f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, help="other weights than the shipped ones")
    parser.add_argument("--cities", type=int, default=3, help="of each kind")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    if chosen.weights:
        use_weights(chosen.weights)
    rows = []
    for number in range(chosen.cities):
        for kind in KINDS:
            rows += rows_of(kind, number)
            if chosen.json:
                chosen.json.write_text(json.dumps(rows))
    print(table(rows))


def use_weights(path: Path) -> None:
    """Let the product use a file that is not the pinned one."""
    from wayveil.synthesis.estimate.learned import refine as product_refine

    with np.load(path) as file:
        arrays = {name: file[name].astype(np.float32) for name in file.files}

    def load(kind: str, gaussian: bool = False) -> dict[str, np.ndarray]:
        return {name.split("/", 1)[1]: value for name, value in arrays.items() if name.startswith(kind + "/")}

    product_refine.load_weights = load


if __name__ == "__main__":
    main()
