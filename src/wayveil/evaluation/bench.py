"""The comparison: datasets × epsilons × methods × seeds, one small file a cell, resumable.

Privacy: not private (trusted side only); everything here is computed from the private data.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wayveil.atomic import write_text
from wayveil.errors import InputError, WayveilError
from wayveil.evaluation.datasets import Dataset
from wayveil.evaluation.methods import METHODS, Method
from wayveil.evaluation.paths import Paths, project
from wayveil.evaluation.score import HEADLINE, METRICS, chosen, floors
from wayveil.progress import Progress, quiet
from wayveil.roads import RoadMap
from wayveil.trajectories import Trajectories

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
        return f"{self.dataset.name}__{self.method.name}__eps{self.epsilon:g}__seed{self.seed}.json"


@dataclass(frozen=True)
class Failure:
    """A cell without a result, and why."""

    cell: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """Every row of the tidy table, and the cells that gave none."""

    rows: list[Row]
    failures: tuple[Failure, ...]


def plan_cells(
    datasets: Iterable[Dataset], epsilons: Sequence[float], methods: Sequence[str], seeds: int
) -> list[Cell]:
    """Cells in the order they are run: a dataset after the other, all seeds of one before the next epsilon."""
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise InputError(f"No method '{unknown[0]}'; known are {', '.join(METHODS)}.")
    if seeds < 1 or not epsilons or min(epsilons) <= 0:
        raise InputError("The comparison needs at least one seed and epsilons above 0.")
    return [
        Cell(dataset, METHODS[name], epsilon, seed)
        for dataset in datasets
        for epsilon in epsilons
        for name in methods
        if dataset.roads is not None or not METHODS[name].needs_roads
        for seed in range(seeds)
    ]


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    *,
    metrics: Sequence[str] = HEADLINE,
    progress: Progress = quiet,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Run what is missing in `folder`/cells, and give the tidy table of all.

    A cell's file is written when it is done, whole or not at all; so a run that was killed goes on where it stopped. A
    cell that failed leaves no file and is tried again. `say` hears one line a cell, with the remaining time.

    Privacy: not private (trusted side only).
    """
    store = folder / "cells"
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write into '{folder.name}': {error.strerror}; choose another -o.") from None
    chosen(metrics, True)
    found = {cell.file_name: _stored(store / cell.file_name, cell, metrics) for cell in cells}
    missing = [cell for cell in cells if found[cell.file_name] is None]
    if len(missing) < len(cells):
        say(f"{len(cells) - len(missing)} of {len(cells)} cells are there already.")
    failures, workshop, begin = [], _Workshop(), time.monotonic()
    for position, cell in enumerate(missing):
        progress("cells", (len(cells) - len(missing) + position) / max(len(cells), 1))
        try:
            fresh = _run(cell, workshop, metrics)
        except Exception as error:
            # One method's fault must not cost the others' results; a foreign message may quote the data.
            reason = str(error) if isinstance(error, WayveilError) else f"{type(error).__name__} in the method"
            failures.append(Failure(cell.file_name.removesuffix(".json"), reason))
        else:
            write_text(store / cell.file_name, json.dumps(fresh, indent=1), private=True)
            found[cell.file_name] = fresh
        left_s = (time.monotonic() - begin) / (position + 1) * (len(missing) - position - 1)
        say(f"{position + 1} of {len(missing)}: {cell.file_name.removesuffix('.json')}; about {_span(left_s)} left")
    progress("cells", 1.0)
    done = [(cell, record) for cell in cells if (record := found[cell.file_name]) is not None]
    return Outcome(_tidy(done, store, workshop, metrics), tuple(failures))


def _stored(path: Path, cell: Cell, metrics: Sequence[str]) -> Row | None:
    """The record of a cell, if it is whole, of the same data, and has every metric."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        same = record["fingerprint"] == cell.dataset.fingerprint
        return record if same and set(_wanted(cell.method, metrics)) <= set(record["values"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _wanted(method: Method, metrics: Sequence[str]) -> list[str]:
    return chosen(metrics, method.has_time)


class _Workshop:
    """The dataset at hand, read and projected once."""

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


def _run(cell: Cell, workshop: _Workshop, metrics: Sequence[str]) -> Row:
    data, paths = workshop.open(cell.dataset)
    roads = workshop.roads(cell.dataset) if cell.method.needs_roads else None
    wall, cpu = time.perf_counter(), time.process_time()
    made = cell.method.run(data, cell.dataset.scope, cell.epsilon, cell.seed, roads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    synthetic = project(made, cell.dataset.scope)
    return {
        "dataset": cell.dataset.name, "method": cell.method.name, "private": cell.method.private,
        "epsilon": cell.epsilon, "seed": cell.seed, "trajectories": len(made), "wall_s": round(wall, 3),
        "cpu_s": round(cpu, 3), "fingerprint": cell.dataset.fingerprint,
        "values": {name: METRICS[name](paths, synthetic) for name in _wanted(cell.method, metrics)},
    }  # fmt: skip


def _tidy(done: list[tuple[Cell, Row]], store: Path, workshop: _Workshop, metrics: Sequence[str]) -> list[Row]:
    """One row a (cell, metric), with the floor at the cell's size."""
    rows, floor_at = [], {}
    for cell, record in done:
        key = cell.dataset.name, record["trajectories"]
        if key not in floor_at:
            floor_at[key] = _floor(cell.dataset, record["trajectories"], store, workshop, metrics)
        kept = ("dataset", "method", "private", "epsilon", "seed", "trajectories", "wall_s", "cpu_s")
        rows += [
            {**{name: record[name] for name in kept}, "metric": name, "value": record["values"][name],
             "floor": floor_at[key][name]}
            for name in _wanted(cell.method, metrics)
        ]  # fmt: skip
    return rows


def _floor(dataset: Dataset, size: int, store: Path, workshop: _Workshop, metrics: Sequence[str]) -> dict[str, float]:
    path = store / f"{dataset.name}__floor__{size}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["fingerprint"] == dataset.fingerprint and set(metrics) <= set(record["values"]):
            return dict(record["values"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    _, paths = workshop.open(dataset)
    values = floors(paths, dataset.scope, size, metrics)
    write_text(path, json.dumps({"fingerprint": dataset.fingerprint, "values": values}, indent=1), private=True)
    return values


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
