"""Recorders of several kinds: by time, by distance, with gaps; whole seconds and GPS errors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.simulate.drive import MOST_POINTS, Drives, Fixes, drift, positions


@dataclass(frozen=True)
class Recorder:
    """How one kind of device records a trip."""

    share: float
    """Share of the people with such a device."""
    interval_s: float = 0.0
    """Seconds between fixes; 0 for a recorder by distance."""
    distance_m: float = 0.0
    """Metres between fixes."""
    jitter_m: float = 0.0
    """Standard deviation of the error of a single fix, besides the error that drifts."""
    gap_chance: float = 0.0
    """Chance that a trip has a gap, as in a tunnel."""


RECORDERS = (
    Recorder(0.3, interval_s=10.0, jitter_m=0.7),
    Recorder(0.2, interval_s=30.0, jitter_m=1.0, gap_chance=0.2),
    Recorder(0.2, interval_s=60.0, gap_chance=0.05),
    Recorder(0.2, distance_m=50.0, jitter_m=0.7),
    Recorder(0.1, distance_m=150.0, gap_chance=0.2),
)
"""Phones, trackers and taxis. Devices in use; the shares are round numbers."""
_GAP_S = (60.0, 300.0)
"""Shortest and longest gap in seconds."""
_MOST_JITTERS = 2.0
"""Largest error of a single fix, in standard deviations: a jump would look like speeding."""
_MIX = 2_654_435_761
"""Knuth's multiplicative hash: a person keeps the same device in all batches."""


def recorder_of(user: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each person's recorder."""
    uniform = (user.astype(np.uint64) * np.uint64(_MIX) % np.uint64(1 << 32)).astype(np.float64) / (1 << 32)
    shares = np.cumsum([recorder.share for recorder in RECORDERS])
    return np.minimum(np.searchsorted(shares, uniform, side="right"), len(RECORDERS) - 1)


def record(drives: Drives, which: NDArray[np.int64], user: NDArray[np.int64], rng: np.random.Generator) -> Fixes:
    """The fixes of the trips `which` of the given users, at whole seconds."""
    kind, n = recorder_of(user), len(which)
    interval_s, distance_m, jitter_m, gap_chance = (
        np.array([getattr(recorder, name) for recorder in RECORDERS])[kind]
        for name in ("interval_s", "distance_m", "jitter_m", "gap_chance")
    )
    duration_s = np.floor(drives.duration_s[which])
    offsets, clock, metres, length_m = _corners(drives, which)
    by_distance = distance_m > 0
    # Numbers of fixes: the first, one per interval of time or distance, and one at the end.
    wanted = np.where(by_distance, length_m / np.maximum(distance_m, 1), duration_s / np.maximum(interval_s, 1))
    count = np.clip(np.floor(wanted), 1, MOST_POINTS - 2).astype(np.int64) + 1
    owner, rank = ragged.owners(count), ragged.ranks(count)
    usual, whole = np.where(by_distance, distance_m, interval_s), np.where(by_distance, length_m, duration_s)
    mark = rank * np.maximum(usual, whole / (MOST_POINTS - 2))[owner]
    # Each trip has its own stretch of one axis of metres, on which the time is interpolated.
    stretch = float(length_m.max(initial=0.0)) + 1.0
    row = ragged.owners(np.diff(offsets))
    at_mark = np.interp(mark + owner * stretch, metres + row * stretch, clock)
    at = np.ceil(np.where(by_distance[owner], at_mark, mark))
    keep = (at < duration_s[owner]) & ~_in_gap(at, owner, duration_s, gap_chance, rng)
    at, owner = np.r_[at[keep], duration_s], np.r_[owner[keep], np.arange(n)]
    order = np.lexsort((at, owner))
    at, owner = at[order], owner[order]
    fresh = np.r_[True, (owner[1:] != owner[:-1]) | (at[1:] > at[:-1])]
    at, owner = at[fresh], owner[fresh]
    x, y = positions(drives, which, owner, at)
    drift_x, drift_y = drift(owner, at, n, rng)
    jitter = np.clip(rng.normal(size=(2, len(at))), -_MOST_JITTERS, _MOST_JITTERS) * jitter_m[owner]
    found = ragged.offsets_of(np.bincount(owner, minlength=n))
    return found, x + drift_x + jitter[0], y + drift_y + jitter[1], at


def _corners(
    drives: Drives, which: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(offsets, seconds and metres since departure at the corners, length of each trip) of the trips `which`."""
    offsets, corner = ragged.take(drives.offsets, which)
    xy = drives.xy[corner]
    step = np.hypot(*np.diff(xy, axis=0, prepend=xy[:1]).T)
    step[offsets[:-1]] = 0.0
    total = np.cumsum(step)
    metres = total - np.repeat(total[offsets[:-1]], np.diff(offsets))
    return offsets, drives.at_s[corner], metres, metres[offsets[1:] - 1]


def _in_gap(
    at: NDArray[np.float64],
    owner: NDArray[np.int64],
    duration_s: NDArray[np.float64],
    chance: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Whether a fix falls into its trip's gap; never the first one."""
    length_s = np.where(rng.random(len(chance)) < chance, rng.uniform(*_GAP_S, len(chance)), 0.0)
    begin = rng.random(len(chance)) * duration_s
    return (at > 0) & (at >= begin[owner]) & (at < (begin + length_s)[owner])
