"""Noise on coordinates (Jiang, Shao, Bressan, Kister, Tan: SSDBM 2013: CNoise and SDD), and a variant by DTW.

Three methods that publish a noisy copy of each trajectory with the map's size as the sensitivity:

- `coordinate_noise`: Laplace noise on every coordinate of every point;
- `distance_direction`: noise on the distance and the direction of each step (SDD);
- `nearest_candidate`: one of a set of candidate trajectories, by the exponential mechanism with dynamic time warping as
  the score. This is our reading of "the same with DTW"; the text of the paper was not available.

The default mode reduces each trajectory to eight points at equal arc length, because the number of points is private,
and releases a noisy number of records (see `records.noisy_records`).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.method import Method, Run
from wayveil.baselines.records import noisy_records, waypoints
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]

POINTS = 8
"""Points at equal arc length to which the default mode reduces a trajectory."""
CANDIDATES = 16
"""Number of candidate trajectories; each record draws noise for each candidate."""
_LEAKS = "Not private: box, number of trajectories, number of points{more} are exact, {epsilon}noise is floating-point."
_SHARES = {"count": "0.05", "records": "0.95"}


def _into(values: Floats) -> Floats:
    """Values reflected at the borders into [0, 1]; clipping would pile up points there."""
    folded: Floats = 1.0 - np.abs(1.0 - np.mod(values, 2.0))
    return folded


def _coordinates(run: Run) -> Trajectories:
    count = run.count()
    offsets, x_m, y_m = run.data
    box = run.box
    if run.published:
        values = np.column_stack([(x_m - box.x_m) / box.width_m, (y_m - box.y_m) / box.height_m])
        # Every point spends the whole epsilon, as if it were the only one: this is how the authors treat a trajectory.
        noisy = _into(run.mechanism.rows("records", values, np.full(2, 0.5)))
        return _chosen(run, offsets, box.x_m + noisy[:, 0] * box.width_m, box.y_m + noisy[:, 1] * box.height_m)
    x_m, y_m = waypoints(*run.data, POINTS)
    values = np.column_stack([x_m / box.width_m, y_m / box.height_m])
    noisy = _into(noisy_records(run, values, np.full(2 * POINTS, 0.5 / POINTS), count))
    return _square(run, noisy[:, :POINTS] * box.width_m, noisy[:, POINTS:] * box.height_m)


def _chosen(run: Run, offsets: NDArray[np.int64], x_m: Floats, y_m: Floats) -> Trajectories:
    """The published copies, as many as requested; a copy with a single point repeats it."""
    m = len(offsets) - 1
    size = run.size(float(m))
    index = np.arange(size) % m if size > m else run.rng.permutation(m)[:size]
    taken, points = ragged.take(offsets, index)
    single = np.diff(taken)[ragged.owners(np.diff(taken))] == 1
    points = np.repeat(points, 1 + single)
    return run.made(ragged.offsets_of(np.maximum(np.diff(taken), 2)), x_m[points], y_m[points])


def _square(run: Run, x_m: Floats, y_m: Floats) -> Trajectories:
    n, points = x_m.shape
    return run.made(np.arange(0, n * points + 1, points), x_m.ravel(), y_m.ravel())


def _steps(run: Run) -> Trajectories:
    """Start, distances and directions of the steps: each gets a third of the record's share."""
    count, box = run.count(), run.box
    x_m, y_m = waypoints(*run.data, POINTS)
    east, north = np.diff(x_m, axis=1), np.diff(y_m, axis=1)
    reach_m = float(np.hypot(box.width_m, box.height_m)) / (POINTS - 1)
    distance = np.hypot(east, north) / reach_m
    turn = np.mod(np.arctan2(north, east) / (2 * np.pi), 1.0)
    start = np.column_stack([(x_m[:, 0] - box.x_m) / box.width_m, (y_m[:, 0] - box.y_m) / box.height_m])
    values = np.column_stack([start, distance, turn])
    weights = np.r_[np.full(2, 1 / 6), np.full(2 * (POINTS - 1), 1 / (3 * (POINTS - 1)))]
    noisy = noisy_records(run, values, weights / weights.sum(), count)
    if run.published:
        noisy[:, :2] = start  # the authors publish both ends of a voyage
        noisy = noisy[run.rng.integers(0, len(noisy), run.size(count))] if run.wanted else noisy
    distance = np.clip(noisy[:, 2 : POINTS + 1], 0.0, 1.0) * reach_m
    angle = 2 * np.pi * noisy[:, POINTS + 1 :]
    place = [_into(noisy[:, :1]) * box.width_m, _into(noisy[:, 1:2]) * box.height_m]
    moved = [distance * np.cos(angle), distance * np.sin(angle)]
    x_m, y_m = (np.cumsum(np.column_stack([p, d]), axis=1) for p, d in zip(place, moved))
    x_m, y_m = _into(x_m / box.width_m) * box.width_m, _into(y_m / box.height_m) * box.height_m
    return _square(run, box.x_m + x_m, box.y_m + y_m)


