"""The comparison experiment: DPE against AdaTrace, PrivTrace and the sound method on three datasets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wayveil.errors import InputError
from wayveil.paper.experiments.methods import Method, RunSettings, chosen_methods
from wayveil.paper.experiments.tables import Row, new_figure, ready_folder, save_figure, write_table
from wayveil.paper.frame import random_subset
from wayveil.paper.kernel import on_gpu
from wayveil.progress import Progress, quiet
from wayveil.trajectories import Trajectories

METRICS = ("length", "density_100", "trip_100", "endpoints_100", "trip_1000", "relation")
PAPER_METRICS = {"length": "length density error", "density_100": "trajectory density error", "trip_100": "trip error"}
CPU_SUBSET = 500
QUICK_SUBSET = 300
NOTES = (
    "JSD in nats, cells of 100 m and 400 length bins as in the paper. The floor is what a fresh, honest sample of the "
    "same population would score; a score clearly below it means copied records, not better utility.",
    "DPE is not differentially private; its points hardly move (moved_m), so it scores like its own input.",
)


@dataclass(frozen=True)
class Dataset:
    """A dataset of the paper: its label, possible file names, shipped scope, and the paper's learning rate."""

    label: str
    files: tuple[str, ...]
    scope: str
    learning_rate: float


DATASETS = (
    Dataset("Cabspotting", ("cabspotting.parquet", "cabspotting.csv", "cabspotting"), "san-francisco", 0.1),
    Dataset("T-Drive", ("tdrive.parquet", "tdrive.csv", "tdrive"), "beijing", 0.05),
    Dataset("T-Drive (partial)", ("tdrive_partial.parquet",), "beijing", 0.05),
    Dataset("Geolife", ("geolife.parquet", "geolife.csv", "geolife"), "beijing", 0.8),
)


def found_datasets(folder: Path) -> list[tuple[Dataset, Path]]:
    """The datasets that the folder holds; at least one."""
    found = [
        (dataset, folder / name)
        for dataset in DATASETS
        for name in dataset.files
        if (folder / name).exists()
    ]
    first = {dataset.label: (dataset, path) for dataset, path in reversed(found)}
    if "T-Drive" in first:
        first.pop("T-Drive (partial)", None)
    if not first:
        names = ", ".join(dataset.files[0] for dataset in DATASETS)
        raise InputError(f"The data folder holds none of {names}; see docs/reproduction.md.")
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
    quick: bool = False,
    progress: Progress = quiet,
) -> list[Row]:
    """Run all methods on all datasets and epsilons; write tables and pictures, and return the rows.

    All trajectories where jax sees a GPU, a random subset on a CPU; the table says how many, rounded.

    Privacy: not private (trusted side only).
    """
    from wayveil import formats
    from wayveil.scope import read_scope

    table = chosen_methods(methods)
    datasets = found_datasets(data_folder)
    ready_folder(folder)
    epsilons = [0.1, 0.5, 1.0] if quick else [round(0.1 * k, 1) for k in range(1, 11)]
    size = subset or (QUICK_SUBSET if quick else None if on_gpu() else CPU_SUBSET)
    iterations = iterations or (30 if quick else 100)
    rows: list[Row] = []
    total = len(datasets) * len(epsilons) * len(table)
    for dataset, path in datasets:
        scope = read_scope(dataset.scope)
        data = formats.read(path)
        data = data if size is None else random_subset(data, size, seed)
        how = RunSettings(dataset.learning_rate, iterations, time_scale_mps, seed)
        rows += _one_dataset(dataset, data, scope, epsilons, table, how, (len(rows), total), progress)
    settings = {
        "subset": size or "all", "iterations": iterations, "seed": seed, "quick": quick,
        "time_scale_mps": time_scale_mps if time_scale_mps is not None else "map diameter / time span",
        "learning_rates": {dataset.label: dataset.learning_rate for dataset, _ in datasets},
    }  # fmt: skip
    write_table(folder, "comparison", settings, rows, NOTES)
    for name, metrics in (("comparison", tuple(PAPER_METRICS)), ("comparison-more", METRICS[3:])):
        save_figure(_picture(rows, metrics, table, size), folder, name)
    return rows


def _one_dataset(
    dataset: Dataset, data: Trajectories, scope: Any, epsilons: list[float], table: dict[str, Method],
    how: RunSettings, place: tuple[int, int], progress: Progress,
) -> list[Row]:  # fmt: skip
    from wayveil.evaluation import METRICS as functions
    from wayveil.evaluation import floors, project

    real = project(data, scope)
    floor = floors(real, scope, len(data), METRICS)
    rows: list[Row] = []
    for epsilon in epsilons:
        for name, method in table.items():
            begin = time.perf_counter()
            made = method.run(data, scope, epsilon, how, quiet)
            seconds = time.perf_counter() - begin
            paths = project(made, scope)
            row: dict[str, Any] = {"dataset": dataset.label, "method": name, "private": method.private,
                                   "epsilon": epsilon}  # fmt: skip
            row |= {metric: round(float(functions[metric](real, paths)), 5) for metric in METRICS}
            row |= {f"floor_{metric}": round(float(floor[metric]), 5) for metric in METRICS}
            row["moved_m"] = round(_moved_m(real, paths), 2) if name.startswith("dpe") else ""
            row["seconds"] = round(seconds, 2)
            rows.append(row)
            progress(f"comparison, {dataset.label}", (place[0] + len(rows)) / place[1])
    return rows


def _moved_m(real: Any, made: Any) -> float:
    """Mean distance between each point and the original that it was made from."""
    return float(np.hypot(made.x_m - real.x_m, made.y_m - real.y_m).mean())


def _picture(rows: list[Row], metrics: tuple[str, ...], table: dict[str, Method], size: int | None) -> Any:
    labels = list(dict.fromkeys(row["dataset"] for row in rows))
    figure, axes = new_figure(len(labels), len(metrics), (5.2 * len(metrics), 3.6 * len(labels)))
    colours = dict(zip(table, ("#c1121f", "#f08a24", "#6a4c93", "#1982c4", "#1b7f3b")))
    for line, label in enumerate(labels):
        for column, metric in enumerate(metrics):
            axis = axes[line][column]
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
