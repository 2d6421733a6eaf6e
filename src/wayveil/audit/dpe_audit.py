"""Audit of DPE as published: many runs on two datasets that differ in one record."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.audit.attacks import centroid_error_m, membership, own_linkage, shapes
from wayveil.audit.bounds import Rate
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.dpe.align import align
from wayveil.dpe.coordinates import frame_of, synthesize_published, to_points
from wayveil.dpe.method import options_of
from wayveil.progress import Progress, quiet

ITERATIONS = 20
"""Steps of gradient descent per run: few, because there are hundreds of runs."""
DPE_STATISTICS = ("centroid of the output along the canary", "last output's nearness to the canary")


@dataclass(frozen=True)
class Leaks:
    """What one output of the published method reveals."""

    linked: Rate
    """Share of outputs whose nearest record is the one that they were made from."""
    advantage: Rate
    reconstruction_m: float
    """Error of the last record, reconstructed by someone who knows the others."""
    guess_m: float
    """Error of the best guess without the output."""


def replace_last(data: Trajectories, other: Trajectories) -> Trajectories:
    """The neighbouring dataset: the last record is replaced, so that the number of records reveals nothing."""
    return concatenate([_anonymous(select(data, np.arange(len(data) - 1))), _anonymous(other)])


def _anonymous(data: Trajectories) -> Trajectories:
    return Trajectories(data.offsets, data.lon, data.lat, data.t_utc)


def published_scores(
    data: Trajectories,
    neighbour: Trajectories,
    scope: Scope,
    epsilon: float,
    runs: int,
    progress: Progress = quiet,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(runs, 2) statistics of the outputs on `data`, and on `neighbour`, whose last record is different.

    Privacy: not private (trusted side only).
    """
    last = [_last(part, scope) for part in (data, neighbour)]
    direction = last[1].mean(axis=0) - last[0].mean(axis=0)
    direction = direction / max(float(np.linalg.norm(direction)), 1e-9)
    scores = np.zeros((2, runs, 2))
    for run in range(runs):
        progress(f"published method, epsilon {epsilon:g}", (run + 1) / runs)
        for side, part in enumerate((data, neighbour)):
            options = options_of(epsilon, iterations=ITERATIONS, seed=2 * run + side)
            points = synthesize_published(part, scope, options).run.points[:, :, :2]
            centre = points[-1].mean(axis=0)
            nearer = np.linalg.norm(centre - last[0].mean(axis=0)) - np.linalg.norm(centre - last[1].mean(axis=0))
            scores[side, run] = points.mean(axis=(0, 1)) @ direction, nearer
    return scores[0], scores[1]


def _last(data: Trajectories, scope: Scope) -> NDArray[np.float64]:
    """(points, 2) positions of the last record in metres."""
    begin = data.offsets[-2]
    return np.stack(scope.to_metres(data.lon[begin:], data.lat[begin:]), axis=1)


def published_leaks(
    data: Trajectories, holdout: Trajectories, scope: Scope, epsilon: float, confidence: float
) -> Leaks:
    """Linkage, membership and reconstruction from one run.

    Privacy: not private (trusted side only).
    """
    published = synthesize_published(data, scope, options_of(epsilon, iterations=ITERATIONS, seed=1))
    real, synthetic, others = (shapes(part, scope) for part in (data, published.trajectories, holdout))
    records = align(to_points(data, scope, frame_of(data, scope)), data.offsets)
    return Leaks(
        own_linkage(real, synthetic, confidence).share,
        membership(real, others, synthetic, confidence),
        *centroid_error_m(records.points, published.run.points),
    )
