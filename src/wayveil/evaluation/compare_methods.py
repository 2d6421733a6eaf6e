"""`wayveil bench utility`: compare methods, and write tables and plots."""

from collections.abc import Callable
from pathlib import Path

from wayveil.errors import InputError
from wayveil.evaluation.all_metrics import HEADLINE, METRICS
from wayveil.evaluation.bench import Outcome, plan_cells, run_cells
from wayveil.evaluation.bench_limits import NO_LIMITS, Limits
from wayveil.evaluation.bench_outputs import write_outputs
from wayveil.evaluation.datasets import find_datasets, quick_dataset
from wayveil.evaluation.methods import DEFAULT, METHODS
from wayveil.io.outputs import check_outputs
from wayveil.progress import Progress, quiet

_EPSILONS = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1"
_QUICK_EPSILONS = "0.5,1,2"


def compare_methods(
    data: Path | None,
    output: Path,
    *,
    quick: bool = False,
    epsilons: str | None = None,
    seeds: int | None = None,
    methods: str | None = None,
    datasets: str | None = None,
    scope: str | None = None,
    all_metrics: bool = False,
    limits: Limits = NO_LIMITS,
    progress: Progress = quiet,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Outcome, list[str]]:
    """Run the comparison and write its files; return the results and the names of the files.

    `methods` is a comma-separated list, "all", or None for the methods in `DEFAULT`.

    Privacy: not private (trusted side only).
    """
    if data is None and not quick:
        raise InputError("Give a data folder, or use quick=True for the simulated city.")
    if quick and any(given is not None for given in (data, datasets, scope)):
        raise InputError("quick=True uses the simulated city; leave out the data folder, datasets= and scope=.")
    chosen_epsilons = _numbers((_QUICK_EPSILONS if quick else _EPSILONS) if epsilons is None else epsilons)
    chosen_methods = list(METHODS) if methods == "all" else _names("methods", methods) or list(DEFAULT)
    repeats = seeds if seeds is not None else (1 if quick else 2)
    plan_cells([], chosen_epsilons, chosen_methods, repeats)  # refuses before any data is read
    found = [quick_dataset()] if data is None else find_datasets(data, scope, _names("datasets", datasets))
    tables = [output / name for name in ("results.parquet", "results.csv", "wins.csv")]
    check_outputs(tables, inputs=[] if data is None else [data / f"{dataset.name}.parquet" for dataset in found])
    cells = plan_cells(found, chosen_epsilons, chosen_methods, repeats)
    metrics = tuple(METRICS) if all_metrics else HEADLINE
    outcome = run_cells(cells, output, metrics=metrics, limits=limits, progress=progress, say=say)
    return outcome, write_outputs(outcome.rows, output)


def _names(option: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    named = [name.strip() for name in text.split(",") if name.strip()]
    if not named:
        raise InputError(f"{option}= '{text}' is not a list of names; leave it out for the default.")
    return named


def _numbers(text: str) -> list[float]:
    try:
        return sorted({float(part) for part in text.split(",") if part.strip()})
    except ValueError:
        raise InputError(f"epsilons= '{text}' is not a list of numbers; write for example 0.1,0.5,1.") from None
