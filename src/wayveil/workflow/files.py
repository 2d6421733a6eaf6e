"""Measure and synthesize from file to file; outputs are checked before the work begins."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wayveil.core.outcome import record, stated_in_errors
from wayveil.core.roads import RoadMap, check_inside
from wayveil.core.signals import deferred_signals
from wayveil.engine.serial import Engine, Serial
from wayveil.errors import InputError
from wayveil.io.options import files_written, writing_format
from wayveil.io.output_lock import output_lock
from wayveil.io.outputs import check_outputs
from wayveil.io.replaceable import check_replaceable
from wayveil.io.roads import read_roads
from wayveil.io.scope_files import read_scope
from wayveil.io.writers.dispatch import check_writable, write_trajectories
from wayveil.measurement import measure
from wayveil.privacy.budget import Number, decimal_text
from wayveil.privacy.ledger import Ledger
from wayveil.progress import Progress, quiet
from wayveil.release import Release, read_release, synthesis_notes, write_release
from wayveil.release.check import check_complete
from wayveil.release.document import check_release_output
from wayveil.release.statements import low_count_text
from wayveil.rules import read_rules
from wayveil.synthesis.arguments import default_count, duration_words, unsupported_words, wanted_count
from wayveil.synthesis.people import trips_of_people
from wayveil.synthesis.recipe import synthesize
from wayveil.synthesis.resume import synthesize_to_parquet

if TYPE_CHECKING:
    from wayveil.privacy.unit import Unit
    from wayveil.rules.rule import Rule

ESTIMATORS = ("bayes", "learned")
DEFAULT_ESTIMATOR = "learned"
_ROOM_BYTES = 32 << 20  # a release has a few megabytes; a full disk after the spend would lose the release


def measure_file(
    file: str | os.PathLike[str],
    output: Path,
    *,
    scope: str,
    epsilon: Number,
    unit: "Unit",
    dataset: str,
    ledger: Path | None = None,
    delta: Number = 0,
    roads: Path | None = None,
    engine: "Engine | None" = None,
    force: bool = False,
    read_options: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
) -> Release:
    """Measure a file and write its release.

    The caller checks whether the noise would hide the data.

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
            roads=read_roadmap(roads),
            engine=engine,
            accept_low_signal=True,
            progress=progress,
            **(read_options or {}),
        )
        with deferred_signals():
            write_release(release, output, force=True)  # an existing file was checked before the spend
            record(f"The release '{output.name}' is complete.")
    return release


def synthesize_file(
    release_file: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    roads: str | os.PathLike[str] | None = None,
    rules: str | os.PathLike[str] | None = None,
    n: int | None = None,
    people: int | None = None,
    seed: int | None = None,
    estimator: str | None = None,
    engine: Any = None,
    times: str | None = None,
    force: bool = False,
    yes: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """Make synthetic trajectories from a release and write them; return a summary.

    An earlier synthetic file is replaced, which `say` reports; any other file is overwritten only with `force`, and
    one with other trajectories never. Parquet is written shard by shard with constant memory, and the same call after
    an interruption resumes the work.

    Parameters
    ----------
    release_file, output
        The file of the release, and the file to write; its extension selects the format.
    roads, rules
        Files of a public road map and of traffic rules.
    n, people, seed, estimator, engine
        As for `wayveil.synthesize`. If the noisy count of the release is unreliable or very large, `n` or `yes` is
        needed.
    times
        "iso" or "unix"; by default that of the format.
    yes
        Without `n`: make as many as the noisy count of the release, even if it is unreliable or very large.
    say
        Called with messages, among them how long a large number of trajectories takes.

    Returns
    -------
    dict
        A summary: the number of trajectories, their cost, and measures of their quality.

    Examples
    --------
    >>> import wayveil
    >>> wayveil.synthesize_file("rides.release.json", "synthetic.parquet", n=1_000_000)  # doctest: +SKIP

    Privacy
    -------
    Free (post-processing).
    """
    release_file, output = Path(release_file), Path(output)
    roads, rules = (None if file is None else Path(file) for file in (roads, rules))
    kind = writing_format(output)
    check_writable(kind, times)
    check_outputs(files_written(output, kind), inputs=[release_file, roads, rules])
    check_replaceable(output, force=force)
    replaces = output.exists()
    if estimator is not None and estimator not in ESTIMATORS:
        raise InputError(f"Unknown estimator '{estimator}'; choose one of {', '.join(ESTIMATORS)}.")
    release = read_release(release_file)
    check_complete(release)
    count = _count(release, n, yes=yes) if people is None else trips_of_people(release, n, people)
    if (how_long := duration_words(count)) is not None:
        say(f"Making {count:,} trajectories takes {how_long}.")
    roadmap = read_roadmap(roads)
    if roadmap is not None:
        check_inside(roadmap, release.scope)
    rule_list = _read_rules(rules, release, roadmap, progress)
    how: dict[str, Any] = {
        "roads": roadmap, "rules": rule_list, "n": count if people is None else None, "people": people,
        "seed": seed, "estimator": estimator or DEFAULT_ESTIMATOR,
        "engine": _pieces(engine), "progress": progress,
    }  # fmt: skip
    made: Any
    notes, resumed = synthesis_notes(release, rules=len(rule_list), roads=roadmap is not None), False
    if kind == "parquet" and times != "iso":
        # Shard by shard, so that memory stays constant and the same command can continue an interrupted run.
        made = synthesize_to_parquet(release, output, extra_metadata=notes, **how)
        number, resumed = made.trajectories, made.resumed_shards > 0
    else:
        with output_lock(output):
            made = synthesize(release, **how)
            write_trajectories(made.trajectories, output, None, notes, private=False, times=times)
        number = len(made.trajectories)
    if replaces:
        say(f"Replaced the existing file '{output.name}'.")
    return {
        "synthetic": str(output),
        "trajectories": number,
        "private": release.private,
        "epsilon": decimal_text(release.epsilon),
        "resumed": resumed,
        "rules": len(rule_list),
        "few": low_count_text(release, advice=True),
        "diagnostics": made.diagnostics,
    }


def _count(release: Release, n: int | None, *, yes: bool) -> int:
    """The number of trajectories to make; InputError if the noisy count needs a confirmation."""
    if n is None and not yes and (why := unsupported_words(release)) is not None:
        raise InputError(f"{why}; set the number with n= (n in a run file), or confirm it with yes=True.")
    return default_count(release) if n is None else wanted_count(release, n)


def _pieces(engine: Any) -> Any:
    """The engine that draws shards; None for the serial one: this process then draws them and reports progress."""
    if engine is None:
        return None
    return None if isinstance(engine, Serial) else engine


def _read_rules(path: Path | None, release: Release, roads: RoadMap | None, progress: Progress) -> "tuple[Rule, ...]":
    if path is None:
        return ()
    return tuple(read_rules(path, release.scope, roads, progress))


def read_roadmap(path: Path | None) -> RoadMap | None:
    """The road map in a file, or None."""
    if path is None:
        return None
    return read_roads(path)
