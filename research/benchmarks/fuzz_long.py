"""Run every fuzzer at length: N damaged inputs, 100,000 by default.

    python research/benchmarks/fuzz_long.py [N] [--seed S] [--kinds ...]

Each input is read, or refused in one sentence. Anything else (another exception, too much CPU time, memory over
2 GB) is a defect and is printed with the seed that reproduces it. The table also goes to
research/benchmarks/results/fuzz.json; rows of other kinds from an earlier run stay there.
"""

import argparse
import json
import math
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("fuzz", "formats", "rules", ".")]
RESULT = ROOT / "research" / "benchmarks" / "results" / "fuzz.json"
MEMORY_BYTES = 2 << 30
SHARES = {
    "scope": 20.8, "release": 16, "rules": 14, "roads.parquet": 4, "roads.geojson": 5, "roads.graphml": 4, "ledger": 4,
    "weights": 1, "run": 4, "csv": 4, "gpx": 7, "tdrive": 3, "cabspotting": 3, "geolife": 3, "parquet": 3,
    "geo.parquet": 1, "parts": 1, "frame": 2, "synthesis": 0.2,
}  # fmt: skip


def one_by_one(kind: str, number: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Inputs of one kind, each by its own seed."""
    import fuzz_files
    import fuzz_kinds
    import test_fuzz_readers as readers

    outcomes: Counter[str] = Counter()
    defects: list[str] = []
    if kind in fuzz_kinds.KINDS:
        attempt: Callable[[int], str] = lambda one: fuzz_kinds.attempt(kind, folder, one)  # noqa: E731
    else:

        def attempt(one: int) -> str:
            place = folder / f"{kind}-{one}"
            try:
                with fuzz_files.alarm(int(readers.LIMIT_S)):
                    return readers.attempt(kind, place, one)
            finally:
                shutil.rmtree(place, ignore_errors=True)

    for one in range(seed, seed + number):
        try:
            outcomes[attempt(one)] += 1
        except Exception as error:
            outcomes["defect"] += 1
            defects.append(f"{kind}, seed {one}: {type(error).__name__}: {str(error)[:160]!r}")
    return outcomes, defects


def _note(kind: str, line: dict[str, Any]) -> None:
    before = json.loads(RESULT.read_text(encoding="utf-8"))["by_reader"] if RESULT.exists() else {}
    table = {**before, kind: line}
    whole = {
        "inputs": sum(one["inputs"] for one in table.values()), "memory_limit_mb": MEMORY_BYTES >> 20,
        "by_reader": table,
    }  # fmt: skip
    RESULT.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=100_000)
    parser.add_argument("--seed", type=int, default=1_000_000, help="CI begins at 0")
    parser.add_argument("--kinds", nargs="+", choices=SHARES, default=list(SHARES), help="only these, with their share")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    found: list[str] = []
    total = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_DATA_HOME"] = os.environ["XDG_STATE_HOME"] = str(folder / "home")
        os.chdir(folder)
        for kind in options.kinds:
            number = math.ceil(options.n * SHARES[kind] / sum(SHARES.values()) - 1e-9)
            began, cpu = time.monotonic(), time.process_time()
            outcomes, defects = one_by_one(kind, number, options.seed, folder)
            line = {
                "inputs": sum(outcomes.values()), **outcomes, "wall_s": round(time.monotonic() - began, 1),
                "cpu_s": round(time.process_time() - cpu, 1),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }  # fmt: skip
            total, found = total + sum(outcomes.values()), found + defects
            print(f"{kind:12} {json.dumps(line)}", *defects[:20], sep="\n  ", flush=True)
            _note(kind, {**line, "first_seed": options.seed, "defects": defects[:20]})
    print(f"{total} inputs, {len(found)} defects")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
