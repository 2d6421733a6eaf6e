"""How often the true figure lies inside the 90 % interval of `wayveil.tables`, by table, epsilon and number of trips.

The cities are simulated, so the truth is known; each release has its own noise. The model errors in
`wayveil.traffic.uncertainty` were chosen on the embedded city, the spreads in `wayveil.synthesis.uncertainty` on cities
of these sizes with other streets. With --data another file is used. "Busy" are the rows above the median.

    python research/benchmarks/table_coverage.py
    python research/benchmarks/table_coverage.py --data rides.parquet --scope my-city.toml --roads roads.parquet
"""

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
import shapely

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

SIDES_KM = (4, 7, 12)
SIGNALS = ((1_000, "0.1"), (1_000, "1"), (5_000, "0.1"), (5_000, "1"), (5_000, "10"))
SEED = 41
"""Of the cities; their side in kilometres is added."""
KEYS = (
    "origin", "destination", "zone", "part_of_day", "road", "part", "direction", "km_from", "minutes_from", "hour_from",
)  # fmt: skip
VALUES = ("trips", "starts", "speed_kmh")


@dataclass(frozen=True)
class Coverage:
    """Of one table: share of rows with the truth inside, of all and of busy ones; of these the median sd / value."""

    table: str
    period: str
    inside: float
    busy: float
    relative: float
    rows: int


def own_zones(scope, per_side=4):
    """A grid that is shifted against the scope, so that it follows no region of a release."""
    lon = np.linspace(scope.west, scope.east, per_side + 1) + 0.03 * (scope.east - scope.west)
    lat = np.linspace(scope.south, scope.north, per_side + 1) + 0.02 * (scope.north - scope.south)
    boxes = [shapely.box(lon[i], lat[j], lon[i + 1], lat[j + 1]) for j in range(per_side) for i in range(per_side)]
    return Zones(tuple(f"zone {k + 1}" for k in range(len(boxes))), np.array(boxes, object))


def every_table(basis, zones, roads):
    """All tables by name."""
    found = [*flow_tables(basis, zones), *distribution_tables(basis), street_table(basis, roads)[0]]
    return {table.name: table for table in found}


def coverage(rides, scope, roads, epsilon, seed, noise=None):
    """Of every table that is made from one release."""
    release = wayveil.measure(rides, scope, epsilon=epsilon, unit="trajectory", accept_low_signal=True, noise=noise)
    made = wayveil.synthesize(release, roads=roads, seed=seed)
    return compared(rides, made.trajectories, release, roads)


def compared(rides, made, release, roads):
    """Tables of synthetic trips against those of the real ones."""
    zones, parts, known = own_zones(release.scope), parts_of(None), uncertainty(release)
    real, own = Trips.of(rides, release.scope), Trips.of(made, release.scope)
    truth = every_table(Basis(real, Scale(len(real), 0.0, len(real)), parts, known), zones, roads)
    stated = every_table(Basis(own, Scale.of(release, len(own)), parts, known), zones, roads)
    return [found for name, table in stated.items() for found in judge(name, table, truth[name])]


def judge(name, stated, truth):
    """Coverage of each column of figures, for the whole day and for parts of it."""
    keys = [column for column in stated.columns if column in KEYS]
    for value in VALUES:
        if value not in stated.columns:
            continue
        prefix = "" if value == "trips" else f"{value}_"
        true = dict(zip(zip(*(truth[key].tolist() for key in keys)), truth[value].tolist()))
        absent = np.nan if value == "speed_kmh" else 0.0
        exact = np.array([true.get(key, absent) for key in zip(*(stated[key].tolist() for key in keys))])
        inside = (exact >= stated[f"{prefix}low_90"]) & (exact <= stated[f"{prefix}high_90"])
        known = np.isfinite(exact) & np.isfinite(stated[value])
        day = stated["part_of_day"] == ALL_DAY if "part_of_day" in keys else np.ones(len(stated), bool)
        for period, chosen in (("day", day & known), ("part", ~day & known)):
            if chosen.any():
                shown = stated[value][chosen]
                busy = shown >= np.median(shown)
                relative = float(np.median((stated[f"{prefix}sd"][chosen] / np.maximum(shown, 1))[busy]))
                within = inside[chosen]
                yield Coverage(
                    f"{name}.{value}", period, within.mean(), within[busy].mean(), relative, int(chosen.sum())
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--scope")
    parser.add_argument("--roads")
    parser.add_argument("--sides", default=",".join(map(str, SIDES_KM)))
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    if given.data:
        scope, roads = wayveil.read_scope(given.scope), wayveil.read_roads(given.roads)
        cases = [(wayveil.read(given.data), scope, roads, epsilon) for epsilon in ("0.1", "1")]
    else:
        from plan_errors import city_of  # beside this script

        cities = [city_of(side, SEED + side) for side in map(int, given.sides.split(","))]
        cases = [
            (wayveil.simulate.simulate_trajectories(city, n, seed=n), city.scope, city.roadmap, epsilon)
            for city in cities
            for n, epsilon in SIGNALS
        ]
    warnings.simplefilter("ignore")
    print("scope                  trips  epsilon  table              of    inside  busy rows  sd/value  rows")
    for rides, scope, roads, epsilon in cases:
        found = [one for run in range(given.runs) for one in coverage(rides, scope, roads, epsilon, run)]
        for table, period in dict.fromkeys((one.table, one.period) for one in found):
            own = [one for one in found if (one.table, one.period) == (table, period)]
            inside, busy, relative = (np.mean([getattr(one, n) for one in own]) for n in ("inside", "busy", "relative"))
            print(
                f"{scope.name:20.20s} {len(rides):6d} {epsilon:>7}  {table:18s} {period:5s} {inside:6.1%}"
                f"    {busy:6.1%}    {relative:6.2f}  {own[0].rows:6d}", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
