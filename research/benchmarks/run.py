"""Speed and memory by stage and size.

`make bench` runs it; with a million trajectories as well:

    python research/benchmarks/run.py --large

Each stage runs in a process of its own (start-up and imports included), on one thread. CPU seconds are also given in
units of a fixed numpy workload in the same run, so that machines and busy hours compare. Results are kept in
research/benchmarks/results/ and compared with the last ones of the same sizes; more than 20 % slower is shown in red.
"""

import argparse
import datetime as dt
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
WORSE = 1.20
STAGES = ("start", "simulate", "measure", "synthesize")


@dataclass(frozen=True)
class Row:
    """One stage at one size."""

    stage: str
    trajectories: int
    cpu_s: float
    ratio: float
    """CPU seconds over those of the fixed workload in the same run."""
    peak_mb: float


def main() -> None:
    arguments = parse()
    sizes = [10_000, 100_000] + ([1_000_000] if arguments.large else [])
    sizes = arguments.sizes or sizes
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        rows = run(sizes, Path(folder))
    before = last_result(sizes)
    show(rows, before)
    for line in growth(rows):
        print(line)
    path = store(rows)
    plot(rows, path.with_suffix(".png"))
    print(f"\nresults: {path}\nplot: {path.with_suffix('.png')}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also a million trajectories (about half an hour)")
    parser.add_argument("--sizes", type=int, nargs="+", help="these numbers of trajectories instead")
    parser.add_argument("--folder", type=Path, help="where the data goes meanwhile (default: the system's)")
    return parser.parse_args()


def run(sizes: list[int], folder: Path) -> list[Row]:
    """Every stage at every size, smallest first; the workload before each size."""
    rows = []
    for size in sizes:
        unit_s = statistics.median(child(["workload"])[0] for _ in range(3))
        for stage in STAGES:
            cpu_s, peak_mb = child([stage, str(size), str(folder)])
            rows.append(Row(stage, size, round(cpu_s, 3), round(cpu_s / unit_s, 3), round(peak_mb, 1)))
            print(f"{stage:12s} {size:>10,}  {cpu_s:8.2f} s  {peak_mb:7.0f} MB", file=sys.stderr, flush=True)
    return rows


def child(arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and peak resident memory (MB) of one stage in its own process."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    process = subprocess.Popen([sys.executable, str(HERE / "stages.py"), *arguments], env={**os.environ, **threads})
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"stage {arguments[0]} failed")
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / scale


def last_result(sizes: list[int]) -> dict[tuple[str, int], Row]:
    """The newest stored result with one of these sizes."""
    for path in sorted(RESULTS.glob("*T*Z.json"), reverse=True):  # named by their time; others lie there too
        rows = [Row(**row) for row in json.loads(path.read_text())["rows"]]
        if {row.trajectories for row in rows} & set(sizes):
            return {(row.stage, row.trajectories): row for row in rows}
    return {}


def show(rows: list[Row], before: dict[tuple[str, int], Row]) -> None:
    """The table; compared by ratio for time and by megabytes for memory."""
    red, plain = ("\033[31m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"{'stage':12s} {'size':>12s} {'CPU s':>9s} {'ratio':>8s} {'µs each':>9s} {'peak MB':>9s}  against last")
    for row in rows:
        each = 1e6 * row.cpu_s / row.trajectories
        cells = f"{row.stage:12s} {row.trajectories:>12,} {row.cpu_s:9.2f} {row.ratio:8.2f} {each:9.1f}"
        cells += f" {row.peak_mb:9.0f}"
        old = before.get((row.stage, row.trajectories))
        if old is None:
            print(cells + "  –")
            continue
        time, memory = row.ratio / old.ratio, row.peak_mb / old.peak_mb
        worse = max(time, memory) > WORSE
        verdict = f"time {time - 1:+.0%}, memory {memory - 1:+.0%}" + ("  REGRESSION" if worse else "")
        print(f"{red if worse else ''}{cells}  {verdict}{plain if worse else ''}")


def growth(rows: list[Row]) -> list[str]:
    """b of CPU s ∝ n^b, start-up taken off; 1 is linear, and so is less."""
    import numpy as np

    start = statistics.median(row.cpu_s for row in rows if row.stage == "start")
    lines = []
    for stage in STAGES[1:]:
        mine = [row for row in rows if row.stage == stage]
        if len(mine) > 1:
            size, cpu = (np.log([getattr(row, name) for row in mine]) for name in ("trajectories", "cpu_s"))
            cpu = np.log(np.maximum(np.exp(cpu) - start, 1e-3))
            lines.append(f"{stage}: CPU seconds grow as n^{np.polyfit(size, cpu, 1)[0]:.2f}")
    return lines


def store(rows: list[Row]) -> Path:
    now = dt.datetime.now(dt.UTC)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    document = {"time_utc": f"{now:%Y-%m-%dT%H:%M:%SZ}", **machine, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def plot(rows: list[Row], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for stage in STAGES[1:]:
        mine = [row for row in rows if row.stage == stage]
        size = [row.trajectories for row in mine]
        axes[0].loglog(size, [row.cpu_s for row in mine], "o-", label=stage)
        axes[1].semilogx(size, [row.peak_mb for row in mine], "o-", label=stage)
    for axis, title in zip(axes, ("CPU seconds", "Peak memory, MB")):
        axis.set(title=title, xlabel="trajectories")
        axis.grid(alpha=0.3)
    axes[1].set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
