"""`wayveil convert`: from one format to another."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import column_options as col
from wayveil.cli import options as opt
from wayveil.cli.console import note, print_json, progress_bar
from wayveil.io.options import WRITABLE_ENDINGS


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: wayveil convert vans.csv trips.parquet --traj-column van --time-column when "
        "--timezone Europe/Paris --split-minutes 10"
    )(convert)


@col.with_columns()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="File or folder of trajectories.")],
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT", help=f"File to write; its extension selects the format: {WRITABLE_ENDINGS}."),
    ],
    to: Annotated[
        str | None, typer.Option("--to", help="Format of the output, if the extension does not select it.")
    ] = None,
    times: opt.Times = None,
    mode: opt.Mode = None,
    split_minutes: Annotated[
        float | None,
        typer.Option(
            "--split-minutes",
            help="Split recordings (--traj-column names the vehicle, phone or user) into trips at gaps longer than "
            "this.",
        ),
    ] = None,
    as_json: opt.Json = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    *,
    columns: col.Columns,
) -> None:
    """Read trajectories in any known format, sort them, and write them in another.

    The output contains the same private data as the input. With --split-minutes, the column named by --traj-column
    becomes the user (unless there is a user column), for `wayveil measure --unit user`.
    """
    from wayveil.io.convert import convert as convert_data

    with progress_bar() as progress:
        convert_data(
            source, target, to=to, times=times, mode=mode, split_minutes=split_minutes, force=force,
            progress=progress, **columns,
        )
    if as_json:
        print_json({"file": str(target)})
    else:
        note(f"Wrote '{target.name}'.")
