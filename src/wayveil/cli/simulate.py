"""`wayveil simulate`: the embedded city, to a file."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli.console import note, print_json, progress_bar


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        name="simulate",
        epilog="Example: wayveil simulate -o city.parquet --roads roads.parquet --rules rules.geojson "
        "--scope-out city.toml",
    )(simulate)


def simulate(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File for the trajectories: .parquet, or small ones .csv, .gpx.")
    ],
    n: Annotated[int, typer.Option("-n", min=1, max=100_000_000, help="How many trajectories.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same city and the same people.")] = 0,
    size_km: Annotated[
        tuple[float, float] | None, typer.Option("--size-km", help="Extent east–west and north–south, such as 12 10.")
    ] = None,
    pattern: Annotated[str, typer.Option(help="Districts: mixed, grid or organic.")] = "mixed",
    hot_spots: Annotated[int, typer.Option(min=1, max=100, help="Places, besides homes, that draw people.")] = 9,
    roads: Annotated[Path | None, typer.Option(help="Also write the road map (.parquet or .geojson).")] = None,
    rules: Annotated[Path | None, typer.Option(help="Also write the traffic rules (.geojson).")] = None,
    scope_out: Annotated[Path | None, typer.Option("--scope-out", help="Also write the scope (.toml).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Invent a city and the GPS trajectories of its people: demo, test data and scale test, free of any privacy."""
    from wayveil.atomic import write_text
    from wayveil.formats.options import files_written, format_of
    from wayveil.formats.roads import write_roads
    from wayveil.outputs import check_output, check_outputs
    from wayveil.simulate import rules_text, scope_toml, simulate_city, simulate_to_file

    check_outputs([*files_written(output, format_of(output)), roads, rules, scope_out])
    for target in filter(None, (output, roads, rules, scope_out)):
        check_output(target, force=force)
    with progress_bar() as progress:
        city = simulate_city(seed, size_km=size_km, pattern=pattern, hot_spots=hot_spots)  # type: ignore[arg-type]
        if roads is not None:
            write_roads(city.roadmap, roads)
        if rules is not None:
            write_text(rules, rules_text(city), private=False)
        if scope_out is not None:
            write_text(scope_out, scope_toml(city), private=False)
        simulate_to_file(output, n, seed, city=city, progress=progress)
    written = {"trajectories": output, "roads": roads, "rules": rules, "scope": scope_out}
    if as_json:
        print_json({"n": n, "seed": seed, **{name: str(path) for name, path in written.items() if path is not None}})
        return
    for name, path in written.items():
        if path is not None:
            print(f"{name}: {path}")
    if scope_out is None and size_km is None:
        note("Its scope is shipped: --scope demo-city.")
