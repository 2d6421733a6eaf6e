"""The charts and tables of all methods × datasets × ε, from finished cells of `wayveil bench utility`.

usage: python research/benchmarks/methods_page.py BENCH_DIR [--charts docs/img] [--tables TABLES.md] [--what WORDS]

One chart per headline metric: columns are datasets, rows are families of methods, both axes are logarithmic, the dashed
line is the floor, and wayveil is drawn in every panel. The tables have the same numbers, the published modes, CPU
seconds and peak memory. A dataset is shown once its floor is there. WORDS say what was run; they head the tables.
"""

import argparse
import collections
import json
import statistics
from pathlib import Path
from typing import Any

METRICS = ("length", "density_100", "endpoints_100", "trip_1000", "relation")
FAMILIES = {
    "grids and chains": ("adatrace", "privtrace", "dp-star", "ldptrace", "rejection"),
    "trees": ("n-gram", "prefix-tree", "safepath", "dpt", "dpapt"),
    "records": ("coordinate-noise", "distance-direction", "nearest-candidate", "generalised"),
}
OURS = "wayveil"
LOWEST = 1e-4
"""Scores below this are drawn here: `relation` may be negative, and the axis is logarithmic."""
Cells = dict[tuple[str, str, float], dict[str, Any]]


def read_cells(folder: Path) -> tuple[Cells, dict[str, dict[str, float]]]:
    """The mean over seeds of each (dataset, method, ε), and the floor of each dataset."""
    runs, floors = collections.defaultdict(list), {}
    for path in sorted((folder / "cells").glob("*.json")):
        cell = json.loads(path.read_text())
        if "__floor__" in path.name:
            floors[path.name.split("__")[0]] = cell["values"]
        elif "values" in cell:
            runs[cell["dataset"], cell["method"], float(cell["epsilon"])].append(cell)
    means = {}
    for key, found in runs.items():
        values = {m: statistics.mean(cell["values"][m] for cell in found) for m in METRICS}
        peaks = [cell["peak_mb"] for cell in found if cell.get("peak_mb")]
        cost = {"cpu_s": statistics.mean(cell["cpu_s"] for cell in found), "peak_mb": max(peaks, default=None)}
        means[key] = values | cost
    return means, floors


def draw(cells: Cells, floors: dict[str, dict[str, float]], metric: str, path: Path) -> None:
    """One chart of small multiples."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    datasets = sorted(floors)
    figure = Figure(figsize=(3.2 * len(datasets) + 2.2, 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(FAMILIES), len(datasets), squeeze=False, sharex=True, sharey="col")
    for row, (family, members) in zip(panels, FAMILIES.items()):
        for panel, dataset in zip(row, datasets):
            for position, method in enumerate((OURS, *members)):
                found = sorted((e, c[metric]) for (d, m, e), c in cells.items() if (d, m) == (dataset, method))
                style = {"color": "black", "linewidth": 2.2} if method == OURS else {"color": f"C{position - 1}"}
                x, y = [e for e, _ in found], [max(v, LOWEST) for _, v in found]
                panel.plot(x, y, marker="o", markersize=3, label=method, **style)
            if floors[dataset][metric] > LOWEST:
                panel.axhline(floors[dataset][metric], color="0.5", linestyle="--", linewidth=1, label="floor")
            panel.set(xscale="log", yscale="log")
            panel.set_xticks([0.1, 0.5, 1.0], ["0.1", "0.5", "1"])
            panel.minorticks_off()
            panel.grid(alpha=0.3)
        row[0].set_ylabel(f"{family}\n{metric}")
        handles, labels = row[0].get_legend_handles_labels()
        row[-1].legend(handles, labels, loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize="small", frameon=False)
    for panel, dataset in zip(panels[0], datasets):
        panel.set_title(dataset)
    for panel in panels[-1]:
        panel.set_xlabel("ε (log)")
    figure.savefig(path, dpi=80)


def tables(cells: Cells, floors: dict[str, dict[str, float]], what: str) -> str:
    """Every number, one table per dataset and metric, then the cost."""
    datasets = sorted(floors)
    epsilons = sorted({epsilon for _, _, epsilon in cells})
    names = [OURS, *(method for members in FAMILIES.values() for method in members)]
    names += [f"{name}-published" for name in names[1:]]
    lines = ["# All methods", "", what, ""]
    for dataset in datasets:
        for metric in METRICS:
            lines += [f"**{dataset}, {metric}** (floor {floors[dataset][metric]:.4f})", ""]
            head = " | ".join(f"ε = {e:g}" for e in epsilons)
            lines += [f"| method | {head} |", "|" + "---|" * (1 + len(epsilons))]
            for name in names:
                values = [cells.get((dataset, name, e), {}).get(metric) for e in epsilons]
                if any(value is not None for value in values):
                    shown = ("–" if value is None else f"{value:.4f}" for value in values)
                    lines.append(f"| {name} | " + " | ".join(shown) + " |")
            lines.append("")
    lines += ["**CPU seconds / peak memory in MB**, largest over ε; memory includes Python, libraries and scoring"]
    lines += ["", "| method | " + " | ".join(datasets) + " |", "|" + "---|" * (1 + len(datasets))]
    for name in names:
        row = []
        for dataset in datasets:
            found = [cell for (d, m, _), cell in cells.items() if (d, m) == (dataset, name)]
            peaks = [cell["peak_mb"] for cell in found if cell["peak_mb"]]
            row.append(f"{max(c['cpu_s'] for c in found):.1f} / {max(peaks, default=0):.0f}" if found else "–")
        if any(cell != "–" for cell in row):
            lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--charts", type=Path)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--what", default="")
    options = parser.parse_args()
    cells, floors = read_cells(options.bench)
    if options.charts:
        for metric in METRICS:
            draw(cells, floors, metric, options.charts / f"methods-{metric.replace('_', '-')}.png")
    text = tables(cells, floors, options.what)
    if options.tables:
        options.tables.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
