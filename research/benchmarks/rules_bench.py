"""Rules: violations before and after, what obeying costs in utility, and time against reject-and-regenerate.

usage: rules_bench.py [DATA] [--n 5000] [--epsilon 1.0] [--seed 0] [--most-rounds 30] [--no-map] [--areas]

Without DATA: the embedded city with its own rules file and map. With DATA, a folder that holds cabspotting.parquet and
roads/sf_roads.parquet: San Francisco with three closed areas, the map's one-way streets and 105 km/h. The truth is cut
to the trajectories that obey, because rules are for cities whose traffic obeys them.

`--areas` replaces the rules by three public squares that are closed at all hours, and adds the method that rejection
was published with: `grid` is its first-order walk on a grid, `grid reject` the same with walks drawn again, at most
50,000 times, until they avoid the squares and the unreachable cells.

Columns: `free` is synthesised without rules; `rules` with them; `refine` is `free` after refinement alone; `reject` is
`free` with its violators drawn again, from fresh seeds, until none is left. Metrics are divergences from the truth
(smaller is better), in brackets their ratio to those of `free`.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from wayveil.baselines.methods.rejection import Regenerated, rejection_with
from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.evaluation import HEADLINE, METRICS, project
from wayveil.io.scope_files import read_scope
from wayveil.measurement import measure
from wayveil.rules import (
    Rule,
    closed,
    count,
    hours,
    map_one_ways,
    motion_of,
    read_rules,
    speed_limit,
    violating_trajectories,
    with_scope_bounds,
)
from wayveil.synthesis.model import make_model
from wayveil.synthesis.obey.refine import refine
from wayveil.synthesis.place.track_columns import Tracks
from wayveil.synthesis.recipe import draw_shards
from wayveil.synthesis.request import Request
from wayveil.workflow.synthesize import synthesize

OF_TIME = ("start_hour", "duration", "speed", "relation_time")

# Public places: the financial district on workdays, Golden Gate Park at night, the ball park on weekend afternoons.
SAN_FRANCISCO = (
    (
        "Financial district",
        (-122.4035, 37.7905, -122.3975, 37.7955),
        hours("07:00", "10:00", ["mon", "tue", "wed", "thu", "fri"]),
    ),
    ("Golden Gate Park", (-122.5110, 37.7660, -122.4580, 37.7715), hours("22:00", "06:00")),
    ("Ball park", (-122.3935, 37.7755, -122.3865, 37.7805), hours("12:00", "17:00", ["sat", "sun"])),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--n", type=int, default=5_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-rounds", type=int, default=30)
    parser.add_argument("--areas", action="store_true", help="three closed squares; adds rejection on a grid")
    parser.add_argument("--no-map", action="store_true", help="synthesise without the map; the rules still know it")
    options = parser.parse_args()
    if options.data is None:
        name, (real, scope, roads, rules) = "embedded city", demo_city(options.n, options.seed)
    else:
        name, (real, scope, roads, rules) = "San Francisco", san_francisco(options.data, options.n, options.seed)
    if options.areas:
        rules = with_scope_bounds(closed_squares(scope), scope)
        real = select(real, ~violating_trajectories(rules, motion_of(real, scope)))
    print(f"{name}: {len(real)} trajectories that obey {len(rules)} rules, epsilon {options.epsilon:g}")
    compare(
        real, scope, None if options.no_map else roads, rules, options.epsilon, options.seed, options.most_rounds,
        grid=options.areas,
    )  # fmt: skip


def closed_squares(scope: Scope) -> list[Rule]:
    """Three squares of a tenth of the scope's width each, at fixed places around its centre, closed at all hours."""
    squares = []
    for number, (x, y) in enumerate(((0.42, 0.55), (0.55, 0.38), (0.6, 0.6))):
        side = 0.1 * min(scope.width_m, scope.height_m)
        lon, lat = scope.to_degrees(*(np.array([at, at + side]) for at in (x * scope.width_m, y * scope.height_m)))
        squares.append(closed(_box(lon[0], lat[0], lon[1], lat[1]), scope, name=f"Square {number + 1}"))
    return squares


def demo_city(n: int, seed: int) -> tuple[Trajectories, Scope, RoadMap, tuple[Rule, ...]]:
    """The embedded city; its people obey its rules."""
    from wayveil.simulate import simulate_city, simulate_trajectories

    city = simulate_city(0)
    rules = with_scope_bounds(read_rules(city.rules_geojson, city.scope, city.roadmap), city.scope)
    return simulate_trajectories(city, n=n, seed=seed), city.scope, city.roadmap, rules


def san_francisco(folder: Path, n: int, seed: int) -> tuple[Trajectories, Scope, RoadMap, tuple[Rule, ...]]:
    """Taxi rides of San Francisco that obey the rules of this file."""
    from wayveil.io.files import read
    from wayveil.io.roads import read_roads

    scope = read_scope("san-francisco")
    roads = read_roads(folder / "roads" / "sf_roads.parquet")
    rules = [closed(_box(*box), scope, when, name) for name, box, when in SAN_FRANCISCO]
    rules += [map_one_ways(roads, scope), speed_limit(105)]
    real = read(folder / "cabspotting.parquet")
    real = select(real, np.random.default_rng(seed).permutation(len(real)))
    everything = with_scope_bounds(rules, scope)
    obeys = ~violating_trajectories(everything, motion_of(real, scope))
    print(f"{obeys.mean():.1%} of the rides obey")
    return select(real, np.flatnonzero(obeys)[:n]), scope, roads, everything


