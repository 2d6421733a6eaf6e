"""`wayveil scope`: write, show and list scopes."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli.console import note, print_json


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="The public frame of a dataset: box, time zone, days, caps.",
        epilog="Example: wayveil scope new -o my-city.toml",
        no_args_is_help=True,
    )
    group.command(epilog="Example: wayveil scope new -o my-city.toml")(new)
    group.command(epilog="Example: wayveil scope show san-francisco")(show)
    group.command("list", epilog="Example: wayveil scope list")(list_scopes)
    app.add_typer(group, name="scope")


def new(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; by default standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented template to fill in from public knowledge."""
    from wayveil.io.atomic import write_text
    from wayveil.io.outputs import check_output
    from wayveil.workflow.templates import template

    if output is None:
        print(template("scope"), end="")
        return
    check_output(output, force=force)
    write_text(output, template("scope"), private=False)
    note(f"Wrote '{output.name}'; fill it in from public knowledge, never from the data.")


def show(
    name: Annotated[str, typer.Argument(help="A scope file, or the name of a shipped scope.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON, including defaults.")] = False,
) -> None:
    """Validate and print a scope."""
    from wayveil.io.scope_files import read_scope, scope_text

    scope = read_scope(name)
    if as_json:
        print_json(scope.model_dump(mode="json"))
    else:
        print(scope_text(name), end="")


def list_scopes(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the scopes that come with wayveil."""
    from wayveil.io.scope_files import shipped_scopes

    if as_json:
        print_json({"scopes": list(shipped_scopes())})
        return
    print("\n".join(shipped_scopes()))
