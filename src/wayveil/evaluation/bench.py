"""The comparison: datasets × epsilons × methods × seeds, one small result file per cell, resumable.

Privacy: not private (trusted side only); everything here is computed from the private data.
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from wayveil.core.roads import RoadMap
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.evaluation.all_metrics import HEADLINE, METRICS, selected_metrics
from wayveil.evaluation.bench_limits import NO_LIMITS, LimitError, Limits, reason_of, run_limited
from wayveil.evaluation.datasets import Dataset
from wayveil.evaluation.methods import METHODS, Method, Task, find_method
from wayveil.evaluation.paths import Paths, project
from wayveil.evaluation.score import floors
from wayveil.io.atomic import write_text
from wayveil.progress import Progress, quiet

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One run of one method."""

    dataset: Dataset
    method: Method
    epsilon: float
    seed: int

    @property
    def file_name(self) -> str:
        method = self.method.name.replace(":", ".")
        return f"{self.dataset.name}__{method}__eps{self.epsilon:g}__seed{self.seed}.json"


@dataclass(frozen=True)
class Failure:
    """A cell without a result, and the reason."""

    cell: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """Every row of the tidy table, and the cells without a result."""

    rows: list[Row]
    failures: tuple[Failure, ...]

    @property
    def sentences(self) -> list[str]:
        """One sentence for each reason why cells have no result."""
        cells: dict[str, list[str]] = {}
        for failure in self.failures:
            cells.setdefault(failure.reason, []).append(failure.cell)
        return [
            f"No result for {', '.join(found[:3])}{f' and {len(found) - 3} more' if len(found) > 3 else ''}: {reason}"
            for reason, found in cells.items()
        ]


