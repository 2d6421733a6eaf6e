"""Disturb `wayveil measure` at every write-class system call and compare what it prints with what the ledger knows.

    python research/benchmarks/ledger_faults.py

`strace` injects one fault per run: a signal (SIGINT, SIGTERM) or an error (ENOSPC, EIO) at the N-th call of one kind,
for every kind and every N that an undisturbed run has. Afterwards the ledger is opened and the message is judged: it
says that the budget is spent if and only if the ledger does, and that the release is complete if and only if it is
there. Linux only. Each run is a fork of this process, which has imported everything, so that it takes a second.
"""

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

SIGNALS = ("SIGINT", "SIGTERM")
WRITES = ("write", "pwrite64", "ftruncate", "fallocate")
SYNCS = ("fsync", "fdatasync")
NAMES = ("mkdir", "unlink", "rename", "chmod", "fchmod", "flock")
ERRORS = {"ENOSPC": WRITES + SYNCS, "EIO": WRITES + SYNCS + NAMES}
SCOPE = 'name = "small"\nsouth = 30.0\nwest = -40.0\nnorth = 30.04\neast = -39.96\ntimezone = "UTC"\n'
COMMAND = (
    "measure rides.csv --dataset rides --scope small.toml --epsilon 1 --unit trajectory --ledger l.sqlite -o r.json"
)


@dataclass(frozen=True)
class Fault:
    """The N-th call of one kind, and what happens to it."""

    kind: str
    call: str
    number: int
    lasting: bool = False
    """Every later call of this kind fails as well."""

    @property
    def option(self) -> str:
        what = f"signal={self.kind}" if self.kind in SIGNALS else f"error={self.kind}"
        return f"inject={self.call}:{what}:when={self.number}{'+' if self.lasting else ''}"


def prepare(folder: Path) -> None:
    """Forty small trajectories and a scope."""
    rows = [
        f"{k},{30.01 + k % 7 / 1000:.6f},{-39.98 + step / 1000:.6f},{1_700_000_000 + 600 * k + 20 * step}"
        for k in range(40)
        for step in range(6)
    ]
    (folder / "rides.csv").write_text("traj_id,lat,lon,t\n" + "\n".join(rows) + "\n")
    (folder / "small.toml").write_text(SCOPE)


@dataclass(frozen=True)
class Done:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


def run_once(folder: Path, *options: str) -> Done:
    """One command in a forked child under strace, with a new ledger and no release."""
    for path in (*folder.glob("l.sqlite*"), *folder.glob(".*"), folder / "r.json"):
        path.unlink(missing_ok=True)
    shutil.rmtree(folder / "state", ignore_errors=True)
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        _command(folder, wait)
    tracer = subprocess.Popen(["strace", "-qq", "-o", str(folder / "trace"), *options, "-p", str(child)])
    while "TracerPid:\t0\n" in Path(f"/proc/{child}/status").read_text():
        time.sleep(0.002)
    os.write(go, b"x")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    tracer.wait()
    os.close(wait)
    os.close(go)
    return Done(code, *((folder / name).read_text(errors="replace") for name in ("out.txt", "err.txt")))


def _command(folder: Path, wait: int) -> NoReturn:
    from wayveil.cli.main import main as wayveil

    code = 99
    try:
        os.chdir(folder)
        for number, name in ((1, "out.txt"), (2, "err.txt")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["wayveil", *COMMAND.split()]
        os.read(wait, 1)
        wayveil()
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            (folder / "modules.txt").write_text("\n".join(sys.modules))
            os._exit(code)


def import_everything(folder: Path) -> None:
    """Import what a command imports while it works, so that its forks need not."""
    run_once(folder, "-e", "trace=none")
    for name in (folder / "modules.txt").read_text().splitlines():
        with suppress(Exception):
            importlib.import_module(name)


def faults(folder: Path) -> Iterator[Fault]:
    """Every write-class call of an undisturbed run; errors only where it writes to a file."""
    calls = (*WRITES, *SYNCS, *NAMES)
    done = run_once(folder, "-y", "-e", f"trace={','.join(calls)}")
    if done.code != 0:
        raise SystemExit(f"The undisturbed run failed: {done.err}")
    seen = Counter[str]()
    for line in (folder / "trace").read_text(errors="replace").splitlines():
        found = re.match(r"(\w+)\((\d+<([^>]*)>)?", line)
        if found is None or found[1] not in calls:
            continue
        call = found[1]
        if Path(found[3] or "").name == "modules.txt":
            continue
        seen[call] += 1
        yield from (Fault(kind, call, seen[call]) for kind in SIGNALS)
        if call == "write" and Path(found[3] or "").name in ("out.txt", "err.txt"):
            continue  # What it prints.
        yield from (Fault(kind, call, seen[call]) for kind, where in ERRORS.items() if call in where)
        if call in SYNCS:
            yield Fault("EIO", call, seen[call], lasting=True)


def judge(folder: Path, done: Done) -> tuple[str, str]:
    """What the ledger and the folder say, and what is wrong with the message ('' if nothing is)."""
    from wayveil.errors import WayveilError
    from wayveil.privacy.ledger import Ledger

    try:
        spent = any(account.spent for account in Ledger(folder / "l.sqlite").datasets())
    except WayveilError as error:
        return "unreadable", f"the ledger cannot be used afterwards: {error}"
    released = (folder / "r.json").exists()
    state = ("spent" if spent else "not spent") + (", released" if released else "")
    says_spent = re.search("stays charged|is spent", done.err) is not None
    says_released = "is complete" in done.err or "release: " in done.out
    if "Whether the budget was spent is unknown" in done.err:
        return state + ", called unknown", ""
    if "Traceback" in done.err:
        return state, "a traceback"
    if spent != says_spent:
        return state, "says spent" if says_spent else "does not say spent"
    if released and not spent:
        return state, "released, and not spent"
    if released != says_released:
        return state, "says released" if says_released else "does not say released"
    return state, ""


def run(folder: Path, every: int = 1) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Counts by fault and outcome, and every wrong message."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    sys.dont_write_bytecode = True
    prepare(folder)
    import_everything(folder)
    table, wrong = Counter[tuple[str, str]](), []
    for fault in list(faults(folder))[::every]:
        done = run_once(folder, "-e", f"trace={fault.call}", "-e", fault.option)
        state, fault_found = judge(folder, done)
        name = f"{fault.kind}{' from then on' if fault.lasting else ''}"
        table[name, "wrong message" if fault_found else state] += 1
        if fault_found:
            last = done.err.strip().splitlines()[-1:] or [""]
            wrong.append(f"{fault.option}: {fault_found}; {state}; exit {done.code}; {last[0]}")
            print(wrong[-1], file=sys.stderr, flush=True)
    return table, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only every N-th fault")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        table, wrong = run(Path(folder), options.every)
    columns = sorted({state for _, state in table})
    print("| fault | runs | " + " | ".join(columns) + " |")
    print("|---|---:|" + "---:|" * len(columns))
    for kind in dict.fromkeys(kind for kind, _ in table):
        counts = [table[kind, state] for state in columns]
        print(f"| {kind} | {sum(counts)} | " + " | ".join(map(str, counts)) + " |")
    print(f"{table.total()} runs, {len(wrong)} wrong messages, {time.monotonic() - started:.0f} s")
    if wrong:
        raise SystemExit("A message did not match the ledger.")


if __name__ == "__main__":
    main()
