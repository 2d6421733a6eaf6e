"""`wayveil.synthesize`: calls `wayveil.synthesis.recipe` with a release, a map and rules that may be given as files.

The package `synthesis` opens no files, so they are read here.
"""

import os
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from wayveil.core.warning_location import callers_level
from wayveil.errors import InputError, LeftOutWarning
from wayveil.io.roads import Roads, roads_of
from wayveil.progress import Progress, quiet
from wayveil.release import Release, read_release
from wayveil.rules.user_input import Rules, as_rules
from wayveil.synthesis.recipe import Synthesis
from wayveil.synthesis.recipe import synthesize as synthesize_from
from wayveil.synthesis.request import Request

if TYPE_CHECKING:
    from wayveil.engine.pieces import Pieces


def synthesize(
    release: Release | str | os.PathLike[str],
    *,
    roads: Roads = None,
    rules: Rules = None,
    n: int | None = None,
    people: int | None = None,
    seed: int | None = None,
    estimator: str = "learned",
    engine: "Pieces | None" = None,
    progress: Progress = quiet,
) -> "Synthesis":
    """Make synthetic trajectories, with place and time, from a release.

    The private data is not read again. `wayveil.synthesize_file` writes a large number to a file without holding
    it in memory.

    Parameters
    ----------
    release
        The result of `measure`, or its file.
    roads
        A public road map (or its file) for the trips to follow; where it has no roads, a grid is used.
    rules
        Traffic rules (or their file) that the output obeys; the scope's bounds always hold.
    n
        Number of trajectories; by default the noisy count of the release.
    people
        Number of people, instead of `n`; they make as many trips as the release implies, and each trip has a `user`.
        Without this argument, trips have one if the release was measured with unit="user" and answers questions about
        people.
    seed
        The same seed gives the same trajectories. It does not affect the noise of the release.
    estimator
        'bayes' or 'learned': how the noisy fields are smoothed.
    engine
        Where shards are drawn; `wayveil.engine.engine_named("ray")` distributes them.

    Examples
    --------
    >>> import wayveil
    >>> made = wayveil.synthesize("rides.release.json", rules="rules.geojson", seed=1)  # doctest: +SKIP
    >>> made.to_pandas().head()  # doctest: +SKIP

    Privacy
    -------
    Free (post-processing).
    """
    if isinstance(release, str | os.PathLike):
        release = read_release(os.fspath(release))
    if not isinstance(release, Release):
        raise InputError("release must be the result of wayveil.measure, or its file.")
    # Checked before the map is read, which may take a while.
    request = Request(release, n=n, people=people, seed=seed, estimator=estimator)
    count = request.count
    streets = roads_of(roads)
    request = replace(request, roads=streets, rules=as_rules(rules, release.scope, streets))
    synthesis = synthesize_from(request, engine, progress)
    if left_out := synthesis.diagnostics["changed"]["left_out"]:
        message = f"{left_out:,} of {count:,} trajectories could not be made to obey the rules and were left out."
        warnings.warn(message, LeftOutWarning, stacklevel=callers_level())
    return synthesis
