"""`wayveil paper synthesize`: from a file to a file that is marked as not private."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wayveil.dpe import NOT_PRIVATE
from wayveil.dpe.coordinates import random_subset, synthesize_published
from wayveil.dpe.method import Options
from wayveil.io import files
from wayveil.io.atomic import write_text
from wayveil.io.csv_notes import check_notes
from wayveil.io.options import files_written, writing_format
from wayveil.io.outputs import check_output, check_outputs
from wayveil.io.scope_files import read_scope
from wayveil.progress import Progress, quiet
from wayveil.rules import read_rules


def synthesize_file(
    file: str,
    scope_name: str,
    output: Path,
    options: Options,
    *,
    rules: Path | None = None,
    subset: int | None = None,
    reading: dict[str, Any] | None = None,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """Read a file, run the published method, write the marked output and its metadata file; return the metadata.

    Privacy: not private, for any epsilon.
    """
    scope = read_scope(scope_name)
    side_note = output.with_name(output.name + ".json")
    check_outputs([*files_written(output, writing_format(output)), side_note], inputs=[file, scope_name, rules])
    check_output(output, force=True)
    if writing_format(output) == "csv":
        check_notes(output)
    chosen: tuple[Any, ...] = ()
    if rules is not None:
        chosen = read_rules(rules, scope)
    data = files.read(file, progress=progress, **(reading or {}))
    if subset is not None:
        data = random_subset(data, subset, options.seed)
    result = synthesize_published(data, scope, options, rules=chosen, progress=progress)
    summary = {
        "private": False,
        "notice": NOT_PRIVATE,
        "method": "DPE as published",
        "scope": scope.name,
        "epsilon_as_published": options.epsilon,
        "dim": options.dim,
        "metric": options.metric.name,
        "loss": options.synthesis.loss,
        "learning_rate": options.synthesis.learning_rate,
        "iterations": len(result.run.losses),
        "time_scale_mps": result.frame.time_scale_mps,
        "first_loss": result.run.losses[0] if result.run.losses else None,
        "last_loss": result.run.losses[-1] if result.run.losses else None,
        "seed": options.seed,
        "points_breaking_rules": None if result.rule_breaks is None else result.rule_breaks[1],
    }
    stamp = {"wayveil.private": "false", "wayveil.notice": NOT_PRIVATE, "wayveil.method": "DPE as published"}
    files.write(result.trajectories, output, extra_metadata=stamp)
    write_text(side_note, json.dumps(summary, indent=1) + "\n", private=True)
    return summary