def _box(west: float, south: float, east: float, north: float) -> dict[str, object]:
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def compare(
    real: Trajectories,
    scope: Scope,
    roads: RoadMap | None,
    rules: Sequence[Rule],
    epsilon: float,
    seed: int,
    most_rounds: int,
    grid: bool = False,
) -> None:
    """Print the tables."""
    n = len(real)
    release = measure(real, scope, epsilon=epsilon, unit="trajectory")
    begin = time.process_time()
    free = synthesize(release, roads=roads, n=n, seed=seed).trajectories
    free_s = time.process_time() - begin

    begin = time.process_time()
    ruled = synthesize(release, roads=roads, rules=rules, n=n, seed=seed)
    ruled_s = time.process_time() - begin

    begin = time.process_time()
    x, y = scope.to_metres(free.lon, free.lat)
    fine = refine(Tracks(free.offsets, x, y, free.t_utc), rules, scope, random=np.random.default_rng(seed))
    refine_s = time.process_time() - begin
    lon, lat = scope.to_degrees(fine.x_m, fine.y_m)
    refined = Trajectories(free.offsets, np.round(lon, 7), np.round(lat, 7), np.rint(fine.t_utc))

    begin = time.process_time()
    kept, rounds, drawn, left = reject(free, release, roads, rules, scope, seed, most_rounds)
    reject_s = time.process_time() - begin

    outputs = {"free": free, "rules": ruled.trajectories, "refine": refined, "reject": kept}
    if grid:
        outputs |= on_a_grid(real, scope, rules, epsilon, seed)
    counts = {label: count(rules, motion_of(made, scope)) for label, made in outputs.items()}
    print(f"\n{'violating points (trajectories)':44}" + "".join(f"{label:>16}" for label in outputs))
    for rule in counts["free"]:
        cells = (f"{each[rule]['points']} ({each[rule]['trajectories']})" for each in counts.values())
        print(f"{rule[:43]:44}" + "".join(f"{cell:>16}" for cell in cells))

    print(f"\n{'metric':44}" + "".join(f"{label:>16}" for label in outputs))
    paths, shown = project(real, scope), (*HEADLINE, *OF_TIME)
    scores = {
        label: {name: METRICS[name](paths, synthetic) for name in shown}
        for label, synthetic in ((label, project(made, scope)) for label, made in outputs.items())
    }
    for metric in shown:
        base = scores["free"][metric]
        cells = (f"{each[metric]:.4f} ({each[metric] / base:.2f})" for each in scores.values())
        print(f"{metric:44}" + "".join(f"{cell:>16}" for cell in cells))

    share = 1 - violating_trajectories(rules, motion_of(free, scope)).mean()
    print(f"\nCPU seconds: free {free_s:.1f}, rules {ruled_s:.1f}, refine alone {refine_s:.1f}, reject {reject_s:.1f}")
    print(f"refine: {fine.moved} trajectories moved, {fine.retimed} retimed, {len(fine.unresolved)} unresolved")
    print(f"reject: {rounds} rounds, {drawn} trajectories drawn again, {left} still violate")
    print(f"drawing whole datasets until one obeys: 1 in 10^{-n * np.log10(max(share, 1e-12)):.0f} would")


def on_a_grid(
    real: Trajectories, scope: Scope, rules: Sequence[Rule], epsilon: float, seed: int
) -> dict[str, Trajectories]:
    """The grid method without rules and with rejection; prints what it took."""
    made = {}
    for label, obeyed in (("grid", ()), ("grid reject", rules)):
        tally: list[Regenerated] = []
        begin = time.process_time()
        made[label] = rejection_with(obeyed, tell=tally.append)(
            real, scope, epsilon, seed=seed, n=len(real)
        ).trajectories
        print(
            f"{label}: {tally[0].rounds} rounds, {tally[0].drawn} walks drawn, {tally[0].left} still refused, "
            f"{time.process_time() - begin:.1f} CPU s"
        )
    return made


def reject(
    made: Trajectories,
    release: object,
    roads: RoadMap | None,
    rules: Sequence[Rule],
    scope: Scope,
    seed: int,
    most_rounds: int,
) -> tuple[Trajectories, int, int, int]:
    """Draw violators again until none is left: trajectories, rounds, how many were drawn, how many still violate."""
    wanted = Request(release, roads=roads, seed=seed)
    model = make_model(wanted)  # the loop gets the model for nothing after the first time
    good, drawn, rounds = [], 0, 0
    for rounds in range(most_rounds + 1):
        broken = violating_trajectories(rules, motion_of(made, scope))
        good.append(select(made, ~broken))
        left = int(broken.sum())
        if left == 0 or rounds == most_rounds:
            good.append(select(made, broken))
            break
        drawn += left
        more = replace(wanted, n=left, seed=seed + 1000 + rounds)
        made = concatenate([shard.trajectories for shard in draw_shards(model, more)])
    return concatenate(good), rounds, drawn, left


if __name__ == "__main__":
    main()
