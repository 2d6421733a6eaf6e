"""What every verb shares: results to stdout, progress and notes to stderr, JSON when asked."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wayveil.progress import Progress, plain_lines

if TYPE_CHECKING:
    from wayveil.scope import Scope

NOT_FOR_PUBLICATION = "Not for publication: this output was computed from the private data."


def note(text: str) -> None:
    """One line for the person, on stderr."""
    print(text, file=sys.stderr, flush=True)


def note_clocks(scope: "Scope") -> None:
    """Say where a scope left its time zone out."""
    from wayveil.scope import no_zone_words

    if words := no_zone_words(scope):
        note(words)


def print_json(value: Any) -> None:
    """A machine-readable result on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


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
    """What the ledger warns of becomes a note; other warnings, which may quote values, are not shown."""
    import warnings

    from wayveil.measurement import SameContentWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", SameContentWarning)
        try:
            yield
        finally:
            for warning in caught:
                note(f"Warning: {warning.message}")
