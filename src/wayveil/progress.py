"""Progress of long-running functions: one callable that is given a stage and the share of it that is done."""

import html
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

FIRST_S = 2.0
"""Seconds before the first line of progress."""
EVERY_S = 10.0
"""Seconds between later lines."""
_NOTEBOOK_EVERY_S = 0.5
"""Seconds between updates of a line that is overwritten."""


class Progress(Protocol):
    """Called with the name of a stage and the share of it that is done, from 0 to 1."""

    def __call__(self, stage: str, done: float) -> None: ...


def quiet(stage: str, done: float) -> None:
    """Ignore the progress; the default."""


def part(progress: Progress, stage: str, first: float, last: float) -> Progress:
    """Progress of work that takes a stage from the share `first` to `last`; the names of its own stages are dropped."""
    return lambda _, done: progress(stage, first + (last - first) * min(max(done, 0.0), 1.0))


@contextmanager
def plain_lines(write: Callable[[str], None], first_s: float = FIRST_S, every_s: float = EVERY_S) -> Iterator[Progress]:
    """A listener for logs: a line after two seconds, then one about every ten, also while a stage is silent.

    A line is `stage: 40% (20 s)`. Shorter work writes nothing.
    """
    over = threading.Event()
    now = ("", 0.0)

    def listen(stage: str, done: float) -> None:
        nonlocal now
        now = (stage, done)

    arguments = (lambda: now, write, over.wait, time.monotonic, first_s, every_s)
    writer = threading.Thread(target=write_until_over, args=arguments, name="wayveil-progress", daemon=True)
    writer.start()
    try:
        yield listen
    finally:
        over.set()
        writer.join()


def write_until_over(
    now: Callable[[], tuple[str, float]],
    write: Callable[[str], None],
    over_within: Callable[[float], bool],
    clock: Callable[[], float],
    first_s: float,
    every_s: float,
) -> None:
    """Write the progress until `over_within` (seconds) says that the work is over; nothing before a stage begins."""
    begun, wait_s = clock(), first_s
    while not over_within(wait_s):
        stage, done = now()
        if stage:
            write(_line(stage, done, clock() - begun))
            wait_s = every_s


def show_progress(stage: str, done: float) -> None:
    """Display progress; give it as `progress=` to any function that takes one.

    In a notebook, it is one bar that changes in place. Elsewhere it is written to stderr: in a terminal as one line
    that is overwritten, otherwise as at most one line every ten seconds.

    Parameters
    ----------
    stage, done
        The name of a stage and the share of it that is done, from 0 to 1.

    Examples
    --------
    >>> import wayveil
    >>> made = wayveil.synthesize("rides.release.json", progress=wayveil.show_progress)  # doctest: +SKIP

    Privacy
    -------
    Free (it receives nothing about the data).
    """
    now = time.monotonic()
    new = stage != _last["stage"] or done < _last["done"]
    notebook = _in_notebook()
    wait_s = _NOTEBOOK_EVERY_S if notebook or sys.stderr.isatty() else EVERY_S
    _last.update(stage=stage, done=done)
    due = now - _last["shown"] >= wait_s
    if not due and not ((new or done >= 1.0) and (notebook or sys.stderr.isatty())):
        return
    _last["shown"] = now
    text = _line(stage, done, None)
    if notebook:
        _last["handle"] = _show(text, done, _last["handle"])
    elif sys.stderr.isatty():
        print(f"\r\x1b[2K{text}", end="\n" if done >= 1.0 else "", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


_last: dict[str, Any] = {"stage": "", "done": 0.0, "shown": -EVERY_S, "handle": None}


def _line(stage: str, done: float, elapsed_s: float | None) -> str:
    clock = "" if elapsed_s is None else f" ({elapsed_s:.0f} s)"
    return f"{stage}: {min(max(done, 0.0), 1.0):.0%}{clock}"


def _in_notebook() -> bool:
    # Only a program that has IPython loaded can be one; nothing is imported to find out.
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell is not None else None
    return kernel is not None and kernel.__class__.__name__ == "ZMQInteractiveShell"


def _show(text: str, done: float, handle: Any) -> Any:
    """Show a bar and the text in this cell's progress line; each cell has its own."""
    display: Any = importlib.import_module("IPython.display").display
    kernel = sys.modules["IPython"].get_ipython()
    cell = kernel.execution_count
    bar = f'<progress value="{min(max(done, 0.0), 1.0):.3f}" max="1" style="width:16em"></progress>'
    bundle = {"text/plain": text, "text/html": f"<div>{bar} {html.escape(text)}</div>"}
    if handle is not None and handle[0] == cell:
        handle[1].update(bundle, raw=True)
        return handle
    return cell, display(bundle, raw=True, display_id=True)
