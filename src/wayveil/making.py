"""`wayveil.synthesize`: as `wayveil.synthesis.synthesize`, from objects or from the files that hold them.

Synthesis itself opens no file; whatever is given as a path is read here.
"""

import os
import warnings
from typing import TYPE_CHECKING

from wayveil.callers import callers_level
from wayveil.errors import InputError, LeftOutWarning
from wayveil.formats.roads import Roads, roads_of
from wayveil.progress import Progress, quiet
from wayveil.release import Release, read_release
from wayveil.rules.given import Rules, as_rules

if TYPE_CHECKING:
    from wayveil.engine.pieces import Pieces
    from wayveil.synthesis.synthesize import Synthesis


def synthesize(
    release: Release | str | os.PathLike[str],
    *,
    roads: Roads = None,
    rules: Rules = None,
    n: int | None = None,
    seed: int | None = None,
    estimator: str = "learned",
    engine: "Pieces | None" = None,
    progress: Progress = quiet,
) -> "Synthesis":
    """Synthetic trajectories with place and time, fitted to the release's noisy answers.

    Parameters
    ----------
    release
        What `measure` gave, or the file that it was written to.
    roads
        A public road map (or its file) as a better prior; where it has no roads the grid takes over.
    rules
        Traffic rules (or their file) that the output obeys; the scope's bounds always hold.
    n
        How many; the release's noisy count where not given.
    seed
        The same seed gives the same trajectories. It has nothing to do with the noise.
    estimator
        'bayes' or 'learned': how the noisy fields are smoothed.

    Privacy
    -------
    Free (post-processing).
    """
    from wayveil.synthesis.synthesize import synthesize as made_of
    from wayveil.synthesis.synthesize import wanted_count, wanted_seed

    if isinstance(release, str | os.PathLike):
        release = read_release(os.fspath(release))
    if not isinstance(release, Release):
        raise InputError("release must be what wayveil.measure gave, or the file that it was written to.")
    # Before the map is read, which may take a while.
    count, chosen = wanted_count(release, n), wanted_seed(seed)
    streets = roads_of(roads)
    obeyed = as_rules(rules, release.scope, streets)
    made = made_of(
        release,
        roads=streets,
        rules=obeyed,
        n=count,
        seed=chosen,
        estimator=estimator,
        engine=engine,
        progress=progress,
    )
    if left_out := made.diagnostics["changed"]["left_out"]:
        said = f"{left_out:,} of {count:,} trajectories could not be made to obey the rules and were left out."
        warnings.warn(said, LeftOutWarning, stacklevel=callers_level())
    return made
