"""`wayveil rules`: check a rules file, or write a page in which rules are drawn."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import options as opt
from wayveil.cli.argument_names import as_options
from wayveil.cli.console import note, note_missing_zone, print_json, progress_bar
from wayveil.errors import InputError

_EXAMPLE = "Example: wayveil rules check rules.geojson --scope san-francisco --roads sf_roads.parquet"
rules_app = typer.Typer(
    help="Traffic rules: closed areas, speed limits, one-way streets.", epilog=_EXAMPLE, no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    """Add `wayveil rules`."""
    app.add_typer(rules_app, name="rules")


@rules_app.callback()
def _rules() -> None:
    """Traffic rules: closed areas, speed limits, one-way streets."""


@rules_app.command("check", epilog=_EXAMPLE)
def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="GeoJSON; the properties of each feature name its rule.")
    ],
    scope: Annotated[
        str | None,
        typer.Option("--scope", help="Scope file, or the name of a shipped scope, for its box and time zone."),
    ] = None,
    roads: Annotated[
        Path | None,
        typer.Option("--roads", help="Road map, for rules that need one and as the background of the picture."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Picture to write (.png or .svg); by default FILE's name with .check.png in the current folder.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; draw only with -o.")] = False,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw nothing.")] = False,
) -> None:
    """Explain a rules file in plain language, find contradictions, and draw it.

    A rule is a GeoJSON feature with properties like {"rule": "closed", "from": "22:00", "to": "06:00"} on a polygon,
    or {"rule": "speed_limit", "kmh": 50} with geometry null for everywhere. FILE alone is enough; a scope adds its box
    and the time zone of the hours, and a road map adds the streets that the rules refer to.
    """
    from wayveil.errors import in_short
    from wayveil.io.outputs import check_outputs
    from wayveil.io.roads import roads_of
    from wayveil.io.scope_files import read_scope
    from wayveil.rules import check as check_rules
    from wayveil.rules.picture import check_picture_name, picture_of

    if output is not None:
        check_picture_name(output)
        if no_picture:
            raise InputError("-o and --no-picture contradict each other; leave one of them out.")
    picture = None if no_picture or (as_json and output is None) else output or picture_of(file)
    # Without -o, a picture that cannot be written is only reported.
    why_not = _failure(lambda: check_outputs([picture], inputs=[file, scope, roads]), raised=output is not None)
    frame = None if scope is None else read_scope(scope)
    if frame is not None:
        note_missing_zone(frame)
    with progress_bar() as progress:
        checked = check_rules(file, frame, roads_of(roads), progress)
        why_not = why_not or checked.why_no_frame
        if picture is not None and not why_not:
            why_not = _failure(partial(checked.draw, picture), raised=output is not None)
    if as_json:
        print_json(checked.to_dict("--roads"))
    else:
        print(checked.text("--scope", "--roads"))
    if why_not and not no_picture:
        note(why_not)
    elif picture is not None:
        drawn = f"Drew the rules to {in_short(picture.name)}."
        note(drawn) if as_json or output is not None else print(drawn)


def _failure(draw: Callable[[], object], raised: bool) -> str | None:
    """Why the rules were not drawn; None if they were. With `raised`, the error is raised instead."""
    try:
        draw()
    except InputError as error:
        if raised:
            raise
        return f"{as_options(error)} The rules were not drawn."
    return None


@rules_app.command(
    "draw",
    epilog="Example: wayveil rules draw --scope my-city.toml --roads roads.parquet -o draw-rules.html",
)
def draw(
    scope: Annotated[
        str, typer.Option("--scope", help="Scope file, or the name of a shipped scope: the area of the map.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write; replaces an earlier page.")],
    roads: Annotated[Path | None, typer.Option("--roads", help="Road map: the streets to draw on.")] = None,
    rules: Annotated[Path | None, typer.Option("--rules", help="A rules file (GeoJSON) to start from.")] = None,
    as_json: opt.Json = False,
) -> None:
    """Write a page in which you draw rules on a map, set hours and days, check them, and save them as GeoJSON.

    The page is one file that works offline in any browser. It can also open a rules file, and it finds the same
    contradictions as `wayveil rules check`. Give the saved file to `wayveil synthesize --rules`.
    """
    from wayveil.io.outputs import check_page
    from wayveil.io.roads import roads_of
    from wayveil.io.scope_files import read_scope
    from wayveil.rules import write_editor

    check_page(output, [scope, roads, rules])
    with progress_bar() as progress:
        progress("reading the road map", 0.0)
        write_editor(output, scope, roads=roads_of(roads), rules=rules, progress=progress)
    note_missing_zone(read_scope(scope))
    if as_json:
        print_json({"page": str(output)})
    else:
        print(f"page: {output}")
        note("Open it in a browser, draw the rules, and save them there.")
