"""Kill spending processes at random moments, let threads of several processes compete, and look what the ledger knows.

    python research/benchmarks/ledger_kills.py 1000 --processes 2 8 --measures 100 --rounds 500

Workers spend in a loop and print what they were granted, as a release would show it. They are killed with SIGKILL
at a random moment, two and then eight at once. After every round the ledger is opened again (which also compares
it with its witnesses) and must have spent at least everything that was ever printed; at the end every total and
the chain are checked. `--measures` kills whole `wayveil measure` commands as well, two at once on one dataset,
and looks for their release files.

`--rounds` kills nobody: in every round `--workers` processes with `--threads` threads each ask at the same moment for
the whole total of one dataset. Exactly one of them may get it.
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
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

WORKER = """
import sys
from fractions import Fraction
from wayveil.errors import BudgetError
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit
ledger, total = Ledger(sys.argv[1], timeout_s=600), Fraction(1000)
print("ready", flush=True)
for turn in range(10**9):
    try:
        receipt = ledger.spend(sys.argv[2], [Spend("a", Fraction(1, 64)), Spend("b", Fraction(1, 64))],
                               unit=Unit.trajectory(), total_if_new=total)
    except BudgetError as error:
        print("refused", error, flush=True)
        break
    print("granted", receipt.measurement, flush=True)
"""
COST = Fraction(1, 32)


def kill_round(ledger_path: Path, dataset: str, workers: int, wait_s: float) -> tuple[list[str], list[str]]:
    """Start workers, kill all of them after `wait_s`; the measurements they showed, and complaints."""
    outputs = [tempfile.TemporaryFile("w+") for _ in range(workers)]  # noqa: SIM115
    command = [sys.executable, "-c", WORKER, str(ledger_path), dataset]
    running = [subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) for out in outputs]
    give_up = time.monotonic() + 600
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


def run(kills: int, folder: Path, seed: int | None = None, processes: Sequence[int] = (1, 2, 8)) -> Counter[str]:
    """The table of a run of `kills` kills, each round of a number drawn from `processes`; 'bad: ...' should be 0."""
    from wayveil.errors import WayveilError
    from wayveil.privacy.ledger import Ledger

    choose, table = random.Random(seed), Counter[str]()
    path, dataset = folder / "ledger.sqlite", "rides"
    shown: set[str] = set()
    # On a busy machine all workers may be killed before their first grant, which would test nothing.
    while table["kills"] < kills or (not table["grants shown"] and table["kills"] < 20 * kills):
        # A fresh dataset now and then keeps each account short; a fresh ledger tests its making.
        if table["rounds"] % 7 == 6:
            dataset = f"rides {table['rounds']}"
        if table["rounds"] % 20 == 19:
            _check(path, shown, table)
            path, shown = folder / f"ledger-{table['rounds']}.sqlite", set()
        workers = choose.choice(processes)
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
        ledger.datasets()
        datasets = ledger.datasets()
    except WayveilError:
        table["bad: a damaged ledger"] += 1
        return
    table["ledgers verified (integrity_check and chain)"] += 1
    table["bad: half a measurement or overspent"] += sum(
        account.spent > account.total or account.spent % COST != 0 for account in datasets
    )
    table["bad: spent less than shown"] += sum(account.spent for account in datasets) < COST * len(shown)


CITY = """
import sys
from wayveil.io.files import write
from wayveil.simulate import simulate_city, simulate_trajectories
city = simulate_city(0, size_km=(3, 3))
write(simulate_trajectories(city, 3000, seed=1), sys.argv[1] + "/rides.parquet")
"""
SCOPE = """name = "small"
south = {south}
west = {west}
north = {north}
east = {east}
"""
MEASURE = "import sys; from wayveil.cli.main import main; main()"


def run_measures(kills: int, folder: Path, seed: int | None = None) -> Counter[str]:
    """Kill `wayveil measure` commands, two at once, anywhere from the start of the work to after its end.

    A release that can be read must be on the ledger; nothing unfinished may lie under a release's name.
    """
    from wayveil.errors import WayveilError
    from wayveil.privacy.ledger import Ledger
    from wayveil.release import read_release
    from wayveil.simulate import simulate_city

    folder.mkdir(parents=True)
    scope = simulate_city(0, size_km=(3, 3)).scope
    (folder / "small.toml").write_text(SCOPE.format(**scope.model_dump(include={"south", "west", "north", "east"})))
    subprocess.run([sys.executable, "-c", CITY, str(folder)], check=True)
    choose, table, path = random.Random(seed), Counter[str](), folder / "ledger" / "ledger.sqlite"
    once = [sys.executable, "-c", MEASURE, "measure", str(folder / "rides.parquet"), "--dataset", "rides", "--unit"]
    once += ["trajectory", "--epsilon", "0.03125", "--scope", str(folder / "small.toml"), "--ledger", str(path)]
    begun = time.monotonic()
    subprocess.run([*once, "-o", str(folder / "timed.json")], check=True, capture_output=True)
    took_s = time.monotonic() - begun
    Ledger(path).allow("rides", Fraction(1000), "as many as there are kills")
    outputs = []
    while table["kills of `wayveil measure`"] < kills:
        names = [folder / f"{table['rounds']}-{k}.json" for k in range(2)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = [subprocess.Popen([*once, "-o", str(name)], **quiet) for name in names]
        time.sleep(took_s * choose.uniform(0.4, 2.2))  # two share what one had alone
        for process in running:
            table["kills of `wayveil measure`"] += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
        table["rounds"] += 1
        outputs += names
        spent = Ledger(path).datasets()[0].spent
        shown = [name for name in outputs if name.exists()]
        table["bad: more releases than spends"] += COST * (len(shown) + 1) > spent
        for name in set(names) & set(shown):
            try:
                read_release(name)
            except WayveilError:
                table["bad: half a release"] += 1
    Ledger(path).datasets()
    table["releases complete"] = len(shown)
    table["spent, killed before the release was there"] = int(spent / COST) - 1 - len(shown)
    table["hidden unfinished files left (never under a release's name)"] = len(list(folder.glob(".*")))
    return table


COMPETITOR = """
import sys, threading
from fractions import Fraction
from wayveil.errors import BudgetError
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit
threads, unit = int(sys.argv[1]), Unit.trajectory()

