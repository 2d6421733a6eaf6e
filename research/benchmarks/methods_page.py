"""The charts and tables of all methods × datasets × ε, from finished cells of `wayveil bench utility`.

usage: python research/benchmarks/methods_page.py BENCH_DIR... [--charts docs/img] [--tables TABLES.md]

Several folders are combined; of cells that are in more than one, those of the last folder count, and ε at which only
wayveil was run is left out. The charts show the private methods. The tables have the same numbers, the published
modes, CPU seconds and peak memory, and the reason where a cell has no result.
"""

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from wayveil.evaluation.method_charts import FAMILIES, OTHERS, draw_chart, families

METRICS = ("length", "density_100", "endpoints_100", "trip_1000", "relation")
CHARTED = ("wayveil", "wayveil-map")
"""Our own methods in the charts."""
OURS = (*CHARTED, "wayveil-bayes", "wayveil-bayes-map")
NAMES = {"cabspotting": "Cabspotting", "geolife": "Geolife", "tdrive_partial": "T-Drive (partial)"}
PUBLISHED = "-published"
Key = tuple[str, str, float]


def read_cells(folders: list[Path]) -> tuple[dict[Key, list[dict[str, Any]]], dict[Key, str], dict[str, Any]]:
    """The runs of each (dataset, method, ε), why others have none, and the largest floor file of each dataset.

    "smaller" has the floors of every size, for methods that make fewer trajectories than the data has.
    """
    runs: dict[Key, list[dict[str, Any]]] = {}
    failed: dict[Key, str] = {}
    floors: dict[str, Any] = {}
    for folder in folders:
        found, none = defaultdict(list), {}
        for path in sorted((folder / "cells").glob("*.json")):
            cell, parts = json.loads(path.read_text()), path.stem.split("__")
            if parts[1] == "floor":
                size, kept = int(parts[2]), floors.setdefault(parts[0], {"size": 0, "smaller": {}})
                kept["smaller"][size] = cell["values"]
                if size >= kept["size"]:
                    kept |= {"size": size, **cell["values"]}
            elif "failed" in cell:
                none[parts[0], parts[1], float(parts[2].removeprefix("eps"))] = cell["failed"]
            else:
                found[cell["dataset"], cell["method"], float(cell["epsilon"])].append(cell)
        runs |= found
        failed = {key: why for key, why in (failed | none).items() if key not in runs}
    return runs, failed, floors


