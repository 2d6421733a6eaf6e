"""`wayveil scope`: write, show and list scopes."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import options as opt
from wayveil.cli.console import note, print_json


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="The public limits of a dataset: box, time zone, days, caps.",
        epilog="Example: wayveil scope new -o my-city.toml",
        no_args_is_help=True,
    )
    group.command(
        epilog="Example: wayveil scope new --name Paris --bbox 48.80 2.22 48.91 2.47 --timezone Europe/Paris "
        "--days 2024-03-04 2024-03-31 --hours 06:00-22:00 -o paris.toml"
    )(new)
    group.command(epilog="Example: wayveil scope show san-francisco")(show)
    group.command("list", epilog="Example: wayveil scope list")(list_scopes)
    app.add_typer(group, name="scope")


def new(
    name: Annotated[str | None, typer.Option("--name", help="Name of the scope; the release states it.")] = None,
    bbox: Annotated[
        tuple[float, float, float, float] | None,
        typer.Option("--bbox", metavar="S W N E", help="South, west, north and east in degrees."),
    ] = None,
    timezone: Annotated[str | None, typer.Option("--timezone", help="Time zone, such as Europe/Paris.")] = None,
    days: Annotated[
        tuple[str, str] | None,
        typer.Option("--days", metavar="FIRST LAST", help="First and last day, such as 2024-03-04 2024-03-31."),
    ] = None,
    hours: Annotated[
        str | None, typer.Option("--hours", help="Hours of the day, such as 06:00-11:00; all day if left out.")
    ] = None,
    roads: Annotated[
        Path | None, typer.Option("--roads", help="Public road map whose extent becomes the box, instead of --bbox.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; by default standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a scope from public knowledge, never from the data; without options, a commented template to fill in."""
    from wayveil.io.atomic import write_text
    from wayveil.io.outputs import check_output
    from wayveil.io.replaceable import check_keeps_trajectories
    from wayveil.workflow.templates import template

    given = (name, bbox, timezone, days, hours, roads)
    filled = any(value is not None for value in given)
    text = _filled(name, bbox, timezone, days, hours, roads) if filled else template("scope")
    if output is None:
        print(text, end="")
        return
    check_output(output, force=force)
    check_keeps_trajectories(output, _is_toml)
    write_text(output, text, private=False)
    note(f"Wrote '{output.name}'" + (
        "." if filled else "; fill it in from public knowledge, never from the data."
    ))  # fmt: skip


_MOST_BYTES = 1 << 20
"""A larger file is not a scope."""


def _is_toml(path: Path) -> bool:
    import tomllib

    from wayveil.io.inputs import read_text

    try:
        tomllib.loads(read_text(path, _MOST_BYTES))
    except (OSError, ValueError):
        return False
    return True


def _filled(
    name: str | None,
    bbox: tuple[float, float, float, float] | None,
    timezone: str | None,
    days: tuple[str, str] | None,
    hours: str | None,
    roads: Path | None,
) -> str:
    from wayveil.errors import InputError
    from wayveil.io.roads import read_roads
    from wayveil.io.scope_files import box_of_roads, filled_scope

    missing = [option for option, value in (("--name", name), ("--timezone", timezone)) if value is None]
    missing += ["--bbox (or --roads)"] if bbox is None and roads is None else []
    if missing:
        raise InputError(f"A scope also needs {', '.join(missing)}; without any option, a template is written.")
    if bbox is None and roads is not None:
        bbox = box_of_roads(read_roads(roads))
        note(f"The box of the road map is --bbox {' '.join(f'{side:g}' for side in bbox)}.")
    assert name is not None and bbox is not None and timezone is not None
    return filled_scope(name=name, bbox=bbox, timezone=timezone, days=days, hours=hours)


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A scope file, or the name of a shipped scope.")],
    as_json: opt.Json = False,
) -> None:
    """Validate and print a scope."""
    from wayveil.io.scope_files import read_scope, scope_text

    scope = read_scope(name)
    if as_json:
        print_json(scope.model_dump(mode="json"))
    else:
        print(scope_text(name), end="")


def list_scopes(as_json: opt.Json = False) -> None:
    """List the scopes that come with wayveil."""
    from wayveil.io.scope_files import shipped_scopes

    if as_json:
        print_json({"scopes": list(shipped_scopes())})
        return
    print("\n".join(shipped_scopes()))
