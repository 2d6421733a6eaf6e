"""`wayveil`: all commands together, and the one place where errors become exit codes."""

import importlib
import os
import sys
import warnings
from contextlib import suppress
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from wayveil.cli import interrupts
from wayveil.cli.argument_names import as_options
from wayveil.cli.console import checked_stdout, note
from wayveil.core import outcome
from wayveil.errors import InputError, WayveilError

EXIT_CODES = """Exit codes: 0 success; 1 unexpected error; 2 bad input (the message says what to change);
3 refused by the privacy budget; 4 failed audit (`audit --strict`); 130 interrupted (Ctrl-C); 143 terminated
(SIGTERM)."""


class InterruptedCommandError(Exception):
    """Ctrl-C or SIGTERM, as an exception that the command line library does not handle itself."""


class _Commands(TyperGroup):
    """The commands; an interruption of any of them reaches `main` with the notes attached to it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise InterruptedCommandError from error


app = typer.Typer(
    name="wayveil",
    cls=_Commands,
    help="Turn private GPS trajectories into synthetic ones that can be published.\n\n" + EXIT_CODES,
    epilog="Example: wayveil measure rides.csv --dataset rides --scope my-city.toml --epsilon 1 --unit trajectory "
    "-o rides.release.json",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS = (
    "demo", "check", "convert", "scope", "plan", "measure", "describe", "synthesize", "tables", "evaluate", "audit",
    "report", "ledger", "rules", "bench", "paper", "run", "simulate",
)  # fmt: skip

for _command in COMMANDS:
    # The module of a command has `register(app)`; it imports nothing heavy until the command runs.
    importlib.import_module(f"wayveil.cli.{_command}").register(app)

REVEALS = "A traceback may show coordinates, times and identifiers of the private data; do not share it."
_CONFIRMED = "--debug=yes"
_state = {"debug": False, "confirmed": False}


def _version(wanted: bool) -> None:
    if wanted:
        import wayveil

        print(f"wayveil {wayveil.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help=f"Show tracebacks of unexpected errors. {REVEALS} Asks for confirmation; {_CONFIRMED} "
            "skips the question.",
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if debug and not _state["confirmed"]:
        if not sys.stdin.isatty():
            raise InputError(f"{REVEALS} To show it anyway, use {_CONFIRMED}.")
        if not typer.confirm(f"{REVEALS} Show tracebacks?", err=True):
            raise typer.Exit(0)
    _state["debug"] = debug


def main() -> None:
    """Run the command line; every failure is one sentence and an exit code."""
    words = sys.argv[1:]
    warnings.showwarning = _as_note
    _state.update(debug=False, confirmed=_CONFIRMED in words)
    # Outside the signal handlers: whatever stops the command, the message states what was already done.
    with outcome.collect() as facts:
        _run(words, facts)


def console_script() -> None:
    """Run the command line as a program of its own.

    After an interruption, native threads of jax may still compile. They crash while the interpreter shuts down, so the
    process ends at once; by then every file and lock is closed.
    """
    try:
        main()
    except SystemExit as stop:
        if stop.code not in (130, 143):
            raise
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(int(stop.code))


def _run(words: list[str], facts: list[str]) -> None:
    try:
        with interrupts.remembered(), checked_stdout():
            code = app(["--debug" if word == _CONFIRMED else word for word in words], standalone_mode=False)
    except WayveilError as error:
        missing = (fact for fact in facts if fact not in str(error))
        _stop(" ".join((as_options(error.command_line_text), *missing)), error.exit_code)
    except (KeyboardInterrupt, InterruptedCommandError, typer.Abort):
        what = "terminated" if interrupts.exit_code() != 130 else "interrupted"
        _stop(" ".join((f"{what}; no file was left half-written.", *facts)), interrupts.exit_code())
    except BrokenPipeError:
        raise SystemExit(0) from None
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # the command line itself was wrong
            error.show()
            if hint := _hint(error):
                print(hint, file=sys.stderr)
            raise SystemExit(error.exit_code) from None
        if _state["debug"]:
            raise
        # The text of an unexpected error may quote a value of the data, so only its kind and place are shown.
        kind, place = type(error).__name__, _own_frame(error)
        _stop(" ".join((f"unexpected {kind} {place}; run with --debug to see it in full.", *facts)), 1)
    raise SystemExit(code if isinstance(code, int) else 0)


_CHOICES = {
    "epsilon": "How much privacy to spend is your choice: --epsilon 1 is a common value; see "
    "docs/explanation/which-epsilon.md.",
    "unit": "Who is protected is your choice: --unit trajectory hides each trip, --unit user all trips of a person.",
    "scope": "The scope states the public limits of the data (box and days): a shipped scope such as --scope "
    "san-francisco, or a file of your own; `wayveil scope new` writes a template.",
    "dataset": "The ledger records the spending under a name that you choose for the data, such as --dataset rides.",
}


def _hint(error: Any) -> str:
    """Advice on a missing option that has no default because it is a choice; empty for other errors."""
    command = getattr(getattr(error, "ctx", None), "info_name", None)
    option = getattr(getattr(error, "param", None), "name", None)
    if type(error).__name__ != "MissingParameter" or (command != "measure" and option != "scope"):
        return ""
    return _CHOICES.get(str(option), "")


def _as_note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show wayveil's own warnings as one line each; those of other libraries may quote data and are not shown."""
    if category.__module__.startswith("wayveil"):
        note(f"Note: {as_options(message)}")


def _stop(sentence: str, code: int) -> None:
    note(f"wayveil: {sentence}")
    raise SystemExit(code) from None


def _own_frame(error: BaseException) -> str:
    frame, place = error.__traceback__, "outside wayveil"
    while frame is not None:
        name = frame.tb_frame.f_globals.get("__name__", "")
        if name.startswith("wayveil"):
            place = f"in {name}, line {frame.tb_lineno}"
        frame = frame.tb_next
    return place
