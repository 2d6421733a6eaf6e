"""`wayveil measure`: the only verb that touches private data and spends its budget."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import columns as col
from wayveil.cli import engines
from wayveil.cli.numbers import whole_number


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        epilog="Example: wayveil measure rides.csv --dataset rides --scope my-city.toml --epsilon 1 --unit user "
        "--max-per-user 10 -o rides.release.json"
    )(measure)


def measure(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File or folder of private trajectories.")],
    dataset: Annotated[str, typer.Option("--dataset", help="The name on the ledger whose budget pays.")],
    scope: Annotated[str, typer.Option("--scope", help="Scope file, or the name of a shipped one.")],
    epsilon: Annotated[str, typer.Option("--epsilon", help="How much privacy to spend; 1 is a common choice.")],
    unit: Annotated[str, typer.Option("--unit", help="What is protected: trajectory or user.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The release to write, X.release.json.")],
    max_per_user: Annotated[
        int | None,
        typer.Option(
            "--max-per-user",
            parser=whole_number,
            metavar="C",
            help="Maximum number of trajectories used per user (with --unit user).",
        ),
    ] = None,
    roads: Annotated[
        Path | None, typer.Option("--roads", help="The public road map for synthesis; checked before the spend.")
    ] = None,
    delta: Annotated[
        str, typer.Option("--delta", help="Above 0 (like 1e-6): Gaussian noise, for an (epsilon, delta) promise.")
    ] = "0",
    ledger: Annotated[
        Path | None, typer.Option("--ledger", metavar="PATH", help="The ledger file; by default in your data folder.")
    ] = None,
    expected_trips: Annotated[
        int | None, typer.Option("--expected-trips", metavar="N", help="About how many trajectories you expect.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Measure even where the noise would hide the data.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing release.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
    engine: engines.EngineName = "serial",
    address: engines.Address = None,
    format: col.Format = None,
    traj_column: col.TrajColumn = None,
    user_column: col.UserColumn = None,
    lon_column: col.LonColumn = None,
    lat_column: col.LatColumn = None,
    time_column: col.TimeColumn = None,
    timezone: col.Timezone = None,
    drop_bad_rows: col.IgnoredDropBadRows = False,
) -> None:
    """Compute a fixed set of statistics on the private data, add noise, and write a release that may be published.

    The ledger is charged with epsilon, and refuses (exit code 3) where the dataset's total does not allow it. A
    dataset that is not on the ledger yet is opened with this epsilon as its total. How large the noise will be is
    printed first; where it would hide the data, nothing is read or spent without --yes.

    Run `wayveil check` first: rows that cannot be used contribute nothing here, without a message, because whether
    there are any is private.
    """
    from shlex import quote

    from wayveil.cli.console import ledger_warnings, note, note_clocks, print_json, progress_bar
    from wayveil.formats.reading import says_synthetic
    from wayveil.privacy.accounts import left_words
    from wayveil.privacy.budget import decimal_text, exact_delta
    from wayveil.privacy.ledger import Ledger, clean_name
    from wayveil.privacy.unit import parse_unit
    from wayveil.release.words import few_words, large_words
    from wayveil.scope import read_scope
    from wayveil.signal_check import OPTIONS, check_signal, count_noise, noise_words
    from wayveil.steps import measure_file

    options = col.read_options(
        format, traj_column, user_column, lon_column, lat_column, time_column, timezone, drop_bad_rows
    )
    if says_synthetic(Path(file)):
        note(f"'{Path(file).name}' is marked as synthetic; did you mean to pass the private data?")
    note_clocks(read_scope(scope))
    protects = parse_unit(unit, max_per_user)
    noise, gaussian = count_noise(epsilon=epsilon, unit=protects, delta=delta), exact_delta(delta) > 0
    check_signal(noise, protects, expected_trips=expected_trips, accept=yes, delta=gaussian, wording=OPTIONS)
    note(noise_words(noise))
    with ledger_warnings(), progress_bar() as progress:
        release = measure_file(
            file, output, scope=scope, epsilon=epsilon, unit=protects, dataset=dataset,
            ledger=ledger, delta=delta, roads=roads, engine=engines.engine_named(engine, address), force=force,
            read_options=options, progress=progress,
        )  # fmt: skip
    spent = decimal_text(release.epsilon)
    if as_json:
        print_json({"release": str(output), "dataset": dataset, "epsilon": spent, "delta": release.delta,
                    "unit": release.unit, "private": release.private})  # fmt: skip
        return
    print(f"release: {output}", flush=True)
    account = next(one for one in Ledger(ledger).datasets() if one.name == clean_name(dataset))
    left = " and ".join(left_words(account)) or "no total is set"
    note(f"Epsilon {spent} of '{dataset}' is spent at {release.unit} level; {left} (wayveil ledger show).")
    for words in (few_words(release, cure=True), large_words(release)):
        if words:
            note(words)
    release_file, streets = quote(str(output)), "" if roads is None else f" --roads {quote(str(roads))}"
    note(
        f"What was promised: wayveil describe {release_file}. "
        f"Next: wayveil synthesize {release_file}{streets} -o synthetic.parquet"
    )
