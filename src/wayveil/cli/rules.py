"""`wayveil rules check`: a rules file in words and as a picture."""

from pathlib import Path

import typer

_EXAMPLE = "Example: wayveil rules check rules.geojson --scope san-francisco --roads sf_roads.parquet -o rules.png"
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
    scope: str = typer.Option(..., "--scope", help="Scope file, or the name of a shipped scope."),
    roads: Path | None = typer.Option(None, "--roads", help="Road map, for rules that need one and under the picture."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Draw the rules into this .png or .svg."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Explain a rules file in words, refuse contradictions, and draw it.

    A rule is a GeoJSON feature with properties like {"rule": "closed", "from": "22:00", "to": "06:00"} on a polygon,
    or {"rule": "speed_limit", "kmh": 50} with geometry null for everywhere.
    """
    from wayveil.cli.console import note, note_clocks, print_json, progress_bar
    from wayveil.rules import read_rules, with_scope_bounds
    from wayveil.rules.area import crossing_words
    from wayveil.rules.hours import has_hours
    from wayveil.rules.picture import check_picture_name, save_picture
    from wayveil.rules.rule import unique_names
    from wayveil.scope import read_scope

    if output is not None:
        check_picture_name(output)
    frame = read_scope(scope)
    note_clocks(frame)
    with progress_bar() as progress:
        roadmap = None
        if roads is not None:
            from wayveil.formats.roads import read_roads

            roadmap = read_roads(roads)
        rules = with_scope_bounds(read_rules(file, frame, roadmap, progress), frame)
        if output is not None:
            save_picture(output, rules, frame, roadmap)
    names = unique_names(rules)
    if as_json:
        print_json({"scope": frame.name, "timezone": frame.timezone, "rules": [
            {"name": name, "rule": type(rule).__name__, "text": rule.describe(), "remark": crossing_words(rule)}
            for name, rule in zip(names, rules)
        ]})  # fmt: skip
    else:
        for number, (name, rule) in enumerate(zip(names, rules), start=1):
            print(f"{number}. {name}: {rule.describe()}")
            if remark := crossing_words(rule):
                print(f"   {remark}")
        if any(has_hours(rule) for rule in rules):
            print(f"Hours are those of {frame.timezone}.")
        print("No contradiction was found.")
    if output is not None:
        note(f"Drew the rules into {output.name}.")
