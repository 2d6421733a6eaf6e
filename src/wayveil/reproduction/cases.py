"""The comparison's rows, one method on one dataset at one epsilon each, in this process or in several."""

from __future__ import annotations

import functools
import multiprocessing
import os
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wayveil import evaluation
from wayveil.core.trajectories import Trajectories
from wayveil.dpe.coordinates import random_subset
from wayveil.evaluation import floors, project
from wayveil.io import files
from wayveil.io.scope_files import read_scope
from wayveil.progress import Progress, quiet
from wayveil.reproduction.methods import METHODS, RunSettings
from wayveil.reproduction.tables import Row

METRICS = ("length", "density_100", "trip_100", "endpoints_100", "trip_1000", "relation")


@dataclass(frozen=True)
class Dataset:
    """A dataset of the paper: its label, possible file names, shipped scope, and the paper's learning rate."""

    label: str
    files: tuple[str, ...]
    scope: str
    learning_rate: float


@dataclass(frozen=True)
class Part:
    """A dataset, its file, how many of its trajectories are used (None: all), and the settings of its runs."""

    dataset: Dataset
    path: Path
    size: int | None
    settings: RunSettings


Case = tuple[Part, float, str]
"""(part, epsilon, name of the method)."""


@functools.lru_cache(maxsize=3)
def loaded(part: Part) -> tuple[Trajectories, Any, Any]:
    """The trajectories, their scope and their paths in metres.

    Privacy: not private (trusted side only).
    """
    scope = read_scope(part.dataset.scope)
    data = files.read(part.path)
    data = data if part.size is None else random_subset(data, part.size, part.settings.seed)
    return data, scope, project(data, scope)


@functools.lru_cache(maxsize=3)
def floors_of(part: Part) -> Row:
    """The floor of each metric: what a fresh sample of the same population would score."""
    data, scope, real = loaded(part)
    found = floors(real, scope, len(data), METRICS)
    return {f"floor_{metric}": round(float(found[metric]), 5) for metric in METRICS}


def row_of(case: Case) -> dict[str, Any]:
    """Run one method and score what it made.

    Privacy: not private (trusted side only).
    """
    part, epsilon, name = case
    data, scope, real = loaded(part)
    begin = time.perf_counter()
    output = METHODS[name].run(data, scope, epsilon, part.settings, quiet)
    seconds = time.perf_counter() - begin
    paths = evaluation.project(output, scope)
    row: dict[str, Any] = {"dataset": part.dataset.label, "method": name, "private": METHODS[name].private,
                           "epsilon": epsilon}  # fmt: skip
    row |= {metric: round(float(evaluation.METRICS[metric](real, paths)), 5) for metric in METRICS}
    row["moved_m"] = float(f"{_moved_m(real, paths):.3g}") if name.startswith("dpe") else ""
    row["seconds"] = round(seconds, 2)
    return row


def rows_of(cases: Sequence[Case], jobs: int, progress: Progress = quiet) -> list[Row]:
    """The rows in the order of the cases; private methods in `jobs` processes, the published one in this one."""
    rows: dict[Case, Row] = {}
    shown: set[tuple[str, type[Warning]]] = set()

    def done(case: Case, row: dict[str, Any]) -> None:
        rows[case] = {**row, **floors_of(case[0])}
        progress(f"comparison, {case[0].dataset.label}", len(rows) / len(cases))

    if jobs == 1:
        for case in cases:
            done(case, row_of(case))
        return [rows[case] for case in cases]
    in_this_process = [case for case in cases if not METHODS[case[2]].private]
    # The sound method takes longest, so it starts first.
    in_workers = sorted((case for case in cases if METHODS[case[2]].private), key=lambda case: case[2] != "wayveil")
    # Fresh processes: a forked one would inherit the threads and the device of jax.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawned, initializer=_without_gpu) as pool:
        try:
            waiting = {pool.submit(_row_elsewhere, case): case for case in in_workers}
            for case in in_this_process:
                done(case, row_of(case))
            for future in as_completed(waiting):
                row, warned = future.result()
                done(waiting[future], row)
                for words, kind in warned - shown:
                    warnings.warn(words, kind, stacklevel=2)
                shown |= warned
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [rows[case] for case in cases]


def _row_elsewhere(case: Case) -> tuple[dict[str, Any], set[tuple[str, type[Warning]]]]:
    """The row, and the warnings, which a worker process cannot show."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        row = row_of(case)
    return row, {(str(warning.message), warning.category) for warning in caught}


def _without_gpu() -> None:
    """Hide the GPU from a worker; the published method uses it."""
    os.environ["JAX_PLATFORMS"] = "cpu"


def _moved_m(real: Any, output: Any) -> float:
    """Mean distance between each point and the original that it was made from."""
    return float(np.hypot(output.x_m - real.x_m, output.y_m - real.y_m).mean())
