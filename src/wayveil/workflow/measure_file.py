"""Measure from file to file; the output is checked before the work begins."""

import os
from collections.abc import Mapping
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
"""Free disk space that is required. A release has a few megabytes; if the disk were full after the spend, it would be
lost."""


def measure_file(
    file: str | os.PathLike[str],
    output: Path,
    *,
    scope: str,
    epsilon: Number,
    unit: Unit,
    dataset: str,
    ledger: Path | None = None,
    delta: Number = 0,
    roads: Path | None = None,
    engine: Engine | None = None,
    force: bool = False,
    read_options: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
) -> Release:
    """Measure a file and write its release.

    Whether the noise would hide the data is not checked here, but by the caller.

    Privacy: spends ε of the dataset's budget; a refusal leaves no file behind.
    """
    check_outputs([output], inputs=[file, scope, roads], ledger=Ledger(ledger).path)
    with output_lock(output), stated_in_errors():
        check_release_output(output, force=force, room_bytes=_ROOM_BYTES)
        release = measure(
            file,
            read_scope(scope),
            epsilon=epsilon,
            unit=unit,
            delta=delta,
            dataset=dataset,
            ledger=Ledger(ledger),
            roads=None if roads is None else read_roads(roads),
            engine=engine,
            accept_low_signal=True,
            progress=progress,
            **(read_options or {}),
        )
        with deferred_signals():
            write_release(release, output, force=True)  # an existing file was checked before the spend
            record(f"The release '{output.name}' is complete.")
    return release
