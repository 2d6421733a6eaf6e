"""`wayveil audit`: attacks on a synthetic file, and a self-check of the audit."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from wayveil.cli import column_options as col
from wayveil.cli import options as opt
from wayveil.cli.console import NOT_FOR_PUBLICATION, note, print_json, progress_bar

Confidence = Annotated[float, typer.Option("--confidence", help="Confidence level of every interval and bound.")]
FAILED = 4
"""Exit code of a failed audit with `--strict`."""


class _FilesFirst(TyperGroup):
    """`wayveil audit REAL SYNTH` is `wayveil audit files REAL SYNTH`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["files", *args]
        return super().parse_args(ctx, args)


audit_app = typer.Typer(
    cls=_FilesFirst,
    no_args_is_help=True,
    help="Attack a synthetic file, using the real data: `wayveil audit REAL SYNTH --scope S`. The result is "
    "computed from the private data and is not for publication.",
    epilog="Example: wayveil audit rides.parquet synthetic.parquet --scope san-francisco --epsilon 1 "
    "--holdout others.parquet -o audit.json",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.add_typer(audit_app, name="audit")


@audit_app.command(
    epilog="Example: wayveil audit rides.parquet synthetic.parquet --scope san-francisco --epsilon 1 "
    "--holdout others.parquet -o audit.json"
)
@col.with_columns()
def files(
    real: opt.PrivateData,
    synthetic: opt.SyntheticData,
    scope: opt.ScopeName,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="The epsilon that the synthetic file promises.")
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option("--holdout", help="Trajectories of the same population, held out at random before measuring."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write JSON for `wayveil report --internal --audit`.")
    ] = None,
    confidence: Confidence = 0.999,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 4 unless the audit passes, for pipelines.")
    ] = False,
    as_json: opt.Json = False,
    *,
    columns: col.Columns,
) -> None:
    """Run linkage, membership, reconstruction and floor tests on one file. The word `files` may be left out."""
    from wayveil.audit.file_audit import audit_synthetic
    from wayveil.io.result_file import AUDIT, check_result, write_result

    if output is not None:
        check_result(output, (real, synthetic, scope, holdout), AUDIT)
    with progress_bar() as progress:
        report = audit_synthetic(
            real, synthetic, scope, epsilon=epsilon, holdout=holdout, confidence=confidence, progress=progress,
            **columns,
        )  # fmt: skip
    result = {"note": NOT_FOR_PUBLICATION, **report.to_dict()}
    note(NOT_FOR_PUBLICATION)
    if output is not None:
        write_result(output, result)
        note(f"Wrote '{output.name}'.")
    if as_json:
        print_json(result)
    else:
        from rich.console import Console

        from wayveil.audit.tables import audit_table

        console = Console()
        console.print(audit_table(report))
        colour = "green" if report.passed else "red" if report.failed else "yellow"
        console.print(report.verdict, style=colour, highlight=False)
    if strict and not report.passed:
        raise typer.Exit(FAILED)


@audit_app.command(name="self-check", epilog="Example: wayveil audit self-check --quick --methods adatrace,mine:pairs")
def self_check(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs: about half a minute of processor time.")] = False,
    every_method: Annotated[
        bool, typer.Option("--all", help="Also every method of `wayveil bench methods`, in both modes.")
    ] = False,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="Only these methods, in both modes: comma-separated names or module:attribute."),
    ] = None,
    confidence: Confidence = 0.999,
    as_json: opt.Json = False,
) -> None:
    """Audit methods that are known to be sound or broken, on the simulated city; exit code 1 if the audit is wrong."""
    from wayveil.audit.selfcheck import FULL, QUICK
    from wayveil.audit.selfcheck import self_check as check
    from wayveil.errors import InputError

    chosen = tuple(name.strip() for name in (methods or "").split(",") if name.strip())
    if methods is not None and (every_method or not chosen):
        raise InputError("Give either --all or --methods with names, such as --methods adatrace,mine:pairs.")
    with progress_bar() as progress:
        effort = QUICK if quick else FULL
        result = check(effort, confidence=confidence, every_method=every_method, methods=chosen, progress=progress)
    if as_json:
        print_json(result.to_dict())
    else:
        from rich.console import Console

        from wayveil.audit.tables import self_check_table

        console = Console()
        console.print(self_check_table(result))
        console.print(result.verdict, style="green" if result.passed else "red", highlight=False)
        note(f"{result.seconds:.0f} s.")
    if not result.passed:
        raise typer.Exit(1)
