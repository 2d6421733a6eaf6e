"""The table of expected errors that `wayveil plan` reads, from simulated cities.

usage: plan_errors.py [--sides 4,12] [--trips 1000,20000] [--signals 50,500,5000,50000]
                      [--noises 8] [-o TABLE.json]
       plan_errors.py --compare SHARED [--datasets a,b] [--epsilons 0.1,1] [--per-user C]
           # for the trial data: what `wayveil plan` says, what the data sheet says, and what comes out

Each cell is the mean over the noises of the error of a release and the data made from it, with as many trips as the
real data or 4,000, so that their own randomness matters little. Along the signal N·ε and the number of trips an error
may not grow, so that chance does not make it grow. The noise is seeded.
"""

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from pyarrow.parquet import read_table

import wayveil
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.evaluation.paths import Paths, as_measured, project
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.release import Release
from wayveil.release.kinds import KINDS
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.synthesis.arguments import default_count
from wayveil.synthesis.uncertainty.uncertainty import uncertainty
from wayveil.synthesis.uncertainty.verdict import verdicts
from wayveil.workflow.plan import TABLE
from wayveil.workflow.synthesize import synthesize

SIGNALS = (50, 500, 5_000, 50_000)
SCOPES = {"cabspotting": "san-francisco", "geolife": "beijing", "tdrive_partial": "beijing"}


FEWEST_MADE = 4_000
ZONES = 4
"""Zones along each side of the scope."""


