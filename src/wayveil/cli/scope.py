"""`wayveil scope`: write, show and list scopes."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the group of verbs."""
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
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; without it, stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented template to fill in from public knowledge."""
    from wayveil.atomic import write_text
    from wayveil.cli.console import note
    from wayveil.outputs import check_output
    from wayveil.scope import TEMPLATE

    if output is None:
        print(TEMPLATE, end="")
        return
    check_output(output, force=force)
    write_text(output, TEMPLATE, private=False)
    note(f"Wrote '{output.name}'; fill it in from public knowledge, never from the data.")


def show(
    name: Annotated[str, typer.Argument(help="A scope file, or the name of a shipped scope.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON, defaults filled in.")] = False,
) -> None:
    """Print a scope, after checking that it is a valid one."""
    from wayveil.cli.console import print_json
    from wayveil.scope import read_scope, scope_text

    scope = read_scope(name)
    if as_json:
        print_json(scope.model_dump(mode="json"))
    else:
        print(scope_text(name), end="")


def list_scopes(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Name the scopes that come with wayveil."""
    from wayveil.cli.console import print_json
    from wayveil.scope import shipped_scopes

    if as_json:
        print_json({"scopes": list(shipped_scopes())})
        return
    print("\n".join(shipped_scopes()))
