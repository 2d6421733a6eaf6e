"""The comparison experiment: DPE against AdaTrace, PrivTrace and the sound method on three datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wayveil.dpe.kernel import on_gpu
from wayveil.errors import InputError
from wayveil.io.outputs import check_outputs
from wayveil.progress import Progress, quiet
from wayveil.reproduction.cases import METRICS, Dataset, Part, loaded, rows_of
from wayveil.reproduction.methods import Method, RunSettings, chosen_methods
from wayveil.reproduction.tables import Row, new_figure, ready_folder, save_figure, write_table

PAPER_METRICS = {"length": "length density error", "density_100": "trajectory density error", "trip_100": "trip error"}
CPU_SUBSET = 500
"""Trajectories of each dataset without a GPU: DPE compares all pairs."""
QUICK_SUBSET = 300
"""The same with `--quick`."""
NOTES = (
    "JSD in nats, cells of 100 m and 400 length bins as in the paper. The floor is what a fresh sample of the same "
    "population would score; a score clearly below it means copied records, not better utility.",
    "DPE is not differentially private; its points hardly move (moved_m), so it scores like its own input.",
)


DATASETS = (
    Dataset("Cabspotting", ("cabspotting.parquet", "cabspotting.csv", "cabspotting"), "san-francisco", 0.1),
    Dataset("T-Drive", ("tdrive.parquet", "tdrive.csv", "tdrive"), "beijing", 0.05),
    Dataset("T-Drive (partial)", ("tdrive_partial.parquet",), "beijing", 0.05),
    Dataset("Geolife", ("geolife.parquet", "geolife.csv", "geolife"), "beijing", 0.8),
)
"""The datasets of the comparison and the names that their files may have."""


def found_datasets(folder: Path) -> list[tuple[Dataset, Path]]:
    """The datasets in the folder; at least one."""
    found = [(dataset, folder / name) for dataset in DATASETS for name in dataset.files if (folder / name).exists()]
    first = {dataset.label: (dataset, path) for dataset, path in reversed(found)}
    if "T-Drive" in first:
        first.pop("T-Drive (partial)", None)
    if not first:
        names = ", ".join(dataset.files[0] for dataset in DATASETS)
        raise InputError(f"The data folder contains none of {names}; see docs/explanation/reproduction.md.")
    return [first[dataset.label] for dataset in DATASETS if dataset.label in first]


def run(
    data_folder: Path,
    folder: Path,
    *,
    methods: str | None = None,
    subset: int | None = None,
    iterations: int | None = None,
    time_scale_mps: float | None = None,
    seed: int = 1,
    jobs: int = 1,
    quick: bool = False,
    progress: Progress = quiet,
) -> list[Row]:
    """Run all methods on all datasets and epsilons; write tables and pictures, and return the rows.

    Uses all trajectories on a GPU and a random subset on a CPU; the table shows how many. With `jobs` above 1 the
    private methods run in that many processes, next to the published one; the rows are the same.

    Privacy: not private (trusted side only).
    """
    table = chosen_methods(methods)
    datasets = found_datasets(data_folder)
    if jobs < 1:
        raise InputError("jobs= must be 1 or more.")
    if iterations is not None and iterations < 1:
        raise InputError("iterations= must be 1 or more.")
    if subset is not None and subset < 2:
        raise InputError("subset= must be 2 or more.")
    check_outputs([folder / "table.json", folder / "table.csv"], inputs=[path for _, path in datasets])
    ready_folder(folder)
    epsilons = [0.1, 0.5, 1.0] if quick else [round(0.1 * k, 1) for k in range(1, 11)]
    size = subset or (QUICK_SUBSET if quick else None if on_gpu() else CPU_SUBSET)
    iterations = iterations or (30 if quick else 100)
    parts = [
        Part(dataset, path, size, RunSettings(dataset.learning_rate, iterations, time_scale_mps, seed))
        for dataset, path in datasets
    ]
    cases = [(part, epsilon, name) for part in parts for epsilon in epsilons for name in table]
    rows = rows_of(cases, jobs, progress)
    lines = [_extent(part) for part in parts]
    settings = {
        "subset": size or "all", "iterations": iterations, "seed": seed, "quick": quick,
        "time_scale_mps": time_scale_mps if time_scale_mps is not None else "map diameter / time span",
        "learning_rates": {dataset.label: dataset.learning_rate for dataset, _ in datasets},
    }  # fmt: skip
    write_table(folder, "comparison", settings, rows, (*NOTES, *lines))
    for name, metrics in (("comparison", tuple(PAPER_METRICS)), ("comparison-more", METRICS[3:])):
        save_figure(_picture(rows, metrics, table, size), folder, name)
    return rows


def _extent(part: Part) -> str:
    """How much of the dataset was used, in one line."""
    counts = np.diff(loaded(part)[0].offsets)
    n = int(counts.max())
    who = f"{'all' if part.size is None else 'a random subset of'} {len(counts):,} trajectories"
    return f"{part.dataset.label}: {who}, all their points, aligned to {n} points (D = {3 * n})."


def _picture(rows: list[Row], metrics: tuple[str, ...], table: dict[str, Method], size: int | None) -> Any:
    labels = list(dict.fromkeys(row["dataset"] for row in rows))
    figure, axes = new_figure(len(labels), len(metrics), (5.2 * len(metrics), 3.6 * len(labels)))
    colours = dict(zip(table, ("#c1121f", "#f08a24", "#6a4c93", "#1982c4", "#1b7f3b")))
    for row_of_axes, label in enumerate(labels):
        for column, metric in enumerate(metrics):
            axis = axes[row_of_axes][column]
            own = [row for row in rows if row["dataset"] == label]
            for name, method in table.items():
                series = [(row["epsilon"], row[metric]) for row in own if row["method"] == name]
                style = "-" if method.private else "--"
                axis.plot(*zip(*series), "o" + style, color=colours[name], markersize=4, label=method.label)
            axis.axhline(own[0][f"floor_{metric}"], color="black", linewidth=1, linestyle=":", label="floor")
            axis.set_title(f"{label}: {PAPER_METRICS.get(metric, metric)}", fontsize=11)
            axis.set_xlabel("ε")
            lowest = min(row[metric] for row in own)  # `relation` is unbiased and can fall below 0
            axis.set_ylim(bottom=1.5 * min(lowest, 0.0))
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 6), fontsize=9)
    who = "all trajectories" if size is None else f"random subsets of {size} trajectories"
    figure.suptitle(f"JSD in nats, {who}. Dashed methods are not private; below the dotted floor means copied records.")
    return figure
