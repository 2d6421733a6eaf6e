"""What a closed area and a one-way street do to traffic that used them: trips inside, across, along and against.

usage: closures.py [--n 5000] [--seeds 2] [--no-map] [--every 10]

The embedded city, ε = 1; its busiest 600 × 400 m are closed at all times and its busiest street becomes one-way. Rows:
the city as it is, synthetic without these rules, synthetic with them (means over the seeds). Counted by themselves, not
by the rules' own code. The noise is seeded: nothing made here is private.
"""

import argparse

import numpy as np
import shapely
from fixed_intervals import every

from wayveil.evaluation import METRICS, project
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.rules import closed, one_way
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.workflow.synthesize import synthesize

COLUMNS = (
    "points inside",
    "trips across > 50 m",
    "points within 12 m of it",
    "trips against > 60 m",
    "trips along > 60 m",
)
SCORED = ("length", "density_100", "trip_1000")


def busiest_box(paths, width=600.0, height=400.0):
    """The box of a grid of 100 m that holds most points."""
    spots = np.histogram2d(paths.x_m, paths.y_m, [np.arange(0, paths.width_m, 100), np.arange(0, paths.height_m, 100)])[
        0
    ]
    sums = np.lib.stride_tricks.sliding_window_view(spots, (int(width // 100), int(height // 100))).sum(axis=(2, 3))
    i, j = np.unravel_index(sums.argmax(), sums.shape)
    return shapely.box(100 * i, 100 * j, 100 * i + width, 100 * j + height)


def busiest_street(city, paths, away_from):
    """The two-way street of 200 m or more that most points are within 30 m of, away from the closed area."""
    roads, scope = city.roadmap, city.scope
    x, y = scope.to_metres(roads.lon, roads.lat)
    owner = np.repeat(np.arange(len(roads.oneway)), np.diff(roads.offsets))
    lines = shapely.linestrings(np.c_[x, y], indices=owner)
    free = (shapely.length(lines) >= 200) & (roads.oneway != 1) & (shapely.distance(lines, away_from) > 300)
    tree, points = shapely.STRtree(lines[free]), shapely.points(paths.x_m[::5], paths.y_m[::5])
    near = tree.query(points, predicate="dwithin", distance=30.0)[1]
    return lines[free][np.bincount(near, minlength=int(free.sum())).argmax()]


def counted(data, scope, area, street):
    """The numbers of COLUMNS."""
    x, y = scope.to_metres(data.lon, data.lat)
    owner = np.repeat(np.arange(len(data)), np.diff(data.offsets))
    lines = shapely.linestrings(np.c_[x, y], indices=owner)
    across = shapely.length(shapely.intersection(lines, area)) > 50
    near = shapely.contains_xy(area.buffer(12), x, y) & ~shapely.contains_xy(area, x, y)
    points = shapely.points(x, y)
    beside = shapely.dwithin(points, street, 30.0)
    ahead = np.where(beside, shapely.line_locate_point(street, points), 0.0)
    runs = np.flatnonzero(beside & ~np.r_[False, beside[:-1] & (owner[1:] == owner[:-1])])
    ends = np.flatnonzero(beside & ~np.r_[beside[1:] & (owner[1:] == owner[:-1]), False])
    net = ahead[ends] - ahead[runs]
    trips = [len(np.unique(owner[runs[far]])) for far in (net < -60, net > 60)]
    return [int(shapely.contains_xy(area, x, y).sum()), int(across.sum()), int(near.sum()), *trips]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--no-map", action="store_true")
    parser.add_argument("--every", type=float, help="seconds from point to point, instead of the city's own")
    chosen = parser.parse_args()
    city = simulate_city(0)
    scope, data = city.scope, simulate_trajectories(city, chosen.n, seed=0)
    if chosen.every:
        data = every(chosen.every, data)
    paths = project(data, scope)
    area = busiest_box(paths)
    street = busiest_street(city, paths, area)

    def in_degrees(shape):
        return shapely.transform(shape, lambda xy: np.column_stack(scope.to_degrees(xy[:, 0], xy[:, 1])))

    rules = (closed(in_degrees(area), scope), one_way(in_degrees(street), scope))
    release = measure(data, scope, epsilon=1, unit="trajectory", noise=SeededNoise(1))
    roads = None if chosen.no_map else city.roadmap
    print("| | " + " | ".join((*COLUMNS, *SCORED)) + " |\n|---|" + "---|" * (len(COLUMNS) + len(SCORED)))
    print("| the city | " + " | ".join(map(str, counted(data, scope, area, street))) + " | | | |")
    for label, used in (("without the rules", ()), ("with them", rules)):
        rows = []
        for seed in range(1, chosen.seeds + 1):
            made = synthesize(release, roads=roads, rules=used, n=len(data), seed=seed).trajectories
            seen = project(made, scope)
            rows.append([*counted(made, scope, area, street), *(METRICS[name](paths, seen) for name in SCORED)])
        mean = np.mean(rows, axis=0)
        told = [f"{value:.0f}" for value in mean[: len(COLUMNS)]] + [f"{value:.4f}" for value in mean[len(COLUMNS) :]]
        print(f"| {label} | " + " | ".join(told) + " |", flush=True)


if __name__ == "__main__":
    main()
