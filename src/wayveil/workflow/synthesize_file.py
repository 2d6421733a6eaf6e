"""Synthesize from file to file; the output is checked before the work begins."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from wayveil.core.roads import check_inside
from wayveil.engine.serial import Serial
from wayveil.errors import InputError
from wayveil.io.options import WriteOptions, files_written, writing_format
from wayveil.io.output_lock import output_lock
from wayveil.io.outputs import check_outputs
from wayveil.io.replaceable import check_replaceable
from wayveil.io.roads import read_roads
from wayveil.io.writers.dispatch import check_writable, write_trajectories
from wayveil.privacy.budget import decimal_text
from wayveil.progress import Progress, quiet
from wayveil.release import Release, read_release, synthesis_notes
from wayveil.release.check import check_complete
from wayveil.release.statements import low_count_text
from wayveil.rules import read_rules
from wayveil.synthesis.arguments import default_count, duration_words, wanted_count, why_count_unsuitable
from wayveil.synthesis.people import trips_of_people
from wayveil.synthesis.recipe import synthesize
from wayveil.synthesis.request import Request
from wayveil.synthesis.resume import synthesize_to_parquet


def synthesize_file(
    release_file: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    roads: str | os.PathLike[str] | None = None,
    rules: str | os.PathLike[str] | None = None,
    n: int | None = None,
    people: int | None = None,
    seed: int | None = None,
    estimator: str = "learned",
    engine: Any = None,
    times: str | None = None,
    mode: str | None = None,
    force: bool = False,
    yes: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """Make synthetic trajectories from a release and write them; return a summary.

    An earlier synthetic file is replaced, which `say` reports; any other file is overwritten only with `force`, and a
    file with other trajectories is never overwritten. Parquet is written shard by shard with constant memory, and the
    same call after an interruption resumes the work.

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
        "iso" or "unix"; the default depends on the format.
    mode
        The mode of travel in MATSim plans, such as "bike"; by default "car".
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
    check_writable(kind, times, mode)
    check_outputs(files_written(output, kind), inputs=[release_file, roads, rules])
    check_replaceable(output, force=force)
    replaces = output.exists()
    release = read_release(release_file)
    check_complete(release)
    count = _count(release, n, yes=yes) if people is None else trips_of_people(release, n, people)
    request = Request(release, n=count if people is None else None, people=people, seed=seed, estimator=estimator)
    if (how_long := duration_words(count)) is not None:
        say(f"Making {count:,} trajectories takes {how_long}.")
    roadmap = None if roads is None else read_roads(roads)
    if roadmap is not None:
        check_inside(roadmap, release.scope)
    rule_list = () if rules is None else tuple(read_rules(rules, release.scope, roadmap, progress))
    request = replace(request, roads=roadmap, rules=rule_list)
    # Without an engine, this process draws the shards and reports progress.
    shards = None if isinstance(engine, Serial) else engine
    result: Any
    notes, resumed = synthesis_notes(release, rules=len(rule_list), roads=roadmap is not None), False
    if kind == "parquet" and times != "iso":
        # Shard by shard, so that memory stays constant and the same command can continue an interrupted run.
        result = synthesize_to_parquet(request, output, engine=shards, extra_metadata=notes, progress=progress)
        number, resumed = result.trajectories, result.resumed_shards > 0
    else:
        with output_lock(output):
            result = synthesize(request, shards, progress)
            write_trajectories(result.trajectories, output, WriteOptions(False, None, notes, times, mode=mode))
        number = len(result.trajectories)
    if replaces:
        say(f"Replaced the existing file '{output.name}'.")
    return {
        "synthetic": str(output),
        "trajectories": number,
        "differentially_private": release.private,
        "epsilon": decimal_text(release.epsilon),
        "resumed": resumed,
        "rules": len(rule_list),
        "few": low_count_text(release, advice=True),
        "diagnostics": result.diagnostics,
    }


def _count(release: Release, n: int | None, *, yes: bool) -> int:
    """The number of trajectories to make; InputError if the noisy count needs a confirmation."""
    if n is None and not yes and (why := why_count_unsuitable(release)) is not None:
        raise InputError(f"{why}; set the number with n= (n in a run file), or confirm it with yes=True.")
    return default_count(release) if n is None else wanted_count(release, n)
