"""The output of a comparison: a tidy table, the table of wins, and one plot per metric."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wayveil.evaluation.score import METRICS
from wayveil.io.atomic import atomic_path

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]


def means(rows: list[Row]) -> dict[tuple[str, float, str], dict[str, float]]:
    """(dataset, epsilon, metric) -> method -> mean over the seeds."""
    values: dict[tuple[str, float, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        values[row["dataset"], row["epsilon"], row["metric"]][row["method"]].append(row["value"])
    return {key: {name: float(np.mean(found)) for name, found in by.items()} for key, by in values.items()}


def wins(rows: list[Row]) -> list[Row]:
    """One row per (method, metric): in how many (dataset, epsilon) cells the method is the best private one.

    Methods that are not private are excluded: a copy of the data would win everywhere. A tie counts for each method.
    """
    private = [row for row in rows if row["private"]]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    won: Counter[tuple[str, str]] = Counter()
    cells: Counter[tuple[str, str]] = Counter()
    for (_, _, metric), by in means(private).items():
        sign = -1.0 if METRICS[metric].higher_is_better else 1.0
        best = min(sign * value for value in by.values())
        for method, value in by.items():
            cells[method, metric] += 1
            won[method, metric] += sign * value == best
    methods = list(dict.fromkeys(row["method"] for row in private))
    return [
        {"method": method, "metric": metric, "won": won[method, metric], "cells": cells[method, metric]}
        for method in methods
        for metric in metrics
    ]


def wins_table(rows: list[Row]) -> "Table":
    """The table of wins for a terminal."""
    from rich.table import Table

    found = wins(rows)
    table = Table(title="Cells won, of (dataset, epsilon), among the private methods")
    table.add_column("method")
    metrics = list(dict.fromkeys(row["metric"] for row in found))
    for metric in metrics:
        table.add_column(metric, justify="right")
    for method in dict.fromkeys(row["method"] for row in found):
        mine = {row["metric"]: row for row in found if row["method"] == method}
        table.add_row(method, *[f"{mine[metric]['won']} of {mine[metric]['cells']}" for metric in metrics])
    return table


def write_outputs(rows: list[Row], folder: Path) -> list[str]:
    """results.parquet, results.csv, wins.csv and <metric>.png; their names.

    Privacy: not private (trusted side only).
    """
    if not rows:
        return []
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    tables = {"results": pa.Table.from_pylist(rows), "wins": pa.Table.from_pylist(wins(rows))}
    written = ["results.parquet"]
    with atomic_path(folder / "results.parquet", private=True) as part:
        pyarrow.parquet.write_table(tables["results"], part)
    for name, table in tables.items():
        with atomic_path(folder / f"{name}.csv", private=True) as part:
            pyarrow.csv.write_csv(table, part)
        written.append(f"{name}.csv")
    for metric in dict.fromkeys(row["metric"] for row in rows):
        _picture([row for row in rows if row["metric"] == metric], metric, folder / f"{metric}.png")
        written.append(f"{metric}.png")
    return written


def _picture(rows: list[Row], metric: str, path: Path) -> None:
    """Epsilon on the x axis, one panel per dataset, one line per method, the floor in grey."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    datasets, methods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("dataset", "method"))
    private = {row["method"]: row["private"] for row in rows}
    average = means(rows)
    figure = Figure(figsize=(4.2 * len(datasets) + 1.6, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(datasets), squeeze=False)[0]
    for panel, dataset in zip(panels, datasets):
        epsilons = sorted({row["epsilon"] for row in rows if row["dataset"] == dataset})
        for position, method in enumerate(methods):
            points = [(e, average[dataset, e, metric].get(method)) for e in epsilons]
            known = [(e, value) for e, value in points if value is not None]
            style = {"linestyle": "-" if private[method] else ":", "color": f"C{position}", "marker": "o"}
            label = method if private[method] else f"{method} (not private)"
            panel.plot([e for e, _ in known], [v for _, v in known], markersize=3, label=label, **style)
        # Most methods generate as many trajectories as the data has, so the floor is plotted for that size.
        largest = max(row["trajectories"] for row in rows if row["dataset"] == dataset)
        floor = next(r["floor"] for r in rows if r["dataset"] == dataset and r["trajectories"] == largest)
        panel.axhline(floor, color="0.5", linewidth=1, label="floor")
        panel.set(title=dataset, xlabel="epsilon", ylabel=metric)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    with atomic_path(path, private=True) as part:
        figure.savefig(part, format="png", dpi=110)
