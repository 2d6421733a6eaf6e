"""What every verb shares: results to stdout, progress and notes to stderr, JSON when asked."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from wayveil.errors import InputError, printable
from wayveil.progress import Progress, plain_lines

if TYPE_CHECKING:
    from wayveil.scope import Scope

NOT_FOR_PUBLICATION = "Not for publication: this output was computed from the private data."


def note(text: str) -> None:
    """A remark for the person, on stderr; one that cannot be shown does not stop the work."""
    with suppress(OSError):
        print("\n".join(map(printable, text.split("\n"))), file=sys.stderr, flush=True)


def note_clocks(scope: "Scope") -> None:
    """Say where a scope left its time zone out."""
    from wayveil.scope import no_zone_words

    if words := no_zone_words(scope):
        note(words)


def print_json(value: Any) -> None:
    """A machine-readable result on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False), flush=True)


def made_words(made: dict[str, Any]) -> str:
    """What `wayveil.steps.synthesize_file` made, in a sentence: how many, and how many break a rule."""
    broken = {name: found["trajectories"] for name, found in made["diagnostics"]["violations_after"].items()}
    rules = ", ".join(f"{count:,} break '{name}'" for name, count in broken.items() if count)
    if not rules and made.get("rules"):
        diagnostics = made["diagnostics"]
        rules = (
            "none breaks a rule"
            + _changed_words(diagnostics["changed"])
            + _avoided_words(diagnostics.get("avoided", []))
        )
    number = made["trajectories"]
    return f"{number:,} synthetic trajector{'y' if number == 1 else 'ies'}{'; ' + rules if rules else ''}."


def _changed_words(changed: dict[str, int]) -> str:
    """What obeying took, in brackets; nothing where it took nothing."""
    words = {"retimed": "got other times", "moved": "were moved", "replaced": "were replaced", "left_out": "left out"}
    took = ", ".join(f"{changed[kind]:,} {what}" for kind, what in words.items() if changed.get(kind))
    return f" ({took} for it)" if took else ""


def _avoided_words(names: list[str]) -> str:
    """Which areas were driven around though they are open at times."""
    areas = ", ".join(f"'{name}'" for name in names)
    return (
        f"; too many trips pass {areas} at closed hours to depart at others, so it is avoided at all hours"
        if areas
        else ""
    )


def _can_draw() -> bool:
    """Whether stderr is a terminal that can be drawn over; `!wayveil` in a notebook has one that only seems to be."""
    environment = os.environ
    notebook = "JPY_PARENT_PID" in environment or (
        environment.get("TERM") == "xterm-color" and environment.get("GIT_PAGER") == "cat"
    )
    return sys.stderr.isatty() and environment.get("TERM") != "dumb" and not notebook


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A listener that draws a bar on stderr; without a terminal, a line after two seconds and about every ten.

    Whoever tells it how far the work is hears of an interruption that was lost.
    """
    from wayveil.cli.interrupts import stop_if_any

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
    """Warnings about the ledger become notes; other warnings, which may quote values, are not shown."""
    import warnings

    from wayveil.errors import LedgerWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", LedgerWarning)
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                note(f"Warning: {message}")


class _Checked:
    """A stream whose failures are told apart from those of other files."""

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
    """Inside, a result that cannot be written to stdout (a full disk) is an InputError; at the end all is flushed."""
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
            f"Cannot write the result to standard output: {error.strerror}; files named by options are not affected."
        ) from None


def _discard(stream: TextIO) -> None:
    """Send what is still in the buffer nowhere, so that the interpreter does not fail on it once more at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
