"""What all commands share: results to stdout, progress and notes to stderr, JSON on request."""

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from wayveil.cli.interrupts import stop_if_any
from wayveil.errors import InputError, LedgerWarning, printable
from wayveil.progress import Progress, plain_lines

if TYPE_CHECKING:
    from wayveil.core.scope import Scope

NOT_FOR_PUBLICATION = "Not for publication: this output was computed from the private data."


def note(text: str) -> None:
    """Print a note for the user to stderr; a note that cannot be printed does not stop the work."""
    with suppress(OSError):
        print("\n".join(map(printable, text.split("\n"))), file=sys.stderr, flush=True)


def note_missing_zone(scope: "Scope") -> None:
    """Print a note if the scope has no time zone."""
    from wayveil.core.scope import missing_zone_note

    if words := missing_zone_note(scope):
        note(words)


def print_json(value: Any) -> None:
    """Print a machine-readable result to stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False), flush=True)


def synthesis_summary(summary: dict[str, Any]) -> str:
    """The result of `synthesize_file` in one sentence: how many trajectories, and how many violate a rule."""
    broken = {name: found["trajectories"] for name, found in summary["diagnostics"]["violations_after"].items()}
    rules = ", ".join(f"{count:,} violate '{name}'" for name, count in broken.items() if count)
    if not rules and summary.get("rules"):
        diagnostics = summary["diagnostics"]
        rules = (
            "all obey the rules" + _changes_text(diagnostics["changed"]) + _avoided_text(diagnostics.get("avoided", []))
        )
    number = summary["trajectories"]
    return f"{number:,} synthetic trajector{'y' if number == 1 else 'ies'}{'; ' + rules if rules else ''}."


def _changes_text(changed: dict[str, int]) -> str:
    """How many trajectories were changed to obey the rules, in parentheses; empty if none was."""
    verbs = {"retimed": "given new times", "moved": "moved", "replaced": "replaced", "left_out": "left out"}
    changes = ", ".join(f"{changed[kind]:,} {verb}" for kind, verb in verbs.items() if changed.get(kind))
    return f" (to obey them: {changes})" if changes else ""


def _avoided_text(names: list[str]) -> str:
    """Which areas all trips avoid, although the areas are open at some hours."""
    areas = ", ".join(f"'{name}'" for name in names)
    return (
        f"; too many trips cross {areas} at closed hours to move them all to open hours, so trips go around at all "
        "hours"
        if areas
        else ""
    )


def _can_draw() -> bool:
    """Whether stderr is a terminal that supports a progress bar; `!wayveil` in a notebook only looks like one."""
    environment = os.environ
    notebook = "JPY_PARENT_PID" in environment or (
        environment.get("TERM") == "xterm-color" and environment.get("GIT_PAGER") == "cat"
    )
    return sys.stderr.isatty() and environment.get("TERM") != "dumb" and not notebook


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress function that draws a bar on stderr.

    Without a terminal, it prints a line after two seconds and then about every ten. A call also raises an
    interruption that a library suppressed.
    """
    with _bar() if _can_draw() else plain_lines(note) as draw:

        def listen(stage: str, done: float) -> None:
            stop_if_any()
            draw(stage, done)

        yield listen


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def draw(stage: str, done: float) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=1.0)
            bar.update(tasks[stage], completed=min(max(done, 0.0), 1.0))

        yield draw


@contextmanager
def ledger_warnings() -> Iterator[None]:
    """Show warnings about the ledger as notes, and no other warnings, because they may quote values of the data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", LedgerWarning)
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                note(f"Warning: {message}")


class _Checked:
    """A stream whose write errors can be distinguished from those of other files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _as_input_error(self._stream):
            return self._stream.write(text)

    def flush(self) -> None:
        with _as_input_error(self._stream):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def checked_stdout() -> Iterator[None]:
    """Turn a failed write to stdout (such as a full disk) into an InputError; flush at the end."""
    before: Any = sys.stdout
    checked: Any = _Checked(before)
    sys.stdout = checked
    try:
        yield
        checked.flush()
    except BaseException:
        with suppress(InputError, BrokenPipeError):  # there is something else to report
            checked.flush()
        raise
    finally:
        sys.stdout = before


@contextmanager
def _as_input_error(stream: TextIO) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        _discard(stream)
        raise
    except OSError as error:
        _discard(stream)
        raise InputError(
            f"Cannot write the result to standard output: {error.strerror}; output files are not affected."
        ) from None


def _discard(stream: TextIO) -> None:
    """Discard what is still in the buffer, so that the interpreter does not fail on it again when it exits."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
