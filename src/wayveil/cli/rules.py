"""`wayveil rules check`: a rules file in words and as a picture."""

from pathlib import Path

import typer

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


@rules_app.command(
    "check",
    epilog=_EXAMPLE,
)
def check(
    file: Path = typer.Argument(..., help="GeoJSON; each feature's properties say which rule it is."),
    scope: str | None = typer.Option(None, "--scope", help="Scope file, or the name of a shipped scope, to check in."),
    roads: Path | None = typer.Option(None, "--roads", help="Road map, for rules that need one and under the picture."),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="Draw into this .png or .svg instead of FILE's name with .check.png, here."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON; draws only with -o."),
    no_picture: bool = typer.Option(False, "--no-picture", help="Words only."),
) -> None:
    """Explain a rules file in words, refuse contradictions, and draw it.

    A rule is a GeoJSON feature with properties like {"rule": "closed", "from": "22:00", "to": "06:00"} on a polygon,
    or {"rule": "speed_limit", "kmh": 50} with geometry null for everywhere. FILE alone is enough; a scope adds its
    box and the time zone of the hours, a road map the streets that rules speak of.
    """
    from wayveil.cli.console import note, note_clocks, print_json, progress_bar
    from wayveil.errors import InputError
    from wayveil.outputs import check_outputs
    from wayveil.rules import read_rules, with_scope_bounds
    from wayveil.rules.alone import read_alone
    from wayveil.rules.explain import closing_words, explained
    from wayveil.rules.picture import check_picture_name, picture_of, save_picture
    from wayveil.scope import in_short, read_scope

    if output is not None:
        check_picture_name(output)
        if no_picture:
            raise InputError("-o asks for a picture and --no-picture for none; leave one of them out.")
    picture = None if no_picture or (as_json and output is None) else output or picture_of(file)
    check_outputs([picture], inputs=[file, scope, roads])
    frame = None if scope is None else read_scope(scope)
    if frame is not None:
        note_clocks(frame)
    canvas, undrawn = frame, ""
    with progress_bar() as progress:
        roadmap = None
        if roads is not None:
            from wayveil.formats.roads import read_roads

            roadmap = read_roads(roads)
        if frame is not None:
            rules = with_scope_bounds(read_rules(file, frame, roadmap, progress, map_may_miss=True), frame)
        else:
            alone = read_alone(file, roadmap, progress)
            rules, canvas, undrawn = alone.rules, alone.frame, alone.why_no_frame
        if picture is not None and canvas is not None:
            try:
                save_picture(picture, rules, canvas, roadmap, border=frame is not None)
            except InputError as error:
                if output is not None:
                    raise
                undrawn = f"{error} The rules were not drawn."
    drawn = picture is not None and canvas is not None and not undrawn
    if as_json:
        zone = None if frame is None else frame.timezone
        print_json({"scope": None if frame is None else frame.name, "timezone": zone, "rules": explained(rules)})
    else:
        for number, rule in enumerate(explained(rules), start=1):
            print(f"{number}. {rule['name']}: {rule['text']}")
            if rule["remark"]:
                print(f"   {rule['remark']}")
        print(closing_words(rules, frame))
    if drawn and picture is not None:
        told = f"Drew the rules into {in_short(picture.name)}."
        note(told) if as_json or output is not None else print(told)
    elif undrawn and not no_picture:
        note(undrawn)
