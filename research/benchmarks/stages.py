"""One stage of the benchmark, in a process of its own: `python research/benchmarks/stages.py STAGE [SIZE FOLDER]`."""

import sys
from pathlib import Path


def workload() -> None:
    """What a second is worth on this machine: sorting, gathering, exponentials and sums, always the same."""
    import numpy as np

    random = np.random.default_rng(0)
    values, index = random.random(1_000_000), random.integers(0, 1_000_000, 1_000_000)
    for _ in range(6):
        ordered = np.sort(values)
        values = np.exp(-ordered[index]) + np.cumsum(values) / len(values)
        np.bincount(index % 4096, values)
        np.searchsorted(ordered, values[::4])


def start(size: int, folder: Path) -> None:
    """The command line's own start-up."""
    from wayveil.cli.main import main  # noqa: F401


def simulate(size: int, folder: Path) -> None:
    from wayveil.simulate import simulate_to_parquet

    simulate_to_parquet(folder / f"{size}.parquet", size, seed=0)


def measure(size: int, folder: Path) -> None:
    from wayveil.measurement import measure
    from wayveil.release import write_release

    release = measure(folder / f"{size}.parquet", "demo-city", epsilon=1, unit="trajectory")
    write_release(release, folder / f"{size}.json")


def synthesize(size: int, folder: Path) -> None:
    from wayveil.release import read_release
    from wayveil.synthesis.request import Request
    from wayveil.synthesis.resume import synthesize_to_parquet

    release = read_release(folder / f"{size}.json")
    synthesize_to_parquet(Request(release, n=size, seed=0), folder / f"{size}.synthetic.parquet")


STAGES = {"start": start, "simulate": simulate, "measure": measure, "synthesize": synthesize}

if __name__ == "__main__":
    if sys.argv[1] == "workload":
        workload()
    else:
        STAGES[sys.argv[1]](int(sys.argv[2]), Path(sys.argv[3]))
