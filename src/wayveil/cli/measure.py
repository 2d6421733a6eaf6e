"""`wayveil measure`: write a release of private data; this spends privacy budget."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from wayveil.cli import column_options as col
from wayveil.cli import options as opt
from wayveil.cli.argument_names import as_options
from wayveil.cli.console import ledger_warnings, note, note_missing_zone, print_json, progress_bar


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: wayveil measure rides.csv --dataset rides --scope my-city.toml --epsilon 1 --unit user "
        "--max-per-user 10 -o rides.release.json"
    )(measure)


@col.with_columns(bad_rows=False)
def measure(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File or folder of private trajectories.")],
    dataset: Annotated[str, typer.Option("--dataset", help="The dataset on the ledger whose budget is spent.")],
    scope: opt.ScopeName,
    epsilon: Annotated[str, typer.Option("--epsilon", help="How much privacy to spend; 1 is a common choice.")],
    unit: Annotated[str, typer.Option("--unit", help="What is protected: trajectory or user.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File for the release, such as rides.release.json.")],
    max_per_user: opt.MaxPerUser = None,
    roads: Annotated[
        Path | None,
        typer.Option("--roads", help="The public road map for synthesis; checked before anything is spent."),
    ] = None,
    delta: Annotated[
        str, typer.Option("--delta", help="Delta of the guarantee; above 0 (such as 1e-6), the noise is Gaussian.")
    ] = "0",
    ledger: opt.LedgerFile = None,
    expected_trips: Annotated[
        int | None, typer.Option("--expected-trips", metavar="N", help="Roughly how many trajectories you expect.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Measure even if the noise would hide the data.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing release.")] = False,
    as_json: opt.Json = False,
    engine: opt.EngineName = "serial",
    address: opt.Address = None,
    *,
    columns: col.Columns,
) -> None:
    """Compute a fixed set of statistics on the private data, add noise, and write a release that may be published.

    Epsilon is charged to the ledger, which refuses (exit code 3) if the dataset's total would be exceeded. A dataset
    that is not on the ledger yet is opened with this epsilon as its total. With --expected-trips N, the command stops
    before it reads or spends anything if the noise would hide N trips; --yes measures anyway.

    Run `wayveil check` first: rows that cannot be used contribute nothing here, without a message, because whether
    there are any is private.
    """
    from wayveil.io.readers.dispatch import says_synthetic
    from wayveil.io.scope_files import read_scope
    from wayveil.measurement.signal_check import OPTIONS, check_signal, count_noise, delta_advice, noise_words
    from wayveil.privacy.accounts import left_words
    from wayveil.privacy.budget import decimal_text, exact_delta
    from wayveil.privacy.ledger import Ledger, clean_name
    from wayveil.privacy.unit import parse_unit
    from wayveil.release.statements import large_epsilon_text, low_count_text, no_people_text
    from wayveil.workflow.measure_file import FileMeasurement, measure_file
    from wayveil.workflow.plan import plan

    if says_synthetic(Path(file)):
        note(f"'{Path(file).name}' is marked as synthetic; did you mean to pass the private data?")
    note_missing_zone(read_scope(scope))
    protects = parse_unit(unit, max_per_user)
    noise, gaussian = count_noise(epsilon=epsilon, unit=protects, delta=delta), exact_delta(delta) > 0
    check_signal(noise, protects, expected_trips=expected_trips, accept=yes, delta=gaussian, wording=OPTIONS)
    announce = [noise_words(noise, protects, delta=gaussian), *_weak_signal(noise, expected_trips)]
    if expected_trips is not None and protects.kind == "trajectory":
        expected = plan(trips=expected_trips, scope=scope, epsilon=epsilon, unit=protects, delta=delta)
        announce.append(f"{expected} For details, run: wayveil plan.")
    if advice := delta_advice(protects, gaussian, OPTIONS):
        announce.append(advice)

    with ledger_warnings(), progress_bar() as bar:

        def progress(stage: str, done: float) -> None:
            # The first report comes after all checks of files and options, so that no error follows the announcement.
            while announce:
                note(announce.pop(0))
            bar(stage, done)

        wanted = FileMeasurement(file, scope, epsilon, protects, dataset, ledger, delta, roads, columns)
        runs_on = opt.engine_named(engine, address)
        release = measure_file(wanted, output, engine=runs_on, force=force, progress=progress)
    for sentence in announce:
        note(sentence)
    spent = decimal_text(release.epsilon)
    if as_json:
        print_json({"release": str(output), "dataset": dataset, "epsilon": spent, "delta": release.delta,
                    "unit": release.unit, "differentially_private": release.private})  # fmt: skip
        return
    print(f"release: {output}", flush=True)
    account = next(one for one in Ledger(ledger).datasets() if one.name == clean_name(dataset))
    left = " and ".join(left_words(account)) or "no total is set"
    note(f"Epsilon {spent} was spent on '{dataset}' at {release.unit} level; {left} (see: wayveil ledger show).")
    for words in (low_count_text(release, advice=True), no_people_text(release), large_epsilon_text(release)):
        if words:
            note(as_options(words))
    release_file, streets = quote(str(output)), "" if roads is None else f" --roads {quote(str(roads))}"
    note(
        f"The guarantee in words: wayveil describe {release_file}. "
        f"Next: wayveil synthesize {release_file}{streets} -o synthetic.parquet"
    )


def _weak_signal(noise: float, expected_trips: int | None) -> list[str]:
    """A sentence if the noise is large compared with the expected number of trajectories."""
    if expected_trips is None or noise < _WEAK_SHARE * expected_trips:
        return []
    share = 100 * noise / expected_trips
    return [
        f"This noise is {share:.0f} % of the {expected_trips:,} trajectories that you expect: much of the release will "
        "be noise."
    ]


_WEAK_SHARE = 0.1
"""Noise on the count, as a share of the expected count, above which most of the detail is hidden."""
