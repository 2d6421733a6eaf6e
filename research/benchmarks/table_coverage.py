"""How often the true figure lies inside the 90 % interval of `wayveil.tables`, by table, epsilon and number of trips.

The city is simulated, so the truth is known. Each release has its own noise. With --data, another file with a scope and
a road map is used, which the spreads in `wayveil.traffic.uncertainty` were not chosen on.

    python research/benchmarks/table_coverage.py
    python research/benchmarks/table_coverage.py --data rides.parquet --scope my-city.toml --roads roads.parquet
"""

import argparse

import numpy as np

import wayveil
from wayveil.synthesis.uncertainty.uncertainty import uncertainty
from wayveil.traffic.basis import Basis
from wayveil.traffic.distributions import distribution_tables
from wayveil.traffic.flows import flow_tables
from wayveil.traffic.parts import ALL_DAY, parts_of
from wayveil.traffic.streets import street_table
from wayveil.traffic.trips import Trips
from wayveil.traffic.uncertainty import Scale
from wayveil.traffic.zones import Zones

SIGNALS = ((3_000, "0.1"), (3_000, "1"), (10_000, "1"), (10_000, "4"))


def own_zones(scope, per_side=4):
    """Zones of a city that follow no region of a release: a grid that is shifted against it."""
    import shapely

    lon = np.linspace(scope.west, scope.east, per_side + 1) + 0.03 * (scope.east - scope.west)
    lat = np.linspace(scope.south, scope.north, per_side + 1) + 0.02 * (scope.north - scope.south)
    boxes = [shapely.box(*corner) for corner in (
        (lon[i], lat[j], lon[i + 1], lat[j + 1]) for j in range(per_side) for i in range(per_side))]  # fmt: skip
    return Zones(tuple(f"zone {k + 1}" for k in range(len(boxes))), np.array(boxes, object))


def every_table(basis, zones, roads):
    """All tables as columns, by name."""
    found = [*flow_tables(basis, zones), *distribution_tables(basis)]
    if roads is not None:
        found.append(street_table(basis, roads)[0])
    return {table.name: table for table in found}


def coverage(rides, scope, roads, epsilon, seed, zones=None, with_map=True):
    """Yield (table, part, share of rows whose truth is inside, median relative sd, rows) of one release."""
    release = wayveil.measure(rides, scope, epsilon=epsilon, unit="trajectory", accept_low_signal=True)
    made = wayveil.synthesize(release, roads=roads if with_map else None, seed=seed)
    zones = own_zones(scope) if zones is None else zones
    real, own = Trips.of(rides, scope), Trips.of(made.trajectories, scope)
    parts = parts_of(None)
    known = uncertainty(release)
    truth = every_table(Basis(real, Scale(len(real), 0.0, len(real)), parts, known), zones, roads)
    stated = every_table(Basis(own, Scale.of(release, len(own)), parts, known), zones, roads)
    for name, table in stated.items():
        yield from judge(name, table, truth[name])


def judge(name, stated, truth):
    for value in ("trips", "starts", "speed_kmh"):
        if value not in stated.columns:
            continue
        prefix = "" if value == "trips" else f"{value}_"
        keys = [column for column in stated.columns if column in KEYS]
        true = dict(zip(zip(*(truth[key].tolist() for key in keys)), truth[value].tolist()))
        exact = np.array([true.get(key, np.nan if value == "speed_kmh" else 0.0) for key in zip(*(stated[key].tolist() for key in keys))])
        inside = (exact >= stated[f"{prefix}low_90"]) & (exact <= stated[f"{prefix}high_90"])
        known = np.isfinite(exact) & np.isfinite(stated[value])
        day = stated["part_of_day"] == ALL_DAY if "part_of_day" in stated.columns else np.ones(len(stated), bool)
        for label, chosen in (("day", day & known), ("part", ~day & known)):
            if chosen.any():
                relative = stated[f"{prefix}sd"][chosen] / np.maximum(stated[value][chosen], 1)
                busy = stated[value][chosen] >= np.median(stated[value][chosen])
                yield f"{name}.{value}", label, inside[chosen].mean(), inside[chosen][busy].mean(), np.median(relative), chosen.sum()


KEYS = ("origin", "destination", "zone", "part_of_day", "road", "part", "direction", "km_from", "minutes_from", "hour_from")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--scope")
    parser.add_argument("--roads")
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    if given.data:
        scope, roads = wayveil.read_scope(given.scope), wayveil.read_roads(given.roads)
        cases = [(wayveil.read(given.data), scope, roads, epsilon) for epsilon in ("0.1", "1")]
    else:
        city = wayveil.simulate.simulate_city(size_km=(6, 6))
        cases = [
            (wayveil.simulate.simulate_trajectories(city, n, seed=n), city.scope, city.roadmap, epsilon)
            for n, epsilon in SIGNALS
        ]
    print("trips epsilon table             part  inside  inside(busy half)  median sd/value  rows")
    for rides, scope, roads, epsilon in cases:
        found = [row for run in range(given.runs) for row in coverage(rides, scope, roads, epsilon, run)]
        for key in dict.fromkeys((row[0], row[1]) for row in found):
            rows = [row[2:] for row in found if row[:2] == key]
            inside, busy, relative, count = np.mean(rows, axis=0)
            print(f"{len(rides):6d} {epsilon:>6} {key[0]:18s} {key[1]:5s} {inside:6.1%} {busy:12.1%} {relative:16.2f} {count:10.0f}", flush=True)


if __name__ == "__main__":
    main()
