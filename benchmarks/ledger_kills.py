"""Kill spending processes at random moments and look whether the ledger ever knows less than was shown.

    python benchmarks/ledger_kills.py 1000

Workers spend in a loop and print what they were granted, as a release would show it. They are killed with SIGKILL
at a random moment, some while several run at once. After every kill the ledger is opened again (which also compares
it with its witnesses) and must have spent at least everything that was ever printed; at the end every total and
the chain are checked.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

WORKER = """
import sys
from fractions import Fraction
from wayveil.errors import BudgetError
from wayveil.privacy.ledger import Ledger, Spend
ledger, total = Ledger(sys.argv[1]), Fraction(1000)
print("ready", flush=True)
for turn in range(10**9):
    try:
        receipt = ledger.spend(sys.argv[2], [Spend("a", Fraction(1, 64)), Spend("b", Fraction(1, 64))],
                               total_if_new=total)
    except BudgetError as error:
        print("refused", error, flush=True)
        break
    print("granted", receipt.measurement, flush=True)
"""
COST = Fraction(1, 32)


def kill_round(ledger_path: Path, dataset: str, workers: int, wait_s: float) -> tuple[list[str], list[str]]:
    """Start workers, kill all of them after `wait_s`; the measurements they showed, and complaints."""
    outputs = [tempfile.TemporaryFile("w+") for _ in range(workers)]
    command = [sys.executable, "-c", WORKER, str(ledger_path), dataset]
    running = [subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) for out in outputs]
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up and not all(os.fstat(out.fileno()).st_size for out in outputs):
        time.sleep(0.002)
    time.sleep(wait_s)
    shown, complaints = [], []
    for process, out in zip(running, outputs):
        process.send_signal(signal.SIGKILL)
        process.wait()
        out.seek(0)
        for line in out.read().splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "granted" and len(rest) == 16:
                shown.append(rest)
            elif kind not in ("ready", "granted"):
                complaints.append(line)
        out.close()
    return shown, complaints


def run(kills: int, folder: Path, seed: int | None = None) -> Counter[str]:
    """The table of a run of `kills` kills; every count named 'bad: ...' should be absent."""
    from wayveil.errors import WayveilError
    from wayveil.privacy.ledger import Ledger

    choose, table = random.Random(seed), Counter[str]()
    path, dataset = folder / "ledger.sqlite", "rides"
    shown: set[str] = set()
    while table["kills"] < kills:
        # A fresh dataset now and then keeps each account short; a fresh ledger tests its making.
        if table["rounds"] % 7 == 6:
            dataset = f"rides {table['rounds']}"
        if table["rounds"] % 20 == 19:
            _check(path, shown, table)
            path, shown = folder / f"ledger-{table['rounds']}.sqlite", set()
        workers = choose.choice((1, 1, 2, 4))
        granted, complaints = kill_round(path, dataset, workers, choose.random() ** 2 * 0.06)
        shown.update(granted)
        table.update({"rounds": 1, "kills": workers, "grants shown": len(granted)})
        table["bad: complaint of a worker"] += len(complaints)
        for line in complaints[:3]:
            print(line, file=sys.stderr)
        table["a journal was left to roll back"] += path.with_name(path.name + "-journal").exists()
        try:
            known = {line.measurement for name in Ledger(path).datasets() for line in Ledger(path).lines(name.name)}
            table["bad: shown but not on the ledger"] += len(shown - known)
            table["spent, killed before it was shown"] += len(known - shown - {""})
            shown |= known - {""}
        except WayveilError as error:
            table["bad: the ledger could not be opened"] += 1
            print(error, file=sys.stderr)
    _check(path, shown, table)
    return table


def _check(path: Path, shown: set[str], table: Counter[str]) -> None:
    from wayveil.errors import WayveilError
    from wayveil.privacy.ledger import Ledger

    ledger = Ledger(path)
    try:
        ledger.verify()
        datasets = ledger.datasets()
    except WayveilError:
        table["bad: a damaged ledger"] += 1
        return
    table["ledgers verified (integrity_check and chain)"] += 1
    table["bad: half a measurement or overspent"] += sum(
        account.spent > account.total or account.spent % COST != 0 for account in datasets
    )
    table["bad: spent less than shown"] += sum(account.spent for account in datasets) < COST * len(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kills", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        table = run(options.kills, Path(folder) / "data", options.seed)
    for name, count in table.items():
        print(f"{name:<50} {count:>8}")
    print(f"{'seconds':<50} {time.monotonic() - started:>8.0f}")
    if any(count for name, count in table.items() if name.startswith("bad")):
        raise SystemExit("The ledger lost something.")


if __name__ == "__main__":
    main()
