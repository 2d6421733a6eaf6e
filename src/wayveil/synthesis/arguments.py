"""Arguments of synthesis: how many trajectories to make, how long that takes, and the seed."""

from wayveil.core.whole_number import as_whole_number
from wayveil.errors import InputError
from wayveil.release import Release
from wayveil.release.number import estimate_number

_MOST_TRAJECTORIES = 100_000_000
"""This many take almost six hours; a larger number is probably a mistake."""
_QUICK = 25_000
"""Up to this many trajectories are made in seconds."""
_LARGE = 10_000_000
"""Above this many trajectories (more than half an hour of work) the caller must give the number."""
_NOISE_SHARE = 0.1
"""The noisy count is used as the default number if the scale of its noise is at most this share of it."""
_PER_SECOND = 5_000
"""Assumed trajectories per second on one core. Measured were 9,300 without a map (docs/explanation/speed.md) and 2,300
with a map and rules."""


def wanted_count(release: Release, n: int | None) -> int:
    """How many trajectories to make: `n` if given, else the noisy count if it is reliable enough."""
    if n is None:
        if (why := why_count_unsuitable(release)) is not None:
            raise InputError(f"{why}; say how many with n=.")
        return default_count(release)
    return as_whole_number(n, "n=", 1, _MOST_TRAJECTORIES)


def default_count(release: Release) -> int:
    """The number of trajectories that the release implies, at least one."""
    return min(max(round(estimate_number(release).value), 1), _MOST_TRAJECTORIES)


def why_count_unsuitable(release: Release) -> str | None:
    """Why the noisy count is not a suitable default, with the time that synthesis would take; None if it is suitable.

    A count that takes seconds is always suitable. Above that, a count of the order of its own noise may be hundreds of
    times the true number of trajectories, and a very large count may be an error or a forgery.

    Privacy: free (post-processing).
    """
    count, noise = default_count(release), estimate_number(release).noise
    if count <= _QUICK or (noise <= _NOISE_SHARE * count and count <= _LARGE):
        return None
    time = f"making them takes {duration_words(count)}"
    if count > _LARGE:
        return f"The release counts {count:,} trajectories, more than {_LARGE:,}, and {time}"
    return f"The release's count of {count:,} trajectories is inexact (its noise is about {noise:,.0f}), and {time}"


def duration_words(count: int) -> str | None:
    """About how long it takes to make `count` trajectories; None if that is a few seconds."""
    if count <= _QUICK:
        return None
    seconds = count / _PER_SECOND
    span = f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.0f} h"
    return f"about {span if seconds >= 60 else '1 min'} (at {_PER_SECOND:,} a second)"


def wanted_seed(seed: int | None) -> int | None:
    """The seed as a Python integer; None if none is given."""
    return None if seed is None else as_whole_number(seed, "seed=", 0)
