"""`wayveil run`: measure, synthesize and report from one TOML file."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: wayveil run --template > rides.toml; wayveil run rides.toml")(run)


def run(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.toml", help="The run file.")] = None,
    template: Annotated[bool, typer.Option("--template", help="Print a commented run file to fill in.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
) -> None:
    """Measure, synthesize and write the data sheet, as one TOML file says.

    If the release is there already, the run goes on from it and spends nothing. Its trips are others each time, unless
    the file has a seed.
    """
    from wayveil.cli.console import ledger_warnings, made_words, note, note_clocks, print_json, progress_bar
    from wayveil.errors import InputError
    from wayveil.release.describe import NOT_PRIVATE
    from wayveil.runfile import TEMPLATE, do_run, read_run
    from wayveil.scope import read_scope

    if template:
        print(TEMPLATE, end="")
        return
    if file is None:
        raise InputError("Name a run file, or print one to fill in with: wayveil run --template.")
    plan = read_run(file)
    note_clocks(read_scope(plan.measure.scope))
    with ledger_warnings(), progress_bar() as progress:
        done = do_run(plan, say=note, progress=progress)
    if not done["spent"]:
        note("The release was there already; nothing was spent.")
    if done["other_trips"]:
        name = Path(done["synthetic"]).name
        note(f"'{name}' was there already and holds other trips now; for the same ones in every run give a seed.")
    if not done["private"]:
        note(NOT_PRIVATE)
    if done["few"]:
        note(done["few"])
    if as_json:
        print_json(done)
        return
    for name in ("release", "synthetic", "report"):
        if done[name] is not None:
            print(f"{name}: {done[name]}", flush=True)
    note(made_words(done))
