"""Synthetic people against real ones, beside the same trips shuffled among people.

    python research/benchmarks/people.py city
    python research/benchmarks/people.py city --city 7 --size 9 --people 1500
    python research/benchmarks/people.py cabspotting --data FOLDER

`city` is the simulated city with people who leave home and come back. The questions about people concern all their
trips, so all are compared. Where too few people are asked about, only the numbers of used trips are known; then at
most `c` trips of each person are compared, drawn at random. The noise has a seed, so that the run can be repeated.
`floor` is the divergence of two random halves of the real people. Single trips are compared with those of the same
release before they are assigned to people, and with those of a release that asks nothing about people.
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
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Serial
from wayveil.evaluation.people import evaluate_people
from wayveil.evaluation.score import headline
from wayveil.io.source import MemorySource
from wayveil.measurement.exact import draw_kept
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


def simulated_people(number: int = 0, size_km: float | None = None, people: int = PEOPLE) -> tuple[Trajectories, Scope]:
    city = simulate_city(number) if size_km is None else simulate_city(number, size_km=(size_km, size_km))
    made = simulate_trajectories(city, 14 * people, seed=1 + number, behaviour=Behaviour(diaries=True))
    return select(made, np.isin(made.user, np.unique(made.user)[:people])), city.scope


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
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    parser.add_argument("--city", type=int, default=0, help="number of the simulated city")
    parser.add_argument("--size", type=float, help="its side in km")
    parser.add_argument("--people", type=int, default=PEOPLE, help="its people")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    real, scope = (
        simulated_people(given.city, given.size, given.people)
        if given.name == "city"
        else real_people(given.name, given.data)
    )
    promise = {"epsilon": 1, "delta": "1e-6", "unit": "user", "max_per_user": given.most}
    release = wayveil.measure(real, scope, noise=SeededNoise(given.seed), **promise)
    with mock.patch("wayveil.questions.shares.LEAST_PEOPLE", math.inf):
        trips_only = wayveil.measure(real, scope, noise=SeededNoise(given.seed), **promise)
    asked = "people/trips" in release
    used = real if asked else select(real, draw_kept(Passes(MemorySource(real), Serial()), Unit.user(given.most)))
    number = len(np.unique(used.user))
    alone = wayveil.synthesize(trips_only, n=len(used), seed=given.seed).trajectories
    with mock.patch("wayveil.synthesis.recipe.with_people", lambda made, *_: made):
        started = time.process_time()
        before = wayveil.synthesize(release, n=len(used), seed=given.seed).trajectories
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
    scores = [headline(used, side, scope) for side in (people, before, alone)]
    print(f"{given.name}: asked about people: {asked}; {made.people} real and {made.synthetic_people} synthetic people")
    print(f"{'measure':<30}{'people':>9}{'shuffled':>9}{'ratio':>7}{'floor':>9}")
    for one, other in zip(made.scores, chance.scores):
        ratio = one.value / max(other.value, 1e-12)
        print(f"{one.title:<30}{one.value:9.4f}{other.value:9.4f}{ratio:7.2f}{one.floor:9.4f}")
    print(f"classifier {made.classifier:.3f}, shuffled {chance.classifier:.3f}")
    print(f"Zipf exponent {made.zipf[1]:.2f}, shuffled {chance.zipf[1]:.2f}, real {made.zipf[0]:.2f}")
    print(f"overlaps {made.overlaps}, jumps {made.jumps}")
    print(f"{'single trips':<30}{'people':>9}{'before':>9}{'':>8}{'alone':>9}")
    for name in scores[0]:
        with_people, without, other = (score[name] for score in scores)
        print(
            f"{name:<30}{with_people:9.4f}{without:9.4f}{with_people / without - 1:+8.1%}"
            f"{other:9.4f}{with_people / other - 1:+8.1%}"
        )
    print(f"CPU of synthesis: {cpu_people:.1f} s with people, {cpu:.1f} s without, {cpu_people / cpu - 1:+.0%}")
    if given.out is not None:
        given.out.write_text(json.dumps({"people": made.to_dict(), "shuffled": chance.to_dict(), "headline": scores}))


if __name__ == "__main__":
    main()
