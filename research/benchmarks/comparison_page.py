"""The full table behind docs/explanation/comparison.md.

It is made of finished cells of `wayveil bench utility` and of the scores of the originals.

usage: python research/benchmarks/comparison_page.py REFERENCE.json BENCH_DIR [BENCH_DIR ...] > table.md
"""

import collections
import json
import sys
from collections.abc import Sequence
from pathlib import Path

METRICS = ("length", "density_100", "endpoints_100", "trip_1000", "relation")
OURS = {"wayveil": "wayveil", "wayveil-map": "wayveil, map"}
ORIGINALS = ("adatrace", "privtrace", "dptrajpm")
"""The excess is relative to the best of these, as in earlier tables; the cells ahead are counted against all."""
EPSILONS = tuple(k / 10 for k in range(1, 11))


def read_cells(folders: Sequence[str]) -> dict[tuple[str, str, float], dict[str, float]]:
    """Mean over seeds of each (dataset, method, ε)."""
    seeds = collections.defaultdict(list)
    for path in (path for folder in folders for path in sorted((Path(folder) / "cells").glob("*.json"))):
        cell = json.loads(path.read_text())
        if "values" in cell and "dataset" in cell:
            seeds[cell["dataset"], cell["method"], float(cell["epsilon"])].append(cell["values"])
    return {key: {m: sum(v[m] for v in runs) / len(runs) for m in METRICS} for key, runs in seeds.items()}


def show(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}".replace("0.", ".", 1)


def main(reference_path: str, *folders: str) -> None:
    cells = read_cells(folders)
    reference = json.loads(Path(reference_path).read_text())
    programs = {(r["dataset"], r["peer"], float(r["epsilon"])): r["scores"] for r in reference["runs"]}
    wins: collections.Counter[tuple[str, str]] = collections.Counter()
    judged: collections.Counter[tuple[str, str]] = collections.Counter()
    excess: dict[str, dict[str, list[float]]] = {name: {metric: [] for metric in METRICS} for name in OURS}
    for dataset in ("cabspotting", "geolife", "tdrive_partial"):
        floor = reference["floor"][dataset]
        peers = sorted({peer for data, peer, _ in programs if data == dataset})
        for metric in METRICS:
            print(f"\n**{dataset}, {metric}** (floor {show(floor[metric])})\n")
            head = ["ε", *OURS.values(), *peers]
            print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
            for epsilon in EPSILONS:
                ours = {name: cells.get((dataset, name, epsilon), {}).get(metric) for name in OURS}
                theirs = {name: programs.get((dataset, name, epsilon), {}).get(metric) for name in peers}
                known = {name: value for name, value in theirs.items() if value is not None}
                best, original = min(known.values()), min(known[name] for name in ORIGINALS if name in known)
                for name, value in ours.items():
                    if value is not None:
                        judged[name, dataset] += 1
                        wins[name, dataset] += value < best
                        if dataset != "tdrive_partial":
                            excess[name][metric].append((value - floor[metric]) / (original - floor[metric]))
                text = [f"**{show(v)}**" if v is not None and v < best else show(v) for v in ours.values()]
                print("| " + " | ".join([f"{epsilon:g}", *text, *map(show, theirs.values())]) + " |")
    print("\n| method | dataset | cells ahead of every program |\n|---|---|---|")
    for (name, dataset), count in sorted(judged.items()):
        print(f"| {name} | {dataset} | {wins[name, dataset]} of {count} |")
    for name, metrics in excess.items():
        means = {metric: sum(values) / len(values) for metric, values in metrics.items() if values}
        parts = ", ".join(f"{metric} {value:.3f}" for metric, value in means.items())
        if means:
            mean = sum(means.values()) / len(means)
            print(f"\nMean excess of {name} over Cabspotting and Geolife: {mean:.3f} ({parts}).")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
