"""A public road map makes the synthetic trips drive on streets; it costs no privacy."""

import tempfile
from pathlib import Path

import shapely

import wayveil
from wayveil.simulate import simulate_city, simulate_trajectories


def share_near_a_road(trajectories, roads, scope, within_m: float = 15.0) -> float:
    """Share of the points that lie within some metres of a street."""
    x, y = scope.to_metres(roads.lon, roads.lat)
    ends = roads.offsets[1:-1]
    lines = [shapely.LineString(part) for part in _split(x, y, ends)]
    px, py = scope.to_metres(trajectories.lon, trajectories.lat)
    points = shapely.points(px, py)
    near = shapely.STRtree(lines).query(points, predicate="dwithin", distance=within_m)[0]
    return len(set(near.tolist())) / len(points)


def _split(x, y, ends):
    import numpy as np

    return np.split(np.column_stack([x, y]), ends)


def main() -> None:
    city = simulate_city(size_km=(3, 3))
    rides = simulate_trajectories(city, n=300)
    with tempfile.TemporaryDirectory() as folder:
        account = {"dataset": "rides", "ledger": Path(folder) / "ledger.sqlite"}
        release = wayveil.measure(rides, city.scope, epsilon=1, unit="trajectory", roads=city.roadmap, **account)
    without = wayveil.synthesize(release, n=200, seed=1).trajectories
    with_map = wayveil.synthesize(release, roads=city.roadmap, n=200, seed=1).trajectories
    for name, made in (("without a map", without), ("with the map", with_map)):
        share = share_near_a_road(made, city.roadmap, city.scope)
        print(f"{name}: {share:.0%} of the points lie within 15 m of a street")
    assert share_near_a_road(with_map, city.roadmap, city.scope) > share_near_a_road(without, city.roadmap, city.scope)


if __name__ == "__main__":
    main()
