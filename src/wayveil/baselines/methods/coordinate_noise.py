"""Noise on trajectories: CNoise and SDD (Jiang, Shao, Bressan, Kister, Tan: SSDBM 2013), and a variant that uses DTW.

Three methods that replace each trajectory by a randomised one, with the size of the map as the sensitivity:

- `coordinate_noise`: Laplace noise on every coordinate of every point;
- `distance_direction`: noise on the distance and the direction of each step (SDD);
- `nearest_candidate`: one of a set of candidate trajectories, by the exponential mechanism with dynamic time warping as
  the score. This is our reading of "the same with DTW"; the text of the paper was not available.

Each trajectory is reduced to eight points at equal arc length, because its number of points is private; only the
published mode of `coordinate_noise` keeps all points. The default mode releases a noisy number of records (see
`records.noisy_records`).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.method import Method, Run
from wayveil.baselines.records import noisy_records, waypoints
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]

POINTS = 8
"""Points at equal arc length to which a trajectory is reduced."""
CANDIDATES = 16
"""Number of candidate trajectories; noise is drawn for each pair of a record and a candidate."""
_LEAKS = "Not private: box, number of trajectories and {more} are exact; {epsilon}noise is floating-point."
_SHARES = {"count": "0.05", "records": "0.95"}


def _reflected(values: Floats) -> Floats:
    """Values reflected at 0 and 1 into [0, 1]; clipping would pile up points at the borders."""
    folded: Floats = 1.0 - np.abs(1.0 - np.mod(values, 2.0))
    return folded


def _coordinates(run: Run) -> Trajectories:
    count = run.count()
    offsets, x_m, y_m = run.data
    box = run.box
    if run.published:
        values = np.column_stack([(x_m - box.x_m) / box.width_m, (y_m - box.y_m) / box.height_m])
        # As in the paper, every point spends the whole epsilon, as if it were the only one of its trajectory.
        noisy = _reflected(run.mechanism.rows("records", values, np.full(2, 0.5)))
        return _copies(run, offsets, box.x_m + noisy[:, 0] * box.width_m, box.y_m + noisy[:, 1] * box.height_m)
    x_m, y_m = waypoints(*run.data, POINTS)
    values = np.column_stack([x_m / box.width_m, y_m / box.height_m])
    noisy = _reflected(noisy_records(run, values, np.full(2 * POINTS, 0.5 / POINTS), count))
    return _trajectories(run, noisy[:, :POINTS] * box.width_m, noisy[:, POINTS:] * box.height_m)


def _copies(run: Run, offsets: NDArray[np.int64], x_m: Floats, y_m: Floats) -> Trajectories:
    """The published copies, as many as requested; a copy with a single point repeats it."""
    m = len(offsets) - 1
    size = run.size(float(m))
    index = np.arange(size) % m if size > m else run.rng.permutation(m)[:size]
    taken, points = ragged.take(offsets, index)
    single = np.diff(taken)[ragged.owners(np.diff(taken))] == 1
    points = np.repeat(points, 1 + single)
    return run.made(ragged.offsets_of(np.maximum(np.diff(taken), 2)), x_m[points], y_m[points])


def _trajectories(run: Run, x_m: Floats, y_m: Floats) -> Trajectories:
    """The output from (trajectories, points) arrays of coordinates."""
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
        noisy[:, :2] = start  # the authors publish the exact start
        noisy = noisy[run.rng.integers(0, len(noisy), run.size(count))] if run.wanted else noisy
    distance = np.clip(noisy[:, 2 : POINTS + 1], 0.0, 1.0) * reach_m
    angle = 2 * np.pi * noisy[:, POINTS + 1 :]
    place = [_reflected(noisy[:, :1]) * box.width_m, _reflected(noisy[:, 1:2]) * box.height_m]
    moved = [distance * np.cos(angle), distance * np.sin(angle)]
    x_m, y_m = (np.cumsum(np.column_stack([p, d]), axis=1) for p, d in zip(place, moved))
    x_m, y_m = _reflected(x_m / box.width_m) * box.width_m, _reflected(y_m / box.height_m) * box.height_m
    return _trajectories(run, box.x_m + x_m, box.y_m + y_m)


def _candidates(run: Run) -> Trajectories:
    """For each record, the candidate that is nearest by dynamic time warping plus noise.

    The diameter of the map is the sensitivity of the distances.
    """
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
        middle = np.full((size - len(kept), POINTS), 0.5)  # records at the centre make up the number
        x_m, y_m = np.concatenate([x_m[kept], middle * box.width_m]), np.concatenate([y_m[kept], middle * box.height_m])
    # Mean distance of a point in metres, clipped at the diameter of the map, which is then the sensitivity.
    score = -np.minimum(_warping(x_m, y_m, pool_x, pool_y), diameter_m).astype(np.int64)
    chosen = run.mechanism.choose("records", score, int(np.ceil(diameter_m)))
    if run.published and run.wanted:
        chosen = chosen[run.rng.integers(0, len(chosen), run.size(count))]
    return _trajectories(run, pool_x[chosen], pool_y[chosen])


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
    _LEAKS.format(more="number of points", epsilon="every point spends epsilon; "),
)
distance_direction = _method(
    "distance-direction",
    "Noise on the distance and the direction of each step (SDD).",
    _steps,
    _LEAKS.format(more="starts", epsilon=""),
)
nearest_candidate = _method(
    "nearest-candidate",
    "One of a set of candidate trajectories, by dynamic time warping and the exponential mechanism.",
    _candidates,
    "Not private: box and number of trajectories are exact, and the candidates are taken from the data.",
)
