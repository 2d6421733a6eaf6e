"""Attacks on one synthetic file: what an attacker with some background knowledge can learn from it.

Privacy: not private (trusted side only), all of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.audit.bounds import CONFIDENCE, Rate, rate
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.core.waypoints import waypoints
from wayveil.errors import InputError
from wayveil.evaluation.floor import FEWEST

WAYPOINTS = 16
"""Waypoints at equal arc length that represent the shape of a trajectory."""
MOST_COMPARED = 5_000
"""Maximum number of trajectories from each side that an attack compares; larger files are sampled to save time."""
_BLOCK = 1 << 22
"""Number of distances computed at once (32 MB)."""
_COPY_M = 1.0
"""Metres (root mean square): a record this close is counted as a copy; GPS noise alone is larger."""
_CHANCE = 0.01
"""Added to the limit on linkage by position, which is otherwise twice the share expected by chance."""
_NEAR = 0.05
"""Share of the real trajectories that have another one nearby: it defines the distance that counts as near."""

Vectors = NDArray[np.float64]


def shapes(trajectories: Trajectories, scope: Scope) -> Vectors:
    """(n, 32): 16 points at equal arc length in metres, divided by √16, so that distances are RMS values."""
    x_m, y_m = scope.to_metres(trajectories.lon, trajectories.lat)
    points = waypoints(trajectories.offsets, x_m, y_m, trajectories.t_utc, WAYPOINTS, 0.0)[:, :, :2]
    return np.asarray(points.reshape(len(trajectories), -1) / np.sqrt(WAYPOINTS), np.float64)


def nearest(queries: Vectors, targets: Vectors, skip_own: bool = False) -> tuple[NDArray[np.int64], Vectors]:
    """(index, distance in metres) of each query's nearest target; `skip_own` leaves out the one with the same index."""
    origin = targets.mean(axis=0)
    a, b = queries - origin, targets - origin
    squares = (b * b).sum(axis=1)
    index = np.empty(len(a), np.int64)
    rows = max(1, _BLOCK // max(len(b), 1))
    for start in range(0, len(a), rows):
        block = a[start : start + rows]
        score = squares - 2.0 * (block @ b.T)
        if skip_own:
            own = np.arange(len(block))
            score[own, start + own] = np.inf
        index[start : start + rows] = score.argmin(axis=1)
    return index, np.linalg.norm(a - b[index], axis=1)


def sample(trajectories: Trajectories, most: int, seed: int = 0) -> NDArray[np.int64]:
    """Positions of at most `most` trajectories, chosen at random and sorted."""
    if len(trajectories) <= most:
        return np.arange(len(trajectories))
    return np.sort(np.random.default_rng(seed).choice(len(trajectories), most, replace=False))


@dataclass(frozen=True)
class Linked:
    """A share with its interval, the largest share that a private release may have, and the number of trials."""

    share: Rate
    allowed: float
    tried: int


def nearness(real: Vectors, synthetic: Vectors) -> tuple[Vectors, Vectors]:
    """Metres from real trajectories (at most 5,000) to the nearest other real one, and from synthetic to real ones."""
    if len(real) < FEWEST:
        raise InputError(f"Linkage needs at least {FEWEST} real trajectories.")
    chosen = np.random.default_rng(0).permutation(len(real))[:MOST_COMPARED]
    return _leave_one_out(real, chosen), nearest(synthetic, real)[1]


def near_copies(among_m: Vectors, distance_m: Vectors, confidence: float = CONFIDENCE) -> Linked:
    """Share of synthetic trajectories that are closer to a real one than 19 of 20 real ones are to each other.

    The threshold is the 5 % quantile of the distance from a real trajectory to the nearest other real one, at least one
    metre. A fresh sample of the population would fall below it about as often as real ones do; twice that is allowed.
    """
    threshold_m = max(float(np.quantile(among_m, _NEAR)), _COPY_M)
    near = rate(int((distance_m <= threshold_m).sum()), len(distance_m), confidence)
    return Linked(near, 2 * max(_NEAR, float((among_m <= threshold_m).mean())), len(distance_m))


def exact_copies(among_m: Vectors, distance_m: Vectors, confidence: float = CONFIDENCE) -> Linked:
    """Share of synthetic trajectories within one metre of a real one; the limit is the same share among real ones.

    It finds a few per cent of copies among other trajectories, which `near_copies` does not detect.
    """
    found, own = (rate(int((metres <= _COPY_M).sum()), len(metres), confidence) for metres in (distance_m, among_m))
    return Linked(found, own.high, len(distance_m))


def _leave_one_out(real: Vectors, chosen: NDArray[np.int64]) -> Vectors:
    """Distance of each chosen trajectory to the nearest other real one."""
    # `skip_own` compares positions, so the chosen trajectories come first among the targets, too.
    order = np.r_[chosen, np.setdiff1d(np.arange(len(real)), chosen)]
    return nearest(real[chosen], real[order], skip_own=True)[1]


def linkage(
    real: Vectors, synthetic: Vectors, holdout: Vectors, allowed: float, confidence: float = CONFIDENCE
) -> Linked:
    """Of the records nearest to some synthetic trajectory, the share that was in the data; ½ if nothing leaked.

    The candidates are equally many real and held-out records. Each synthetic trajectory accuses the record nearest to
    it, and each accused record counts once. Under ε-DP, if the split is random, the number of correct accusations is
    stochastically dominated by Binomial(accused, e^ε / (1 + e^ε)).
    """
    size = min(len(real), len(holdout))
    inside, outside = (np.random.default_rng(k).permutation(len(side))[:size] for k, side in enumerate((real, holdout)))
    accused = np.unique(nearest(synthetic, np.concatenate([real[inside], holdout[outside]]))[0])
    return Linked(rate(int((accused < size).sum()), len(accused), confidence), allowed, len(accused))


def own_linkage(real: Vectors, synthetic: Vectors, confidence: float = CONFIDENCE) -> Linked:
    """Share of synthetic trajectories whose nearest real one has the same position in the file; 1/m for a random order.

    For methods that make one output from each input, in order.
    """
    if len(real) != len(synthetic):
        raise InputError("Linkage by position needs as many synthetic trajectories as real ones.")
    index, _ = nearest(synthetic, real)
    hits = int((index == np.arange(len(index))).sum())
    return Linked(rate(hits, len(index), confidence), 2.0 / len(index) + _CHANCE, len(index))


def membership(members: Vectors, others: Vectors, synthetic: Vectors, confidence: float = CONFIDENCE) -> Rate:
    """Advantage 2·accuracy − 1 of a membership attack by the distance to the nearest synthetic trajectory.

    Equally many members and others are judged; the threshold is chosen on one half, and the advantage and its
    Clopper–Pearson interval come from the other. ε-DP allows tanh(ε/2) on average over random splits into members and
    others.
    """
    size = min(len(members), len(others), MOST_COMPARED)
    if size < 4:
        raise InputError("Membership inference needs at least four real and four held-out trajectories.")
    inside, outside = (
        nearest(side[np.random.default_rng(k).permutation(len(side))[:size]], synthetic)[1]
        for k, side in enumerate((members, others))
    )
    return advantage(inside, outside, confidence)


def advantage(inside: Vectors, outside: Vectors, confidence: float = CONFIDENCE) -> Rate:
    """2·accuracy − 1 of the rule "a member if the value is at most t"; t is chosen on the first half of each side."""
    half = min(len(inside), len(outside)) // 2
    candidates = np.unique(np.concatenate([inside[:half], outside[:half]]))
    gain = np.searchsorted(np.sort(inside[:half]), candidates, side="right") - np.searchsorted(
        np.sort(outside[:half]), candidates, side="right"
    )
    best = int(np.argmax(gain))
    # Halfway to the next value, because the other half has other values.
    threshold = float(candidates[best : best + 2].mean())
    size = min(len(inside), len(outside))
    right = int((inside[half:size] <= threshold).sum() + (outside[half:size] > threshold).sum())
    accuracy = rate(right, 2 * (size - half), confidence)
    return Rate(2 * accuracy.value - 1, 2 * accuracy.low - 1, 2 * accuracy.high - 1)


def reconstruct_last(known: NDArray[np.floating], output: NDArray[np.floating]) -> NDArray[np.float64]:
    """T_m = Σ output − Σ_{i<m} T_i: descent on differences never changes the sum, so the sum reveals the last record.

    `known` is (m−1, …), `output` (m, …), both aligned as in the published method.
    """
    return np.asarray(np.sum(output, axis=0, dtype=np.float64) - np.sum(known, axis=0, dtype=np.float64))


def centroid_error_m(records: NDArray[np.floating], output: NDArray[np.floating]) -> tuple[float, float]:
    """Errors of the last record: reconstructed from the others, and guessed as their mean; RMS metres per point.

    Both arrays are (m, n, k) with x_m and y_m as the first two coordinates.
    """
    known, last = np.asarray(records, np.float64)[:-1], np.asarray(records, np.float64)[-1]
    errors = [
        float(np.sqrt((((guess - last)[:, :2]) ** 2).sum(axis=1).mean()))
        for guess in (reconstruct_last(known, output), known.mean(axis=0))
    ]
    return errors[0], errors[1]
