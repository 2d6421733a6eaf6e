"""Small data: how many trips come out, and how good they are beside the sound AdaTrace and PrivTrace.

usage: small_signals.py [--signals 50,100,200] [--n 1000] [--noises 3] [--methods wayveil,adatrace,privtrace]
                        [--counts 200]

The signal is m·ε, the number of trips times ε. Five simulated cities of different kinds and sizes; every method makes
as many trips as the data has. Each cell is the mean of the noises; a city where a peer is ahead is marked with '*'.
`--counts` also draws so many releases of each city and shows how far the default number of trips is from the true one.
The noise is seeded: nothing made here is private.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

import wayveil.baselines as baselines
from wayveil.core.trajectories import Trajectories
from wayveil.evaluation import HEADLINE, headline
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.simulate import City, simulate_city, simulate_trajectories
from wayveil.synthesis.arguments import default_count
from wayveil.workflow.synthesize import synthesize

CITIES: dict[str, Callable[[], City]] = {
    "town": lambda: simulate_city(11, size_km=(4, 4), pattern="grid", hot_spots=5),
    "district": lambda: simulate_city(12, size_km=(3, 8), pattern="organic", hot_spots=3, river=False),
    "city": lambda: simulate_city(13, size_km=(10, 10), pattern="mixed", hot_spots=9),
    "grid city": lambda: simulate_city(14, size_km=(14, 9), pattern="grid", hot_spots=15, motorway=False),
    "region": lambda: simulate_city(15, size_km=(24, 24), pattern="organic", block_m=250.0, hot_spots=25),
}


def wayveil_trips(data: Trajectories, city: City, epsilon: float, seed: int) -> Trajectories:
    release = measure(data, city.scope, epsilon=epsilon, unit="trajectory", noise=SeededNoise(seed))
    return synthesize(release, n=len(data), seed=seed).trajectories


def peer_trips(name: str) -> Callable[[Trajectories, City, float, int], Trajectories]:
    method = getattr(baselines, name)
    return lambda data, city, epsilon, seed: method(data, city.scope, epsilon, seed=seed, n=len(data)).trajectories


METHODS = {"wayveil": wayveil_trips, "adatrace": peer_trips("adatrace"), "privtrace": peer_trips("privtrace")}


def quality(city: City, data: Trajectories, epsilon: float, methods: list[str], noises: int) -> dict[str, np.ndarray]:
    """Mean headline metrics of each method."""
    found = {}
    for name in methods:
        started = time.process_time()
        made = (METHODS[name](data, city, epsilon, seed) for seed in range(1, noises + 1))
        rows = [[scores[metric] for metric in HEADLINE] for scores in (headline(data, one, city.scope) for one in made)]
        found[name] = np.mean(rows, axis=0)
        print(f"  {name}: {time.process_time() - started:.0f} s of CPU", file=sys.stderr, flush=True)
    return found


def show_quality(cities: dict[str, tuple[City, Trajectories]], chosen: argparse.Namespace) -> None:
    methods = chosen.methods.split(",")
    print(f"| m·ε | city | method | {' | '.join(HEADLINE)} |\n|---|---|---|{'---|' * len(HEADLINE)}")
    behind = cells = 0
    for signal in map(float, chosen.signals.split(",")):
        for kind, (city, data) in cities.items():
            found = quality(city, data, signal / len(data), methods, chosen.noises)
            peers = [found[name] for name in methods if name != "wayveil"]
            best = np.min(peers, axis=0) if peers else np.full(len(HEADLINE), np.inf)
            for name, values in found.items():
                marks = [" *" if name == "wayveil" and value > peer else "" for value, peer in zip(values, best)]
                told = " | ".join(f"{value:.4f}{mark}" for value, mark in zip(values, marks))
                print(f"| {signal:g} | {kind} | {name} | {told} |", flush=True)
            if peers and "wayveil" in found:
                behind, cells = behind + int((found["wayveil"] > best).sum()), cells + len(HEADLINE)
    print(f"\nAhead of both peers in {cells - behind} of {cells} cells.")


def show_counts(cities: dict[str, tuple[City, Trajectories]], chosen: argparse.Namespace) -> None:
    print("\n| m·ε | city | least | 5 % | median | 95 % | most | outside half to twice |\n|" + "---|" * 8)
    for signal in map(float, chosen.signals.split(",")):
        for kind, (city, data) in cities.items():
            ratios = np.array([
                default_count(
                    measure(data, city.scope, epsilon=signal / len(data), unit="trajectory", noise=SeededNoise(seed))
                )
                for seed in range(chosen.counts)
            ]) / len(data)  # fmt: skip
            told = " | ".join(f"{value:.2f}" for value in np.quantile(ratios, [0, 0.05, 0.5, 0.95, 1]))
            print(f"| {signal:g} | {kind} | {told} | {int(((ratios < 0.5) | (ratios > 2)).sum())} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--signals", default="50,100,200")
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--noises", type=int, default=3)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--counts", type=int, default=0)
    parser.add_argument("--cities", default=",".join(CITIES))
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    cities = {}
    for kind in chosen.cities.split(","):
        city = CITIES[kind]()
        cities[kind] = city, simulate_trajectories(city, chosen.n, seed=city.seed)
    if chosen.noises:
        show_quality(cities, chosen)
    if chosen.counts:
        show_counts(cities, chosen)


if __name__ == "__main__":
    main()
