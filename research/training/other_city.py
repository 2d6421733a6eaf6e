"""A probe, nothing of which is shipped: lessons partly made of real trips, to see what a truer teacher would be worth.

    REAL=cab.npz REAL_SHARE=.6 python3 other_city.py --out OUT --start WEIGHTS ...        (options of train.py)

Each .npz holds `offsets` and `xy` (metres) of trips of one city. What was learned there is judged on another city; a
network that has seen a city may not be judged on it, nor be used for anybody's data without saying so.
"""

import os
from pathlib import Path

import numpy as np
import samples
import train
from samples import View, _add_up, draw_epsilon, pack, release
from traffic import Points

_CELL_M = 100.0
_FEWEST = 50
_TAUGHT_TWICE = 2
_simulated = samples.random_samples


def real_view(offsets: np.ndarray, xy: np.ndarray, random: np.random.Generator, side: int) -> View:
    """Some of the trips, turned, stretched and perhaps mirrored, under a scope of any size around the city."""
    trips = len(offsets) - 1
    some = np.sort(random.choice(trips, int(trips * np.exp(random.uniform(np.log(0.15), 0))), replace=False))
    length = np.diff(offsets)[some]
    trip = np.repeat(np.arange(len(some)), length)
    at = xy[np.repeat(offsets[some] - np.r_[0, np.cumsum(length)[:-1]], length) + np.arange(length.sum())].astype(float)
    low, high = xy.min(axis=0), xy.max(axis=0)
    middle = at[random.integers(len(at))] if random.random() < 0.5 else (low + high) / 2
    scale, angle = random.uniform(0.75, 1.35), random.uniform(0, 2 * np.pi)
    turn = scale * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    if random.random() < 0.5:
        turn = turn @ np.diag([1, -1])
    whole = random.random() < 0.4
    extent = float((high - low).max()) * scale * (1.0 if whole else np.exp(random.uniform(np.log(0.3), 0)))
    size = np.clip(extent * np.exp(random.normal(0, 0.2, 2)), 64 * _CELL_M, (side - 1e-6) * _CELL_M)
    moved = (at - middle) @ turn + size / 2 + (0.0 if whole else random.normal(0, 0.1, 2) * size)
    columns, rows = np.ceil(size / _CELL_M - 1e-9).astype(int)
    occupancy, ends, seen = _add_up(Points(trip, moved / _CELL_M), rows, columns, size / _CELL_M)
    area = np.outer(
        np.clip(size[1] / _CELL_M - np.arange(rows), 0, 1), np.clip(size[0] / _CELL_M - np.arange(columns), 0, 1)
    )
    return View("real", occupancy, ends, area, [], seen)


def mixed_samples(seed: int, side: int, **options: bool):
    """Simulated samples, and among them `REAL_SHARE` of real ones without a map."""
    share = float(os.environ.get("REAL_SHARE", ".6"))
    cities = [np.load(Path(name)) for name in os.environ["REAL"].split(",")]
    cities = [(city["offsets"], city["xy"]) for city in cities]
    random, simulated = np.random.default_rng([seed, 77]), _simulated(seed, side, **options)
    while True:
        if random.random() > share:
            yield next(simulated)
            continue
        view = real_view(*cities[random.integers(len(cities))], random, side)
        if min(view.count, view.occupancy.sum()) < _FEWEST:
            continue
        for _ in range(_TAUGHT_TWICE):
            yield pack(release(view, draw_epsilon(view, random, 0.8), False, random, 0.1), side)


train.random_samples = mixed_samples  # also in the workers, which import this file again

if __name__ == "__main__":
    train.main()