def compete(path, dataset, start, said):
    start.wait()
    try:
        ledger = Ledger(path, timeout_s=600)
        lines = [Spend("all", Fraction(1))]
        ledger.check_spend(dataset, lines, unit=unit)  # like measure, which then reads the secret and the data
        ledger.secret
        receipt = ledger.spend(dataset, lines, unit=unit, total_if_new=Fraction(1))
        said.append("granted " + receipt.measurement)
    except BudgetError as error:
        said.append("refused" if "remains" in str(error) else f"complaint {error}")
    except BaseException as error:
        said.append(f"complaint {type(error).__name__}: {error}")

print("ready", flush=True)
for line in sys.stdin:
    path, dataset = line.rstrip("\\n").split("\\t")
    said, start = [], threading.Barrier(threads)
    running = [threading.Thread(target=compete, args=(path, dataset, start, said)) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    print("\\t".join(said), flush=True)
"""


def run_rounds(rounds: int, folder: Path, workers: int = 3, threads: int = 6) -> Counter[str]:
    """Every round one total of 1 and `workers` x `threads` requests for it; 'bad: ...' should be 0.

    Every second round begins a new ledger, so that its making is contested too.
    """
    from wayveil.errors import WayveilError
    from wayveil.privacy.ledger import Ledger

    folder.mkdir(parents=True)
    table = Counter[str]({"processes": workers, "threads in each": threads})
    command = [sys.executable, "-c", COMPETITOR, str(threads)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in range(workers)]
    try:
        for process in running:
            process.stdout.readline()
        for number in range(rounds):
            path, dataset = folder / f"ledger-{number // 2}.sqlite", f"rides {number}"
            for process in running:
                process.stdin.write(f"{path}\t{dataset}\n")
                process.stdin.flush()
            said = [word for process in running for word in process.stdout.readline().rstrip("\n").split("\t")]
            granted = {word.partition(" ")[2] for word in said if word.startswith("granted")}
            complaints = [word for word in said if word.startswith("complaint")]
            table.update({"rounds": 1, "requests": len(said), "releases": len(granted)})
            table["bad: rounds with more than one release"] += len(granted) > 1
            table["bad: rounds without a release"] += not granted
            table["bad: complaint of a thread"] += len(complaints)
            for line in complaints[:3]:
                print(line, file=sys.stderr)
            try:
                ledger = Ledger(path)
                lines = [line for line in ledger.lines(dataset) if line.kind == "spend"]
                table["spent, the ledger says"] += int(sum(line.epsilon for line in lines))
                table["bad: released but not on the ledger"] += len(granted - {line.measurement for line in lines})
            except WayveilError as error:
                table["bad: the ledger could not be opened"] += 1
                print(error, file=sys.stderr)
    finally:
        for process in running:
            process.stdin.close()
            process.wait()
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kills", type=int, nargs="?", default=1000, help="for each number of processes")
    parser.add_argument("--processes", type=int, nargs="*", default=[2, 8])
    parser.add_argument("--measures", type=int, default=0, help="kills of whole `wayveil measure` commands")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of threads x processes, without kills")
    parser.add_argument("--workers", type=int, default=3, help="processes in these rounds")
    parser.add_argument("--threads", type=int, default=6, help="threads of each of them")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    tables: dict[str, Counter[str]] = {}
    titles = {"measure": "`wayveil measure`, two at once", "rounds": "threads x processes"}
    more = [kind for kind, wanted in (("measure", options.measures), ("rounds", options.rounds)) if wanted]
    for number in [*options.processes, *more]:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder
            if number == "rounds":
                table = run_rounds(options.rounds, Path(folder) / "data", options.workers, options.threads)
            elif number == "measure":
                table = run_measures(options.measures, Path(folder) / "data", options.seed)
            else:
                table = run(options.kills, Path(folder) / "data", options.seed, (number,))
        table["seconds"] = round(time.monotonic() - started)
        tables[str(number)] = table
        print(f"\n{titles.get(str(number), f'{number} processes at once')}")
        for name, count in table.items():
            print(f"{name:<60} {count:>8}", flush=True)
    if any(count for table in tables.values() for name, count in table.items() if name.startswith("bad")):
        raise SystemExit("The ledger lost something.")


if __name__ == "__main__":
    main()