def _candidates(run: Run) -> Trajectories:
    """The candidate nearest to each record by dynamic time warping, with noise of the map's diameter."""
    count, box, m = run.count(), run.box, run.trajectories
    diameter_m = float(np.hypot(box.width_m, box.height_m))
    x_m, y_m = waypoints(*run.data, POINTS)
    if run.published:
        pool = run.rng.integers(0, m, CANDIDATES)
        pool_x, pool_y = x_m[pool], y_m[pool]
    else:
        ends = (
            box.x_m + run.rng.random((2, CANDIDATES)) * box.width_m,
            box.y_m + run.rng.random((2, CANDIDATES)) * (box.height_m),
        )
        along = np.linspace(0.0, 1.0, POINTS)[None]
        pool_x, pool_y = (pair[0][:, None] * (1 - along) + pair[1][:, None] * along for pair in ends)
        size = run.size(count)
        kept = run.mechanism.order(m)[:size]
        middle = np.full((size - len(kept), POINTS), 0.5)
        x_m, y_m = np.concatenate([x_m[kept], middle * box.width_m]), np.concatenate([y_m[kept], middle * box.height_m])
    # Metres per point, clipped at the diameter, which is then the sensitivity of every score.
    score = -np.minimum(_warping(x_m, y_m, pool_x, pool_y), diameter_m).astype(np.int64)
    chosen = run.mechanism.choose("records", score, int(np.ceil(diameter_m)))
    if run.published and run.wanted:
        chosen = chosen[run.rng.integers(0, len(chosen), run.size(count))]
    return _square(run, pool_x[chosen], pool_y[chosen])


def _warping(x_m: Floats, y_m: Floats, other_x: Floats, other_y: Floats) -> Floats:
    """(records, candidates) mean distance of a point along the best warping path."""
    n, k, points = len(x_m), len(other_x), x_m.shape[1]
    cost = np.full((n, k, points + 1), np.inf)
    cost[:, :, 0] = 0.0
    for i in range(points):
        row = np.full((n, k, points + 1), np.inf)
        for j in range(points):
            apart = np.hypot(x_m[:, i, None] - other_x[None, :, j], y_m[:, i, None] - other_y[None, :, j])
            row[:, :, j + 1] = apart + np.minimum(np.minimum(cost[:, :, j], cost[:, :, j + 1]), row[:, :, j])
        cost = row
    mean: Floats = cost[:, :, -1] / points
    return mean


def _method(name: str, idea: str, make: object, leaks: str) -> Method:
    return Method(
        name=name,
        reference="Jiang, Shao, Bressan, Kister, Tan: SSDBM 2013",
        idea=idea,
        protects="one trajectory, added or removed",
        proof="One more record changes the noisy count, and replaces at most one of the records that are released.",
        leaks=leaks,
        shares=_SHARES,
        published_shares={"records": "1"},
        make=make,  # type: ignore[arg-type]
    )


coordinate_noise = _method(
    "coordinate-noise",
    "Laplace noise on every coordinate, with the map's size as sensitivity (CNoise).",
    _coordinates,
    _LEAKS.format(more="", epsilon="every point spends epsilon, "),
)
distance_direction = _method(
    "distance-direction",
    "Noise on the distance and the direction of each step (SDD).",
    _steps,
    _LEAKS.format(more=" and starts", epsilon=""),
)
nearest_candidate = _method(
    "nearest-candidate",
    "One of a set of candidate trajectories, by dynamic time warping and the exponential mechanism.",
    _candidates,
    "Not private: box and number of trajectories are exact, and the candidates are trajectories of the data.",
)
