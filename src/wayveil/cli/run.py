"""`wayveil run`: measure, synthesize and report from one TOML file."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import options as opt
from wayveil.cli.argument_names import as_options
from wayveil.cli.console import ledger_warnings, note, note_missing_zone, print_json, progress_bar, synthesis_summary
from wayveil.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: wayveil run --template > rides.toml; wayveil run rides.toml")(run)


def run(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.toml", help="The run file.")] = None,
    template: Annotated[bool, typer.Option("--template", help="Print a commented run file to fill in.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Measure, synthesize and write the data sheet, configured by one TOML file.

    If the release already exists, the run continues from it and spends nothing. Without a seed in the file, every run
    makes different trips.
    """
    from wayveil.io.scope_files import read_scope
    from wayveil.release.describe import NOT_PRIVATE
    from wayveil.workflow.run_file import do_run, read_run
    from wayveil.workflow.templates import template as text_of

    if template:
        print(text_of("run"), end="")
        return
    if file is None:
        raise InputError("Give a run file; `wayveil run --template` prints one to fill in.")
    plan = read_run(file)
    note_missing_zone(read_scope(plan.measure.scope))
    with ledger_warnings(), progress_bar() as progress:
        done = do_run(plan, say=note, progress=progress)
    if not done["spent"]:
        note("The release already exists; nothing was spent.")
    if done["other_trips"]:
        note("Its trips differ from the earlier ones; to get the same trips in every run, set a seed.")
    if not done["differentially_private"]:
        note(NOT_PRIVATE)
    if done["few"]:
        note(as_options(done["few"]))
    if as_json:
        print_json(done)
        return
    for name in ("release", "synthetic", "report"):
        if done[name] is not None:
            print(f"{name}: {done[name]}", flush=True)
    note(synthesis_summary(done))
