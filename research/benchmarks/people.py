"""Synthetic people against real ones, beside the same trips shuffled among people.

    python research/benchmarks/people.py city
    python research/benchmarks/people.py cabspotting --data FOLDER

`city` is the simulated city with 3,000 people who leave home and come back. Of each real person at most `c` trips are
compared, drawn at random, because no more are measured. The noise has a seed, so that the run can be repeated.
"""

import argparse
import datetime as dt
import json
import math
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet as pq

import wayveil
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, select
from wayveil.evaluation.people import evaluate_people
from wayveil.evaluation.score import headline
from wayveil.io.source import MemorySource
from wayveil.measurement import kept_trajectories
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.simulate.generate import Behaviour

PEOPLE = 3_000
SCOPES = {
    "cabspotting": Scope(
        name="San Francisco", south=37.60, west=-122.52, north=37.82, east=-122.35, timezone="America/Los_Angeles",
        first_day=dt.date(2008, 5, 17), last_day=dt.date(2008, 6, 10),
    ),
    "geolife": Scope(
        name="Beijing", south=39.75, west=116.15, north=40.10, east=116.60, timezone="Asia/Shanghai",
        first_day=dt.date(2007, 4, 1), last_day=dt.date(2012, 8, 31),
    ),
}  # fmt: skip


def simulated_people() -> tuple[Trajectories, Scope]:
    city = simulate_city(0)
    made = simulate_trajectories(city, 40_000, seed=1, behaviour=Behaviour(diaries=True))
    return select(made, np.isin(made.user, np.unique(made.user)[:PEOPLE])), city.scope


def real_people(name: str, data: Path) -> tuple[Trajectories, Scope]:
    points = pq.read_table(data / f"{name}.parquet").to_pandas()
    trips = pq.read_table(data / f"{name}_trips.parquet").to_pandas()
    points["user_id"] = points.traj_id.map(trips.set_index("traj_id").user_id)
    return wayveil.read(points), SCOPES[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=["city", *SCOPES])
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--most", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    real, scope = simulated_people() if given.name == "city" else real_people(given.name, given.data)
    promise = {"epsilon": 1, "delta": "1e-6", "unit": "user", "max_per_user": given.most}
    release = wayveil.measure(real, scope, noise=SeededNoise(given.seed), **promise)
    with mock.patch("wayveil.questions.catalogue.LEAST_PEOPLE", math.inf):
        trips_only = wayveil.measure(real, scope, noise=SeededNoise(given.seed), **promise)
    used = select(real, kept_trajectories(MemorySource(real), Unit.user(given.most)))
    number = len(np.unique(used.user))
    asked = "people/trips" in release
    started = time.process_time()
    alone = wayveil.synthesize(trips_only, n=len(used), seed=given.seed).trajectories
    cpu = time.process_time() - started
    started = time.process_time()
    if asked:
        people = wayveil.synthesize(release, n=len(used), seed=given.seed).trajectories
    else:  # public guesses
        people = wayveil.synthesize(release, people=number, seed=given.seed).trajectories
    cpu_people = time.process_time() - started
    who = np.random.default_rng(given.seed).integers(0, number, len(alone))
    shuffled = Trajectories(alone.offsets, alone.lon, alone.lat, alone.t_utc, who)
    made, chance = (evaluate_people(used, side, scope) for side in (people, shuffled))
    scores = [headline(used, side, scope) for side in (alone, people)]
    print(f"{given.name}: asked about people: {asked}; {made.people} real and {made.synthetic_people} synthetic people")
    print(f"{'measure':<30}{'people':>9}{'shuffled':>9}{'ratio':>7}{'floor':>9}")
    for one, other in zip(made.scores, chance.scores):
        ratio = one.value / max(other.value, 1e-12)
        print(f"{one.title:<30}{one.value:9.4f}{other.value:9.4f}{ratio:7.2f}{one.floor:9.4f}")
    print(f"classifier {made.classifier:.3f}, shuffled {chance.classifier:.3f}")
    print(f"Zipf exponent {made.zipf[1]:.2f}, shuffled {chance.zipf[1]:.2f}, real {made.zipf[0]:.2f}")
    print(f"overlaps {made.overlaps}, jumps {made.jumps}")
    for name in scores[0]:
        print(f"{name:<30}{scores[1][name]:9.4f}{scores[0][name]:9.4f}{scores[1][name] / scores[0][name] - 1:+8.1%}")
    print(f"CPU of synthesis: {cpu_people:.1f} s with people, {cpu:.1f} s without, {cpu_people / cpu - 1:+.0%}")
    if given.out is not None:
        given.out.write_text(json.dumps({"people": made.to_dict(), "shuffled": chance.to_dict(), "headline": scores}))


if __name__ == "__main__":
    main()