def errors_between(data: Trajectories, made: Trajectories, scope: Scope) -> dict[str, float]:
    """Shares in a wrong pair of zones, cell of 100 m and hour, and the mean relative error of the quartiles."""
    real, synthetic = as_measured(project(data, scope), scope), project(made, scope)
    return {
        "zones": apart(*(pairs_of_zones(paths) for paths in (real, synthetic))),
        "streets": apart(*(cells_of(paths) for paths in (real, synthetic))),
        "hours": apart(*((paths.start_clock_s // 3600).astype(int) for paths in (real, synthetic))),
        "lengths": quartiles_apart(real.length_m, synthetic.length_m),
        "speeds": quartiles_apart(*(speeds_of(paths) for paths in (real, synthetic))),
    }


def quartiles_apart(real: np.ndarray, synthetic: np.ndarray) -> float:
    """The mean relative error of the quartiles."""
    quartiles = [np.quantile(values, (0.25, 0.5, 0.75)) for values in (real, synthetic)]
    return float(np.mean(np.abs(quartiles[1] / quartiles[0] - 1)))


def speeds_of(paths: Paths) -> np.ndarray:
    """The mean speeds of the trips that last."""
    seconds = paths.t_utc[paths.last] - paths.t_utc[paths.first]
    return paths.length_m[seconds > 0] / seconds[seconds > 0]


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The total variation distance of two samples of whole numbers."""
    size = int(max(one.max(), other.max())) + 1
    shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (one, other)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def pairs_of_zones(paths: Paths) -> np.ndarray:
    column, row = (
        np.clip(value / extent * ZONES, 0, ZONES - 1).astype(int)
        for value, extent in ((paths.x_m, paths.width_m), (paths.y_m, paths.height_m))
    )
    zone = row * ZONES + column
    return zone[paths.first] * ZONES**2 + zone[paths.last]


def cells_of(paths: Paths, cell_m: float = 100.0) -> np.ndarray:
    x, y, _ = paths.every_50_m
    columns = int(paths.width_m / cell_m) + 1
    column = np.clip(x / cell_m, 0, columns - 1).astype(int)
    return np.clip(y / cell_m, 0, paths.height_m / cell_m).astype(int) * columns + column


def released(data: Trajectories, scope: Scope, seed: int, **promise: object) -> Release:
    return measure(data, scope, noise=SeededNoise(seed), accept_low_signal=True, **promise)  # type: ignore[arg-type]


def errors_of(data: Trajectories, scope: Scope, seed: int, release: Release) -> dict[str, float]:
    """The error of each kind of result in one release and the data made from it."""
    made = synthesize(release, n=max(len(data), FEWEST_MADE), seed=seed).trajectories
    return {"number": abs(default_count(release) / len(data) - 1), **errors_between(data, made, scope)}


def city_of(side_km: float, seed: int = 21):
    """A city of this size; its blocks are larger where it is larger, so that it has a similar number of streets."""
    block_m = float(np.clip(12.5 * side_km, 100, 400))
    return simulate_city(seed, size_km=(side_km, side_km), block_m=block_m, hot_spots=5 + int(side_km))


def tabulate(chosen: argparse.Namespace) -> dict[str, object]:
    given = (chosen.sides, chosen.trips, chosen.signals)
    sides, trips, signals = ([float(value) for value in text.split(",")] for text in given)
    kinds = [name for name in KINDS if name != "number"]  # its error follows from the noise
    errors = np.zeros((len(kinds), len(sides), len(trips), len(signals)))
    for s, side in enumerate(sides):
        city = city_of(side)
        for t, count in enumerate(map(int, trips)):
            data = simulate_trajectories(city, count, seed=1)
            for k, signal in enumerate(signals):
                started = time.process_time()
                rows = [
                    errors_of(
                        data,
                        city.scope,
                        seed,
                        released(data, city.scope, seed, epsilon=signal / count, unit="trajectory"),
                    )
                    for seed in range(1, chosen.noises + 1)
                ]
                errors[:, s, t, k] = [np.mean([row[kind] for row in rows]) for kind in kinds]
                told = " ".join(f"{kind} {error:.3f}" for kind, error in zip(kinds, errors[:, s, t, k]))
                cpu_s = time.process_time() - started
                print(f"{side:g} km, {count:,} trips, {signal:g}: {told} ({cpu_s:.0f} s)", flush=True)
    errors = np.minimum.accumulate(np.minimum.accumulate(errors, axis=-1), axis=-2)
    return {
        "side_km": sides, "trips": trips, "signal": signals,
        "errors": {kind: errors[i].round(4).tolist() for i, kind in enumerate(kinds)},
    }  # fmt: skip


def compare(shared: Path, names: list[str], epsilons: list[str], noises: int, per_user: int | None) -> None:
    """With `per_user`, at user level with δ = 1e-6; users of the trial data are those of its table of trips."""
    titles = " | ".join(f"{kind}: plan, sheet, then" for kind in KINDS)
    print(f"| data | trips | ε | {titles} |\n|" + "---|" * (3 + len(KINDS)))
    for name in names:
        data, scope = with_users(shared / "data", name), wayveil.read_scope(SCOPES[name])
        promise = {"unit": Unit.user(per_user), "delta": "1e-6"} if per_user else {"unit": "trajectory"}
        users = {"users": len(np.unique(data.user))} if per_user else {}
        for epsilon in epsilons:
            expected = wayveil.plan(trips=len(data), epsilon=epsilon, scope=scope, **promise, **users)
            releases = {seed: released(data, scope, seed, epsilon=epsilon, **promise) for seed in range(1, noises + 1)}
            rows = [errors_of(data, scope, seed, release) for seed, release in releases.items()]
            sheets = [{one.kind: one.error for one in verdicts(uncertainty(release))} for release in releases.values()]
            told = " | ".join(
                ", ".join(f"{100 * error:.0f} %" for error in (
                    result.error, np.mean([sheet[result.kind] for sheet in sheets]),
                    np.mean([row[result.kind] for row in rows]),
                ))
                for result in expected.results
            )  # fmt: skip
            print(f"| {name} | {len(data):,} | {epsilon} | {told} |", flush=True)


def with_users(folder: Path, name: str) -> Trajectories:
    """The trial data with the users of its table of trips; both are sorted by trajectory."""
    trips = read_table(folder / f"{name}_trips.parquet").sort_by("traj_id")
    _, codes = np.unique(trips["user_id"].to_numpy(zero_copy_only=False), return_inverse=True)
    return replace(wayveil.read(folder / f"{name}.parquet"), user=codes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", default="4,12")
    parser.add_argument("--trips", default="1000,20000")
    parser.add_argument("--signals", default=",".join(map(str, SIGNALS)))
    parser.add_argument("--noises", type=int, default=8)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--datasets", default=",".join(SCOPES))
    parser.add_argument("--epsilons", default="0.1,1")
    parser.add_argument("--per-user", type=int)
    parser.add_argument("-o", "--output", type=Path, default=TABLE)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.compare:
        compare(chosen.compare, chosen.datasets.split(","), chosen.epsilons.split(","), chosen.noises, chosen.per_user)
        return
    chosen.output.write_text(json.dumps(tabulate(chosen), indent=1) + "\n", encoding="utf-8")
    print(f"table: {chosen.output}")


if __name__ == "__main__":
    main()