def tidy(runs: dict[Key, list[dict[str, Any]]], floors: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows as those of the comparison's own table, for the private methods."""
    return [
        {"dataset": NAMES.get(dataset, dataset), "method": method, "epsilon": epsilon, "metric": metric,
         "trajectories": cell["trajectories"], "value": cell["values"][metric], "floor": floors[dataset][metric]}
        for (dataset, method, epsilon), cells in sorted(runs.items())
        if cells[0]["private"] and (method in CHARTED or not method.startswith("wayveil"))
        for cell in cells
        for metric in METRICS
    ]  # fmt: skip


def order(methods: set[str]) -> list[str]:
    """Ours, then family by family, then the published modes in the same order."""
    plain = families(sorted(methods))
    listed = [name for family in (*FAMILIES, OTHERS) for name in plain.get(family, [])]
    listed += [name + PUBLISHED for name in listed]
    return [*(name for name in OURS if name in methods), *(name for name in listed if name in methods)]


def tables(runs: dict[Key, list[dict[str, Any]]], failed: dict[Key, str], floors: dict[str, Any]) -> str:
    """Every number, one table per dataset, then the cost."""
    datasets = [name for name in NAMES if name in floors] + sorted(set(floors) - set(NAMES))
    epsilons = sorted({epsilon for _, _, epsilon in runs})
    methods = order({method for _, method, _ in (*runs, *failed)})
    lines = [
        "# All methods", "",
        "ε = " + " / ".join(f"{e:g}" for e in epsilons) + ", one number each; scores in nats (`relation`: energy "
        "share), lower is better; means where there are several runs. Methods that end in *published* are not private. "
        "Made by `python research/benchmarks/methods_page.py` from finished cells of `wayveil bench utility`.", "",
    ]  # fmt: skip
    for dataset in datasets:
        lines += [f"## {NAMES.get(dataset, dataset)} ({floors[dataset]['size']:,} trajectories)", ""]
        lines += ["| method | " + " | ".join(METRICS) + " |", "|" + "---|" * (1 + len(METRICS))]
        lines.append("| *floor* | " + " | ".join(show(floors[dataset][metric]) for metric in METRICS) + " |")
        for method in methods:
            cells = [runs.get((dataset, method, e)) for e in epsilons]
            if any(cells):
                row = (" / ".join(mean(found, metric) for found in cells) for metric in METRICS)
                lines += fewer(next(filter(None, cells)), floors[dataset])
                lines.append(f"| {method} | " + " | ".join(row) + " |")
        lines.append("")
    lines += [*cost(runs, methods, datasets, epsilons), "", *ahead(runs), ""]
    lines += [f"- No result for {NAMES.get(d, d)}, {m}, ε = {e:g}: {why}." for (d, m, e), why in sorted(failed.items())]
    return "\n".join(lines).rstrip() + "\n"


def fewer(cells: list[dict[str, Any]], floor: dict[str, Any]) -> list[str]:
    """The row of a floor of its own, for a method that makes fewer trajectories than the data has."""
    size = cells[0]["trajectories"]
    if not 0 < size < floor["size"] or size not in floor["smaller"]:
        return []
    shown = (show(floor["smaller"][size][metric]) for metric in METRICS)
    return [f"| *floor of {size:,} trajectories, for the next row* | " + " | ".join(shown) + " |"]


def cost(
    runs: dict[Key, list[dict[str, Any]]], methods: list[str], datasets: list[str], epsilons: list[float]
) -> list[str]:
    """CPU seconds at each ε, and the largest peak."""
    lines = [
        "## CPU seconds and peak memory", "",
        "Seconds at each ε / largest peak in MB. The seconds are those of the method alone, on one core; the memory is "
        "that of its process, with Python, libraries, data and scoring.", "",
        "| method | " + " | ".join(NAMES.get(d, d) for d in datasets) + " |", "|" + "---|" * (1 + len(datasets)),
    ]  # fmt: skip
    for method in methods:
        row = []
        for dataset in datasets:
            found = [runs.get((dataset, method, e), []) for e in epsilons]
            seconds = ", ".join(f"{statistics.mean(c['cpu_s'] for c in one):.1f}" if one else "–" for one in found)
            peak = max((c.get("peak_mb") or 0 for one in found for c in one), default=0)
            row.append(f"{seconds} / {f'{peak:.0f}' if peak else '–'}" if any(found) else "–")
        lines.append(f"| {method} | " + " | ".join(row) + " |")
    return lines


def ahead(runs: dict[Key, list[dict[str, Any]]]) -> list[str]:
    """In how many cells wayveil without a map is ahead of every other private method, and where it is not."""
    judged, behind = 0, []
    for (dataset, method, epsilon), cells in sorted(runs.items()):
        if method != OURS[0]:
            continue
        others = {
            name: found
            for (of, name, at), found in runs.items()
            if (of, at) == (dataset, epsilon) and found[0]["private"] and not name.startswith(OURS[0])
        }
        for metric in METRICS if others else ():
            judged += 1
            score = {name: average(found, metric) for name, found in others.items()}
            best, ours = min(score, key=lambda name: score[name]), average(cells, metric)
            if score[best] < ours:
                where = f"{NAMES.get(dataset, dataset)}, {metric}, ε = {epsilon:g}"
                behind.append(f"- {where}: {best} {show(score[best])}, wayveil {show(ours)}")
    if not judged:
        return []
    lines = ["## wayveil against the collection", ""]
    lines += [f"wayveil without a map is ahead of every private method in {judged - len(behind)} of {judged} cells."]
    return [*lines, *(["", "The others:", "", *behind] if behind else [])]


def average(cells: list[dict[str, Any]], metric: str) -> float:
    return statistics.mean(cell["values"][metric] for cell in cells)


def mean(cells: list[dict[str, Any]] | None, metric: str) -> str:
    return show(average(cells, metric)) if cells else "–"


def show(value: float) -> str:
    return f"{value:.4f}".replace("0.", ".", 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, nargs="+")
    parser.add_argument("--charts", type=Path)
    parser.add_argument("--tables", type=Path)
    options = parser.parse_args()
    runs, failed, floors = read_cells(options.bench)
    if not runs:
        parser.error("the folders hold no finished cells; run `wayveil bench utility` first")
    # wayveil alone may have been run at more values of ε, and on more datasets.
    shared = {(dataset, epsilon) for dataset, method, epsilon in runs if not method.startswith(OURS[0])}
    runs = {key: cells for key, cells in runs.items() if key[0] in floors and (key[0], key[2]) in shared}
    if options.charts:
        for metric in METRICS:
            name = f"methods-{metric.replace('_', '-')}.png"
            draw_chart(tidy(runs, floors), metric, options.charts / name, private=False)
    text = tables(runs, failed, floors)
    if options.tables:
        options.tables.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
