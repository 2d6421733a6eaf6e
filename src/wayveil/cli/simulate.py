"""`wayveil simulate`: write a simulated city to files."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import options as opt
from wayveil.cli.console import note, print_json, progress_bar


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="simulate",
        epilog="Example: wayveil simulate -o city.parquet --roads roads.parquet --rules rules.geojson "
        "--scope-out city.toml",
    )(simulate)


def simulate(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="File for the trajectories: .parquet, or .csv or .gpx for small ones."),
    ],
    n: Annotated[int, typer.Option("-n", min=1, max=100_000_000, help="Number of trajectories.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same city and the same trips.")] = 0,
    size_km: Annotated[
        tuple[float, float] | None,
        typer.Option("--size-km", help="Width (east–west) and height (north–south) of the city, such as 12 10."),
    ] = None,
    pattern: Annotated[str, typer.Option(help="Street pattern: mixed, grid or organic.")] = "mixed",
    hot_spots: Annotated[int, typer.Option(min=1, max=100, help="Number of destinations besides homes.")] = 9,
    roads: Annotated[Path | None, typer.Option(help="Also write the road map (.parquet or .geojson).")] = None,
    rules: Annotated[Path | None, typer.Option(help="Also write the traffic rules (.geojson).")] = None,
    scope_out: Annotated[Path | None, typer.Option("--scope-out", help="Also write the scope (.toml).")] = None,
    diaries: Annotated[
        bool,
        typer.Option(
            "--diaries", help="Simulate whole days from home to home: each trip starts where the last one ended."
        ),
    ] = False,
    kinematics: Annotated[
        bool, typer.Option("--kinematics", help="Simulate stops at red lights, slower turns and bounded acceleration.")
    ] = False,
    recorders: Annotated[
        bool,
        typer.Option(
            "--recorders", help="Simulate GPS devices that record by time or by distance, with gaps and errors."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Simulate a city and GPS trajectories of its residents, as test data that involves no real person."""
    from wayveil.simulate import Behaviour, check_city_files, simulate_city, write_city

    check_city_files(output, roads=roads, rules=rules, scope=scope_out, force=force)
    with progress_bar() as progress:
        city = simulate_city(seed, size_km=size_km, pattern=pattern, hot_spots=hot_spots)  # type: ignore[arg-type]
        behaviour = Behaviour(diaries, kinematics, recorders)
        files = {"roads": roads, "rules": rules, "scope": scope_out}
        written = write_city(city, output, n, seed, **files, behaviour=behaviour, force=force, progress=progress)
    if as_json:
        print_json({"n": n, "seed": seed, **{name: str(path) for name, path in written.items()}})
        return
    for name, path in written.items():
        print(f"{name}: {path}")
    if scope_out is None and size_km is None:
        note("The scope of this city comes with wayveil: --scope demo-city.")
