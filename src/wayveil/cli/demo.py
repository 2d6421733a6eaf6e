"""`wayveil demo`: every step once, on a simulated city."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import options as opt
from wayveil.cli.console import note, print_json, progress_bar


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: wayveil demo -o wayveil-demo -n 10000")(demo)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for all files of the demo.")] = Path(
        "wayveil-demo"
    ),
    n: Annotated[int, typer.Option("-n", help="Number of trajectories to simulate.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the city and of the synthesis; the noise has no seed.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier demo.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Simulate a city, then check, measure, synthesize with rules, evaluate, audit and report; no download, no setup.

    Each step prints the command that does the same with your own data.
    """
    from wayveil.workflow.demo import Step, run_demo

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
    note("The pages open in any browser, offline. With real data, you would publish only the folder 'public'.")
