"""From file to file: what the verbs `measure`, `synthesize` and `run` do, each output tried before the work begins."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wayveil.errors import InputError
from wayveil.outcome import record, stated_in_errors
from wayveil.output_lock import output_lock
from wayveil.outputs import check_output, check_outputs
from wayveil.privacy.budget import Number, decimal_text
from wayveil.progress import Progress, quiet
from wayveil.release import SYNTHETIC, Release, made_notes, origin_notes, read_release, write_release
from wayveil.roads import RoadMap, check_inside
from wayveil.scope import read_scope
from wayveil.signals import deferred_signals

if TYPE_CHECKING:
    from wayveil.engine.serial import Engine
    from wayveil.privacy.unit import Unit
    from wayveil.rules.rule import Rule

ESTIMATORS = ("bayes", "learned")
DEFAULT_ESTIMATOR = "learned"
_ROOM_BYTES = 32 << 20  # a release has a few megabytes; a full disk after the spend would lose what was paid for


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

    Whether the noise would hide the data is not checked here: each verb does that first, in its own words.

    Privacy: spends ε of the dataset's budget; a refusal leaves no file behind.
    """
    from wayveil.measurement import measure
    from wayveil.privacy.ledger import Ledger

    check_outputs([output], inputs=[file, scope, roads], ledger=Ledger(ledger).path)
    check_output(output, force=force, room_bytes=_ROOM_BYTES)
    with stated_in_errors():
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
            write_release(release, output)
            record(f"The release '{output.name}' is complete.")
    return release


def synthesize_file(
    release_file: Path,
    output: Path,
    *,
    roads: Path | None = None,
    rules: Path | None = None,
    n: int | None = None,
    seed: int | None = None,
    estimator: str | None = None,
    engine: Any = None,
    force: bool = False,
    yes: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """Make synthetic trajectories from a release and write them; what is known about them comes back.

    An earlier synthetic file is overwritten; any other file only with `force`. Where the release does not support its
    own noisy count, `n` or `yes` is needed. `say` is given how long a large number takes before the work begins.

    Privacy: free (post-processing).
    """
    from wayveil.formats.options import WRITABLE, files_written, format_of
    from wayveil.formats.reading import write_trajectories
    from wayveil.release.check import check_complete
    from wayveil.release.words import few_words
    from wayveil.synthesis.stream import synthesize_to_parquet
    from wayveil.synthesis.synthesize import duration_words, synthesize

    kind = format_of(output)
    if kind not in WRITABLE:
        raise InputError(f"wayveil does not write '{output.suffix}'; choose one of {', '.join(WRITABLE)}.")
    check_outputs(files_written(output, kind), inputs=[release_file, roads, rules])
    check_replaceable(output, force=force)
    if estimator is not None and estimator not in ESTIMATORS:
        raise InputError(f"--estimator '{estimator}' is unknown; choose one of {', '.join(ESTIMATORS)}.")
    release = read_release(release_file)
    check_complete(release)
    count = _count(release, n, yes=yes)
    if (how_long := duration_words(count)) is not None:
        say(f"Making {count:,} trajectories takes {how_long}.")
    roadmap = read_roadmap(roads)
    if roadmap is not None:
        check_inside(roadmap, release.scope)
    laws = _read_laws(rules, release, roadmap, progress)
    how: dict[str, Any] = {
        "roads": roadmap, "rules": laws, "n": count, "seed": seed, "estimator": estimator or DEFAULT_ESTIMATOR,
        "engine": _pieces(engine), "progress": progress,
    }  # fmt: skip
    made: Any
    notes, resumed = made_notes(release, rules=len(laws), roads=roadmap is not None), False
    if kind == "parquet":
        # Shard by shard, so that memory stays flat and an interrupted run of the same command goes on where it was.
        made = synthesize_to_parquet(release, output, extra_metadata=notes, **how)
        number, resumed = made.trajectories, made.resumed_shards > 0
    else:
        with output_lock(output):
            made = synthesize(release, **how)
            write_trajectories(made.trajectories, output, None, notes, private=False)
        number = len(made.trajectories)
    return {
        "synthetic": str(output),
        "trajectories": number,
        "private": release.private,
        "epsilon": decimal_text(release.epsilon),
        "resumed": resumed,
        "rules": len(laws),
        "few": few_words(release, cure=True),
        "diagnostics": made.diagnostics,
    }


def _count(release: Release, n: int | None, *, yes: bool) -> int:
    """How many trajectories to make, in the words of the command line where that needs an answer."""
    from wayveil.synthesis.synthesize import default_count, unsupported_words, wanted_count

    if n is None and not yes and (why := unsupported_words(release)) is not None:
        raise InputError(f"{why}; say how many with -n N (n in a run file), or add --yes to make that many.")
    return default_count(release) if n is None else wanted_count(release, n)


def _pieces(engine: Any) -> Any:
    """The engine that draws shards; None, which draws them here and says how far it is, for the serial one."""
    if engine is None:
        return None
    from wayveil.engine.serial import Serial

    return None if isinstance(engine, Serial) else engine


def _read_laws(path: Path | None, release: Release, roads: RoadMap | None, progress: Progress) -> "tuple[Rule, ...]":
    if path is None:
        return ()
    from wayveil.rules import read_rules

    return tuple(read_rules(path, release.scope, roads, progress))


def check_replaceable(output: Path, *, force: bool = False) -> None:
    """InputError unless the output can be written and is new, or an earlier synthetic file: never somebody's data."""
    check_output(output, force=True)
    if force or not output.exists():
        return
    from wayveil.formats.reading import says_synthetic

    if not says_synthetic(output):
        raise InputError(
            f"'{output.name}' is there and is not a synthetic file of wayveil; choose another -o or add --force."
        )


def check_origin(synthetic: Path, release: Release) -> None:
    """InputError unless the file says of itself that it is synthetic and was made from this very release."""
    from wayveil.formats.reading import metadata_of

    # `synthesize` writes no folders.
    said = {} if synthetic.is_dir() else metadata_of(synthetic)
    cure = "or synthesize again, which costs nothing."
    if not said.get("origin", "").startswith(SYNTHETIC):
        raise InputError(
            f"'{synthetic.name}' does not say that it is synthetic, so no public page is made of it; give the file "
            f"that `wayveil synthesize` wrote, as it wrote it, {cure}"
        )
    if any(said.get(name) != value for name, value in origin_notes(release).items()):
        raise InputError(f"'{synthetic.name}' was made from another release; give the release that it is from, {cure}")


def read_roadmap(path: Path | None) -> RoadMap | None:
    """The road map in a file, where one is given."""
    if path is None:
        return None
    from wayveil.formats.roads import read_roads

    return read_roads(path)
