"""The output of a comparison: a tidy table, the table of wins, and one chart per metric."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wayveil.evaluation.all_metrics import METRICS
from wayveil.evaluation.method_charts import draw_chart, means
from wayveil.io.atomic import atomic_path

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]


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
        scores = {row["metric"]: row for row in found if row["method"] == method}
        table.add_row(method, *[f"{scores[metric]['won']} of {scores[metric]['cells']}" for metric in metrics])
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
        draw_chart(rows, metric, folder / f"{metric}.png")
        written.append(f"{metric}.png")
    return written