def plan_cells(
    datasets: Iterable[Dataset], epsilons: Sequence[float], methods: Sequence[str], seeds: int
) -> list[Cell]:
    """Cells in the order in which they run: by dataset, then by epsilon, then all seeds."""
    chosen = {name: find_method(name) for name in methods}
    unknown = [name for name, method in chosen.items() if method is None]
    if unknown:
        raise InputError(f"Unknown method '{unknown[0]}'; choose from {', '.join(METHODS)}.")
    if seeds < 1 or not epsilons or not all(0 < epsilon < math.inf for epsilon in epsilons):
        raise InputError("The comparison needs at least one seed and finite epsilons above 0.")
    return [
        Cell(dataset, method, epsilon, seed)
        for dataset in datasets
        for epsilon in epsilons
        for method in chosen.values()
        if method is not None and (dataset.roads is not None or not method.needs_roads)
        for seed in range(seeds)
    ]


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    *,
    metrics: Sequence[str] = HEADLINE,
    limits: Limits = NO_LIMITS,
    progress: Progress = quiet,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Run the cells that are missing in `folder`/cells, and return the tidy table of all.

    The file of a cell appears when the cell is complete, so a run that was killed continues where it stopped. A cell
    that failed leaves no file and is tried again; one that exceeded the limits is tried again if these are
    raised. With limits, each cell has a process of its own. `say` is called with one line per cell and the remaining
    time.

    Privacy: not private (trusted side only).
    """
    store = folder / "cells"
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write to '{folder.name}': {error.strerror}; choose another output.") from None
    selected_metrics(metrics, True)
    found = {cell.file_name: _stored(store / cell.file_name, cell, metrics) for cell in cells}
    missing = [cell for cell in cells if found[cell.file_name] is None]
    if len(missing) < len(cells):
        say(f"{len(cells) - len(missing)} of {len(cells)} cells are already complete.")
    failures, current, begin = [], _CurrentDataset(), time.monotonic()
    for cell in list(missing):
        if (reason := _gave_up(store / cell.file_name, cell, limits)) is not None:
            failures.append(Failure(cell.file_name.removesuffix(".json"), reason))
            missing.remove(cell)
    for position, cell in enumerate(missing):
        progress("cells", (len(cells) - len(missing) + position) / max(len(cells), 1))
        try:
            fresh = (
                run_limited(partial(_run_alone, cell, metrics), limits) if limits.any else _run(cell, current, metrics)
            )
        except Exception as error:
            # An error in one method must not stop the others.
            failures.append(Failure(cell.file_name.removesuffix(".json"), reason_of(error)))
            if isinstance(error, LimitError):
                note = {"fingerprint": cell.dataset.fingerprint, "failed": str(error),
                        "limits": [limits.seconds, limits.memory_mb]}  # fmt: skip
                write_text(store / cell.file_name, json.dumps(note, indent=1), private=True)
        else:
            write_text(store / cell.file_name, json.dumps(fresh, indent=1), private=True)
            found[cell.file_name] = fresh
        left_s = (time.monotonic() - begin) / (position + 1) * (len(missing) - position - 1)
        say(f"{position + 1} of {len(missing)}: {cell.file_name.removesuffix('.json')}; about {_span(left_s)} left")
    progress("cells", 1.0)
    done = [(cell, record) for cell in cells if (record := found[cell.file_name]) is not None]
    return Outcome(_tidy(done, store, current, metrics), tuple(failures))


def _stored(path: Path, cell: Cell, metrics: Sequence[str]) -> Row | None:
    """The stored result of a cell, if it is complete, belongs to the same data, and has every metric."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        same = record["fingerprint"] == cell.dataset.fingerprint
        return record if same and set(_metrics_of(cell.method, metrics)) <= set(record["values"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _gave_up(path: Path, cell: Cell, limits: Limits) -> str | None:
    """Why the cell failed before, if it exceeded limits that are at least as high as these."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        same = record["fingerprint"] == cell.dataset.fingerprint and limits.covers(record["limits"])
        return str(record["failed"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _metrics_of(method: Method, metrics: Sequence[str]) -> list[str]:
    return selected_metrics(metrics, method.has_time)


class _CurrentDataset:
    """The dataset in use, read and projected once."""

    def __init__(self) -> None:
        self._name = ""
        self._held: tuple[Trajectories, Paths] | None = None
        self._roads: RoadMap | None = None

    def open(self, dataset: Dataset) -> tuple[Trajectories, Paths]:
        if self._held is None or self._name != dataset.name:
            data = dataset.read()
            self._name, self._held, self._roads = dataset.name, (data, project(data, dataset.scope)), None
        return self._held

    def roads(self, dataset: Dataset) -> RoadMap | None:
        self.open(dataset)
        if self._roads is None and dataset.roads is not None:
            self._roads = dataset.roads()
        return self._roads


def _run_alone(cell: Cell, metrics: Sequence[str]) -> Row:
    return _run(cell, _CurrentDataset(), metrics)


def _run(cell: Cell, current: _CurrentDataset, metrics: Sequence[str]) -> Row:
    data, paths = current.open(cell.dataset)
    roads = current.roads(cell.dataset) if cell.method.needs_roads else None
    wall, cpu = time.perf_counter(), time.process_time()
    output = cell.method.run(Task(data, cell.dataset.scope, cell.epsilon, cell.seed, roads))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    synthetic = project(output, cell.dataset.scope)
    return {
        "dataset": cell.dataset.name, "method": cell.method.name, "private": cell.method.private,
        "epsilon": cell.epsilon, "seed": cell.seed, "trajectories": len(output), "wall_s": round(wall, 3),
        "cpu_s": round(cpu, 3), "fingerprint": cell.dataset.fingerprint,
        "values": {name: METRICS[name](paths, synthetic) for name in _metrics_of(cell.method, metrics)},
    }  # fmt: skip


def _tidy(done: list[tuple[Cell, Row]], store: Path, current: _CurrentDataset, metrics: Sequence[str]) -> list[Row]:
    """One row per (cell, metric), with the floor for the size of the cell's output."""
    rows, floor_at = [], {}
    for cell, record in done:
        key = cell.dataset.name, record["trajectories"]
        if key not in floor_at:
            floor_at[key] = _floor(cell.dataset, record["trajectories"], store, current, metrics)
        kept = ("dataset", "method", "private", "epsilon", "seed", "trajectories", "wall_s", "cpu_s")
        rows += [
            {**{name: record[name] for name in kept}, "peak_mb": record.get("peak_mb"), "metric": name,
             "value": record["values"][name], "floor": floor_at[key][name]}
            for name in _metrics_of(cell.method, metrics)
        ]  # fmt: skip
    return rows


def _floor(
    dataset: Dataset, size: int, store: Path, current: _CurrentDataset, metrics: Sequence[str]
) -> dict[str, float]:
    path = store / f"{dataset.name}__floor__{size}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["fingerprint"] == dataset.fingerprint and set(metrics) <= set(record["values"]):
            return dict(record["values"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    _, paths = current.open(dataset)
    values = floors(paths, dataset.scope, size, metrics)
    write_text(path, json.dumps({"fingerprint": dataset.fingerprint, "values": values}, indent=1), private=True)
    return values


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
