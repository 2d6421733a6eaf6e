"""From trajectories in degrees and Unix seconds to the vectors of the paper, and back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.trajectories import Trajectories, select
from wayveil.dpe.align import Aligned, align, pad, unalign
from wayveil.dpe.kernel import default_plan
from wayveil.dpe.memory import check_memory
from wayveil.dpe.method import Options, Run, dpe
from wayveil.dpe.penalties import rules_term
from wayveil.errors import InputError
from wayveil.progress import Progress, quiet

if TYPE_CHECKING:
    from wayveil.core.scope import Scope

_TICK_S = 1e-3
"""Seconds between two output times that would otherwise not increase."""


@dataclass(frozen=True)
class Frame:
    """The scale of time relative to metres, and the lengths that define lambda."""

    time_scale_mps: float
    """Metres per second of time; 0 ignores time."""
    t0_utc: float
    diameter_m: float
    """2r, the diagonal of the scope's box."""
    tau_m: float
    """tau, the time span in metres."""


def frame_of(trajectories: Trajectories, scope: Scope, time_scale_mps: float | None = None) -> Frame:
    """The frame of a scope; if the scope has no days, the time span is that of the data, as in the paper.

    `time_scale_mps=None` gives the whole time span the weight of the map's diameter: 2r / span. The paper gives no
    unit; with raw seconds and metres, weeks of data make time a hundred times longer than the city.

    Privacy: not private (trusted side only).
    """
    window = scope.time_window()
    begin, end = window or (float(trajectories.t_utc.min()), float(trajectories.t_utc.max()))
    diameter_m = float(np.hypot(scope.width_m, scope.height_m))
    span_s = max(end - begin, 1.0)
    scale = diameter_m / span_s if time_scale_mps is None else float(time_scale_mps)
    if not (np.isfinite(scale) and scale >= 0):
        raise InputError("time_scale_mps= must be 0 (ignore time) or a positive number of metres per second.")
    return Frame(scale, begin, diameter_m, scale * span_s)


def to_points(trajectories: Trajectories, scope: Scope, frame: Frame) -> NDArray[np.float64]:
    """(points, 3): x_m, y_m and the time in metres."""
    x_m, y_m = scope.to_metres(trajectories.lon, trajectories.lat)
    return np.stack([x_m, y_m, (trajectories.t_utc - frame.t0_utc) * frame.time_scale_mps], axis=1)


def to_trajectories(
    points: NDArray[np.float64], aligned: Aligned, original: Trajectories, scope: Scope, frame: Frame
) -> Trajectories:
    """Trajectories from the original points of an (m, n, 3) array, without the copies that the alignment added.

    Points are clipped to the scope's box (the paper's "T subset of S") and a running maximum makes the times increase.
    """
    flat, offsets = unalign(points, aligned)
    x_m, y_m = np.clip(flat[:, 0], 0, scope.width_m), np.clip(flat[:, 1], 0, scope.height_m)
    lon, lat = scope.to_degrees(x_m, y_m)
    t_utc = original.t_utc if frame.time_scale_mps == 0 else frame.t0_utc + flat[:, 2] / frame.time_scale_mps
    return Trajectories(offsets, lon, lat, _increasing(t_utc, offsets))


def _increasing(t_utc: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    result = np.array(t_utc, np.float64)
    for begin, end in itertools.pairwise(offsets):
        ticks = _TICK_S * np.arange(end - begin)
        result[begin:end] = np.maximum.accumulate(result[begin:end] - ticks) + ticks
    return result


@dataclass(frozen=True, eq=False)
class Published:
    """The published method's trajectories, and the run they came from. Not private."""

    trajectories: Trajectories
    run: Run
    frame: Frame
    rule_breaks: tuple[int, int] | None
    """Points that break a rule: in the originals, and in the output; None without rules."""


def synthesize_published(
    trajectories: Trajectories,
    scope: Scope,
    options: Options,
    *,
    rules: Sequence[Any] = (),
    progress: Progress = quiet,
) -> Published:
    """DPE on real trajectories: one output for each input, in the same order.

    Privacy: not private, for any epsilon.
    """
    if len(trajectories) < 2:
        raise InputError("The method compares trajectories with each other and needs at least two.")
    # Before the alignment: one very long trajectory makes all others equally long.
    longest = int(np.diff(trajectories.offsets).max())
    check_memory(len(trajectories), 3 * longest, default_plan(len(trajectories), options.synthesis.precision))
    frame = frame_of(trajectories, scope, options.time_scale_mps)
    points = to_points(trajectories, scope, frame)
    if not np.isfinite(points).all():
        raise InputError("Some coordinates or times are not finite numbers; run wayveil.check().")
    to_equal_lengths = align if options.extend and options.metric.needs_alignment else pad
    aligned = to_equal_lengths(points, trajectories.offsets)
    largest = options.metric.largest(aligned.points.shape[1], frame.diameter_m, frame.tau_m)
    terms = []
    if rules:
        from wayveil.rules.motion import motion_of  # imported only if there are rules

        terms = [rules_term(rules, aligned, motion_of(trajectories, scope), frame.time_scale_mps, options.rules_factor)]
    run = dpe(aligned, largest, options, terms, progress)
    breaks = None
    if terms:
        breaks = int(terms[0].broken(aligned.points).sum()), int(terms[0].broken(run.points).sum())
    output = to_trajectories(run.points, aligned, trajectories, scope, frame)
    return Published(output, run, frame, breaks)


def random_subset(trajectories: Trajectories, size: int, seed: int) -> Trajectories:
    """`size` trajectories drawn without replacement, or all of them if there are fewer."""
    if size < 2:
        raise InputError("subset= must be 2 or more.")
    if size >= len(trajectories):
        return trajectories
    chosen = np.random.default_rng(seed).choice(len(trajectories), size, replace=False)
    return select(trajectories, np.sort(chosen))
