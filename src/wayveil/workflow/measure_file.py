"""Measure from file to file; the output is checked before the work begins."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wayveil.core.outcome import record, stated_in_errors
from wayveil.core.signals import deferred_signals
from wayveil.engine.serial import Engine
from wayveil.io.output_lock import output_lock
from wayveil.io.outputs import check_outputs
from wayveil.io.roads import read_roads
from wayveil.io.scope_files import read_scope
from wayveil.measurement import measure
from wayveil.privacy.budget import Number
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.release import Release, write_release
from wayveil.release.document import check_release_output

_ROOM_BYTES = 32 << 20
"""Free disk space that is required. A release has a few megabytes; if the disk were full after the budget was spent,
the release would be lost."""


@dataclass(frozen=True)
class FileMeasurement:
    """What is measured, with which guarantee, and which account is charged; the arguments are those of `measure`."""

    file: str | os.PathLike[str]
    scope: str
    epsilon: Number
    unit: Unit
    dataset: str
    ledger: Path | None = None
    delta: Number = 0
    roads: Path | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Options of `wayveil.read`."""


def measure_file(
    wanted: FileMeasurement,
    output: Path,
    *,
    engine: Engine | None = None,
    force: bool = False,
    progress: Progress = quiet,
) -> Release:
    """Measure a file and write its release.

    Whether the noise would hide the data is not checked here, but by the caller.

    Privacy: spends ε of the dataset's budget; a refusal leaves no file behind.
    """
    ledger = Ledger(wanted.ledger)
    check_outputs([output], inputs=[wanted.file, wanted.scope, wanted.roads], ledger=ledger.path)
    with output_lock(output), stated_in_errors():
        check_release_output(output, force=force, room_bytes=_ROOM_BYTES)
        release = measure(
            wanted.file,
            read_scope(wanted.scope),
            epsilon=wanted.epsilon,
            unit=wanted.unit,
            delta=wanted.delta,
            dataset=wanted.dataset,
            ledger=ledger,
            roads=None if wanted.roads is None else read_roads(wanted.roads),
            engine=engine,
            accept_low_signal=True,
            progress=progress,
            **wanted.columns,
        )
        with deferred_signals():
            write_release(release, output, force=True)  # an existing file was checked before the budget was spent
            record(f"The release '{output.name}' is complete.")
    return release
