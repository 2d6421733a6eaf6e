"""`wayveil`: the verbs put together, and the one place where errors become exit codes."""

import importlib
import sys

import typer

from wayveil.errors import WayveilError

EXIT_CODES = """Exit codes: 0 done; 1 something unexpected; 2 bad input (one sentence says which and the cure);
3 refused by the privacy budget; 130 interrupted."""

app = typer.Typer(
    name="wayveil",
    help="Private GPS trajectories in, synthetic ones that anybody may have out.\n\n" + EXIT_CODES,
    epilog="Example: wayveil measure rides.csv --dataset rides --scope my-city.toml --epsilon 1 --unit trajectory "
    "-o rides.release.json",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

VERBS = (
    "demo", "check", "convert", "scope", "measure", "describe", "synthesize", "evaluate", "audit", "report", "ledger",
    "rules", "bench", "paper", "run", "simulate",
)  # fmt: skip

for _verb in VERBS:
    # A verb's module has `register(app)`; it imports nothing heavy until the verb runs.
    importlib.import_module(f"wayveil.cli.{_verb}").register(app)


@app.callback()
def _options(
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks of unexpected errors; they may quote the data."),
) -> None:
    _state["debug"] = debug


_state = {"debug": False}


def main() -> None:
    """Run the command line; every failure is one sentence and an exit code."""
    try:
        app(standalone_mode=True)
    except WayveilError as error:
        print(f"wayveil: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        print("wayveil: interrupted; nothing half-written was left behind.", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        raise SystemExit(0) from None
    except Exception as error:
        if _state["debug"]:
            raise
        # The text of an unexpected error may quote a value of the data, so only its kind and place are shown.
        kind, place = type(error).__name__, _own_frame(error)
        print(f"wayveil: unexpected {kind} {place}; run with --debug to see it in full.", file=sys.stderr)
        raise SystemExit(1) from None


def _own_frame(error: BaseException) -> str:
    frame, place = error.__traceback__, "outside wayveil"
    while frame is not None:
        name = frame.tb_frame.f_globals.get("__name__", "")
        if name.startswith("wayveil"):
            place = f"in {name}, line {frame.tb_lineno}"
        frame = frame.tb_next
    return place
