"""`wayveil demo`: the whole way once, on an invented city."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: wayveil demo -o wayveil-demo -n 10000")(demo)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for everything.")] = Path("wayveil-demo"),
    n: Annotated[int, typer.Option("-n", help="How many trajectories the invented city has.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the city and of the synthesis; the noise has none.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier demo.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the paths and steps as JSON.")] = False,
) -> None:
    """Simulate a city, then check, measure, synthesise with rules, evaluate, audit and report; no download, no setup.

    Each step shows the command that does the same on data of your own.
    """
    from wayveil.cli.console import note, print_json, progress_bar
    from wayveil.demo import Step, run_demo

    def say(step: Step) -> None:
        note(f"$ {step.command}\n  {step.outcome} ({step.seconds:.0f} s)")

    with progress_bar() as progress:
        result = run_demo(output, n, seed=seed, force=force, progress=progress, say=say)
    if as_json:
        print_json(result.to_dict())
        return
    print(f"synthetic data:  {result.files.synthetic}")
    print(f"data sheet:      {result.files.sheet}")
    print(f"internal report: {result.files.report}")
    note("The pages open in any browser, offline. Only the folder 'public' would be published.")
