"""The full table behind docs/explanation/comparison.md.

It is made of finished cells of `wayveil bench utility` and of the scores of the originals.

usage: python research/benchmarks/comparison_page.py BENCH_DIR REFERENCE.json > table.md
"""

import collections
import json
import sys
from pathlib import Path

METRICS = ("length", "density_100", "endpoints_100", "trip_1000", "relation")
OURS = ("wayveil", "wayveil-map", "wayveil-bayes", "wayveil-bayes-map")
BASELINES = ("adatrace-published", "privtrace-published", "adatrace", "privtrace")
ORIGINALS = ("adatrace", "privtrace", "dptrajpm")
EPSILONS = tuple(k / 10 for k in range(1, 11))


def read_cells(folder: Path) -> dict[tuple[str, str, float], dict[str, float]]:
    """Mean over seeds of each (dataset, method, ε)."""
    seeds = collections.defaultdict(list)
    for path in sorted((folder / "cells").glob("*.json")):
        cell = json.loads(path.read_text())
        if "values" in cell and "dataset" in cell:
            seeds[cell["dataset"], cell["method"], float(cell["epsilon"])].append(cell["values"])
    return {key: {m: sum(v[m] for v in runs) / len(runs) for m in METRICS} for key, runs in seeds.items()}


def show(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}".replace("0.", ".", 1)


def main(folder: str, reference_path: str) -> None:
    cells = read_cells(Path(folder))
    reference = json.loads(Path(reference_path).read_text())
    originals = {(r["dataset"], r["peer"], float(r["epsilon"])): r["scores"] for r in reference["runs"]}
    wins: collections.Counter[tuple[str, str]] = collections.Counter()
    judged: collections.Counter[tuple[str, str]] = collections.Counter()
    excess = collections.defaultdict(list)
    others = [*(f"our {name}" for name in BASELINES), *(f"{name} (own code)" for name in ORIGINALS)]
    head = ["ε", "ours", "ours, map", "Bayes", "Bayes, map", *others]
    for dataset in ("cabspotting", "geolife", "tdrive_partial"):
        floor = reference["floor"][dataset]
        for metric in METRICS:
            print(f"\n**{dataset}, {metric}** (floor {show(floor[metric])})\n")
            print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
            for epsilon in EPSILONS:
                ours = [cells.get((dataset, name, epsilon), {}).get(metric) for name in OURS]
                base = [cells.get((dataset, name, epsilon), {}).get(metric) for name in BASELINES]
                peer = [originals.get((dataset, name, epsilon), {}).get(metric) for name in ORIGINALS]
                best = min(value for value in peer if value is not None)
                for name, value in zip(OURS, ours):
                    if value is not None:
                        judged[name, dataset] += 1
                        wins[name, dataset] += value < best
                        if dataset != "tdrive_partial":
                            excess[name].append((value - floor[metric]) / (best - floor[metric]))
                text = [f"**{show(v)}**" if v is not None and v < best else show(v) for v in ours]
                print("| " + " | ".join([f"{epsilon:g}", *text, *map(show, base), *map(show, peer)]) + " |")
    print("\n| method | dataset | cells ahead of every original |\n|---|---|---|")
    for (name, dataset), count in sorted(judged.items()):
        print(f"| {name} | {dataset} | {wins[name, dataset]} of {count} |")
    for name, values in excess.items():
        print(f"\nMean excess of {name} over Cabspotting and Geolife: {sum(values) / len(values):.2f}.")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
