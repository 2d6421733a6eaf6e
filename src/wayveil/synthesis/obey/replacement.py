"""Trips that cannot be made to obey the rules are replaced by other candidates, and finally left out.

Privacy: free (post-processing).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import RuleError
from wayveil.progress import Progress, quiet
from wayveil.rules.rule import Rule
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.obey.refine import Counts, Refined, refine
from wayveil.synthesis.obey.settings import REPLACEMENTS
from wayveil.synthesis.obey.task import Attraction
from wayveil.synthesis.place.caps import within_caps
from wayveil.synthesis.place.track_columns import Tracks, take_tracks


@dataclass(frozen=True, eq=False)
class Obedient:
    """Tracks that break no rule, and the changes that this required."""

    tracks: Tracks
    violations_before: Counts
    changed: dict[str, int]
    """Numbers of trajectories that were moved, retimed, replaced, or left out."""

    @property
    def obeyed_before(self) -> bool:
        """Whether no rule was broken in the first place."""
        return not any(broken["points"] for broken in self.violations_before.values())


def obedient_tracks(
    tracks: Tracks,
    rules: Sequence[Rule],
    estimates: Estimates,
    other_tracks: Callable[[int], Tracks],
    random: np.random.Generator,
    progress: Progress = quiet,
) -> Obedient:
    """Return the tracks, changed as little as possible until no rule is broken.

    `other_tracks(k)` gives k tracks of other candidates, which replace those that cannot be changed enough.
    """
    refined = _refined(estimates, rules, tracks, random, progress)
    before = refined.violations_before
    tracks = replace(tracks, x_m=refined.x_m, y_m=refined.y_m, t_utc=refined.t_utc)
    changed = {"moved": refined.moved, "retimed": refined.retimed, "replaced": len(refined.unresolved)}
    # If no track could be corrected, replacements are unlikely to obey either: one more attempt is enough.
    for _ in range(REPLACEMENTS if len(refined.unresolved) < len(tracks) else 1):
        if len(refined.unresolved) == 0:
            break
        replacements = other_tracks(len(refined.unresolved))
        tracks = _without(tracks, refined.unresolved)
        refined = _refined(estimates, rules, replacements, random)
        tracks = _joined(tracks, replace(replacements, x_m=refined.x_m, y_m=refined.y_m, t_utc=refined.t_utc))
        refined = replace(refined, unresolved=refined.unresolved + (len(tracks) - len(replacements)))
    if len(refined.unresolved):
        if len(refined.unresolved) == len(tracks):
            raise no_room_error(len(tracks), [rule.name for rule in rules])
        tracks = _without(tracks, refined.unresolved)
    changed["left_out"] = len(refined.unresolved)
    obedient = Obedient(tracks, before, changed)
    return obedient if obedient.obeyed_before else replace(obedient, tracks=within_caps(tracks, estimates.scope))


def no_room_error(count: int, names: Sequence[str]) -> RuleError:
    """The error for the case that no trajectory can obey all rules."""
    return RuleError(
        f"None of {count:,} trajectories could be made to obey the rules ({', '.join(names)}): together they leave no "
        "place or no time for such trips; remove or relax one of them."
    )


def _refined(
    estimates: Estimates,
    rules: Sequence[Rule],
    tracks: Tracks,
    random: np.random.Generator,
    progress: Progress = quiet,
) -> Refined:
    attraction = Attraction(estimates.occupancy, estimates.grid)
    return refine(tracks, rules, estimates.scope, random=random, attraction=attraction, progress=progress)


def _without(tracks: Tracks, index: NDArray[np.int64]) -> Tracks:
    return take_tracks(tracks, np.setdiff1d(np.arange(len(tracks)), index))


def _joined(one: Tracks, other: Tracks) -> Tracks:
    offsets = np.r_[one.offsets, one.offsets[-1] + other.offsets[1:]]
    columns = (np.r_[getattr(one, name), getattr(other, name)] for name in ("x_m", "y_m", "t_utc"))
    return Tracks(offsets, *columns)
