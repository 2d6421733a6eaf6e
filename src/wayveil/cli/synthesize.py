"""`wayveil synthesize`: from a release to synthetic trajectories."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import options as opt
from wayveil.cli.argument_names import as_options
from wayveil.cli.console import note, print_json, progress_bar, synthesis_summary
from wayveil.io.options import WRITABLE_ENDINGS


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: wayveil synthesize rides.release.json --roads roads.parquet --rules rules.geojson "
        "-o synthetic.parquet"
    )(synthesize)


def synthesize(
    release_file: opt.ReleaseFile,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help=f"File to write; its extension selects the format: {WRITABLE_ENDINGS}."),
    ],
    roads: Annotated[Path | None, typer.Option("--roads", help="A public road map for the trips to follow.")] = None,
    rules: Annotated[Path | None, typer.Option("--rules", help="Traffic rules (GeoJSON) to obey.")] = None,
    n: Annotated[
        int | None, typer.Option("-n", min=1, help="Number of trajectories; by default the release's noisy count.")
    ] = None,
    people: Annotated[
        int | None,
        typer.Option(
            "--people", min=1, help="Number of people instead of -n; needs a release measured with --unit user."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The same seed gives the same output.")] = None,
    estimator: Annotated[str, typer.Option(help="How the noisy fields are smoothed: learned or bayes.")] = "learned",
    times: opt.Times = None,
    mode: opt.Mode = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Overwrite an existing file even if it is not synthetic, but never private trajectories."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Without -n: use the noisy count even if it is unreliable or very large.")
    ] = False,
    as_json: opt.Json = False,
    engine: opt.EngineName = "serial",
    address: opt.Address = None,
) -> None:
    """Make synthetic trajectories from a release. The private data is not read again, and nothing is spent.

    Columns: traj_id, lat, lon, t (Unix seconds, UTC), and user_id if the release has answers about people. Parquet is
    written shard by shard: after an interruption, the same command continues where it stopped.
    """
    from wayveil.release.describe import NOT_PRIVATE
    from wayveil.workflow.synthesize_file import synthesize_file

    try:
        with progress_bar() as progress:
            summary = synthesize_file(
                release_file, output, roads=roads, rules=rules, n=n, people=people, seed=seed, estimator=estimator,
                engine=opt.engine_named(engine, address), times=times, mode=mode, force=force,
                yes=yes, say=note, progress=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        parts = output.with_name(output.name + ".parts")
        if parts.exists():
            note(
                f"'{parts.name}' holds the finished part; repeat the command to continue, or delete it to start over."
            )
        raise
    if summary["resumed"]:
        note("Continued an earlier run that was interrupted.")
    if not summary["differentially_private"]:
        note(NOT_PRIVATE)
    if summary["few"]:
        note(as_options(summary["few"]))
    if as_json:
        print_json(summary)
        return
    print(f"synthetic: {output}")
    note(synthesis_summary(summary))
