"""How the verdicts of the data sheet agree with the true errors.

usage: verdicts.py [--sides 4,7,12] [--trips 300,1000,4000] [--signals 50,200,500,1500,5000,20000,50000]
       verdicts.py --check [--shared SHARED] [--datasets cabspotting,geolife,tdrive_partial] [--epsilons 0.1,1,10]
                   [--only TEXT]    # cases with this text in their names

The first form is how the spreads of the priors and the errors without noise were chosen: simulated cities that differ
from those of `--check`. `--check` uses the city of `wayveil demo` at several ε, at user level and with few trips, and
the trial data. Only the factor on the errors of lengths and speeds was chosen with a look at these. Each line has the
expected error, the true error, and both words.
At the end: how often the words agree, by kind of result. The noise is seeded: nothing made here is private.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from plan_errors import FEWEST_MADE, SCOPES, city_of, errors_between, with_users

import wayveil
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.release.kinds import KINDS
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.synthesis.arguments import default_count
from wayveil.synthesis.uncertainty.uncertainty import uncertainty
from wayveil.synthesis.uncertainty.verdict import verdicts
from wayveil.workflow.synthesize import synthesize

WORDS = ("good", "rough", "noise")
Case = tuple[str, Trajectories, Scope, dict[str, object]]
LARGEST_EPSILON = 50
"""Of a simulated case: more would not be noise."""


def simulated(sides: str, trips: str, signals: str) -> Iterator[Case]:
    for side in map(float, sides.split(",")):
        city = city_of(side, seed=21 + int(side))
        for count in map(int, trips.split(",")):
            data = simulate_trajectories(city, count, seed=1)
            for signal in map(int, signals.split(",")):
                if signal > LARGEST_EPSILON * count:
                    continue
                yield f"{side:g} km, {count:,} trips, N·ε = {signal:,}", data, city.scope, _trip_level(signal / count)


def checks(shared: Path | None, datasets: str, epsilons: str) -> Iterator[Case]:
    city = simulate_city(0)
    data = simulate_trajectories(city, 10_000, seed=0)
    for epsilon in ("0.01", "0.1", "1", "10"):
        yield f"demo city, 10,000 trips, ε = {epsilon}", data, city.scope, _trip_level(epsilon)
    for epsilon, delta in (("1", "1e-6"), ("1", "0"), ("10", "1e-6")):
        how = {"epsilon": epsilon, "delta": delta, "unit": "user", "max_per_user": 20}
        yield f"demo city, users, ε = {epsilon}, δ = {delta}", data, city.scope, how
    few = simulate_trajectories(city, 300, seed=5)
    for epsilon in ("1", "10"):
        yield f"demo city, 300 trips, ε = {epsilon}", few, city.scope, _trip_level(epsilon)
    if shared is None:
        return
    for name in datasets.split(","):
        rides, scope = with_users(shared / "data", name), wayveil.read_scope(SCOPES[name])
        for epsilon in epsilons.split(","):
            yield f"{name}, ε = {epsilon}", rides, scope, _trip_level(epsilon)
        how = {"epsilon": "1", "delta": "1e-6", "unit": "user", "max_per_user": 20}
        yield f"{name}, users, ε = 1, δ = 1e-6", rides, scope, how


def _trip_level(epsilon: object) -> dict[str, object]:
    return {"epsilon": epsilon, "unit": "trajectory"}


def noise_seed(case: Case, seed: int) -> int:
    """Another noise for each simulated case."""
    _, data, _, promise = case
    return seed if isinstance(promise["epsilon"], str) else seed - 1 + round(promise["epsilon"] * len(data)) + len(data)


def compared(case: Case, seed: int) -> dict[str, tuple[float, float]]:
    """The expected and the true error of each kind of result."""
    _, data, scope, promise = case
    noise = SeededNoise(noise_seed(case, seed))
    release = measure(data, scope, noise=noise, accept_low_signal=True, **promise)  # type: ignore[arg-type]
    made = synthesize(release, n=max(len(data), FEWEST_MADE), seed=seed).trajectories
    true = {"number": abs(default_count(release) / len(data) - 1), **errors_between(data, made, scope)}
    return {verdict.kind: (verdict.error, true[verdict.kind]) for verdict in verdicts(uncertainty(release))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", default="4,7,12")
    parser.add_argument("--trips", default="300,1000,4000")
    parser.add_argument("--signals", default="50,200,500,1500,5000,20000,50000")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--datasets", default=",".join(SCOPES))
    parser.add_argument("--epsilons", default="0.1,1,10")
    parser.add_argument("--noises", type=int, default=1)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.check:
        cases = checks(chosen.shared, chosen.datasets, chosen.epsilons)
    else:
        cases = simulated(chosen.sides, chosen.trips, chosen.signals)
    tables = {kind: np.zeros((3, 3), int) for kind in KINDS}
    print("| case | " + " | ".join(KINDS) + " |\n|" + "---|" * (1 + len(KINDS)))
    for case in cases:
        if chosen.only not in case[0]:
            continue
        for seed in range(1, chosen.noises + 1):
            cells = []
            for kind, (expected, true) in compared(case, seed).items():
                said, is_so = (KINDS[kind].word(error) for error in (expected, true))
                tables[kind][WORDS.index(said), WORDS.index(is_so)] += 1
                mark = "" if said == is_so else f" ({is_so})"
                cells.append(f"{100 * expected:.0f}, {100 * true:.0f} % {said}{mark}")
            print(f"| {case[0]} | " + " | ".join(cells) + " |", flush=True)
    print("\nkind: same word, a better word than the truth, a worse word, of all")
    for kind, table in tables.items():
        same, better, worse = np.trace(table), np.triu(table, 1).sum(), np.tril(table, -1).sum()
        print(f"{kind}: {same}, {better}, {worse}, of {table.sum()}")


if __name__ == "__main__":
    main()
