"""Cities far from anything the network has seen: it must not come out worse than the Bayesian estimate.

    python research/training/unfamiliar.py [--noises 2]

Some are rare members of the family (rural, island, campus, 1,000 trajectories), some were never in it: one straight
road, a spiral, everything in one place, everywhere alike, the map of another city.
"""

import argparse
from dataclasses import replace

import numpy as np
from product import Observed, features, refine
from samples import Release, View, build_city, look, release


def jsd(p: np.ndarray, q: np.ndarray) -> float:
    """Jensen–Shannon divergence in nats."""
    p, q = p / p.sum(), q / q.sum()
    middle = (p + q) / 2
    return float(0.5 * sum(np.sum(a[a > 0] * np.log(a[a > 0] / middle[a > 0])) for a in (p, q)))


def refined(made: Release) -> list:
    """What the product makes of the release: occupancy, then end points."""
    view = made.view
    occupancy = refine(
        Observed(made.occupancy_levels, made.total, view.area, made.roads), made.occupancy, kind="occupancy",
        other_field=features.inputs_for_occupancy(made.end_levels, made.end_points, view.area),
    )  # fmt: skip
    ends = refine(
        Observed(made.end_levels, made.total, view.area, made.roads), made.end_points, kind="end_points",
        other_field=features.inputs_for_end_points(occupancy.field, view.area),
    )  # fmt: skip
    return [occupancy, ends]


def drawn(xy: np.ndarray, shape: tuple[int, int], each: int) -> View:
    """A view of given points (in cells), `each` to a trajectory."""
    rows, columns = shape
    cell = np.clip(xy[:, 1].astype(int), 0, rows - 1) * columns + np.clip(xy[:, 0].astype(int), 0, columns - 1)
    count = len(xy) // each
    ends = np.r_[cell[::each], cell[each - 1 :: each]]
    fields = [np.bincount(cell, minlength=rows * columns) / each, np.bincount(ends, minlength=rows * columns) / 2]
    nothing = [np.zeros(shape)] * 6 + [np.ones(shape)]
    return View("drawn", fields[0].reshape(shape), fields[1].reshape(shape), np.ones(shape), nothing, float(count))


def views(random: np.random.Generator):
    """(name, view, with a map) of each case."""
    yield "rural region", look(build_city("rural", random), random, 8000.0), False
    yield "island", look(build_city("island", random), random, 8000.0), False
    yield "2 km campus", look(build_city("campus", random), random, 8000.0, side=40), False
    city = build_city("mixed", random)
    few = look(city, random, 1000.0)
    yield "1,000 trajectories", few, False
    yield "1,000 trajectories, map", few, True
    view = look(city, random, 20_000.0)
    other = look(build_city("grid", random), random, 1000.0, side=64).roads
    stretched = [np.resize(field, view.area.shape) for field in other]
    yield "map of another city", replace(view, roads=stretched), True
    along = random.uniform(0, 200, 60_000)
    noise = random.normal(0, 0.1, (2, len(along)))
    yield (
        "one straight road",
        drawn(np.stack([along + noise[0], 60 + 0.3 * along + noise[1]], 1), (200, 200), 10),
        False,
    )
    angle = random.uniform(2, 40, 60_000)
    spiral = 100 + (2.2 * angle) * np.stack([np.cos(angle), np.sin(angle)])
    yield "spiral", drawn(spiral.T + random.normal(0, 0.1, (len(angle), 2)), (200, 200), 10), False
    yield "all in one place", drawn(random.normal(90, 0.8, (60_000, 2)), (200, 200), 10), False
    yield "everywhere alike", drawn(random.uniform(0, 200, (60_000, 2)), (200, 200), 10), False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noises", type=int, default=2)
    chosen = parser.parse_args()
    print(f"{'':26s} eps   occupancy: bayes learned share   end points: bayes learned share")
    for name, view, mapped in views(np.random.default_rng(77)):
        for epsilon in (0.1, 0.5, 1.0):
            scores = []
            for seed in range(chosen.noises):
                made = release(view, epsilon, mapped, np.random.default_rng([seed, 78]))
                occupancy, ends = refined(made)
                scores.append([
                    jsd(view.occupancy, made.occupancy), jsd(view.occupancy, occupancy.field), occupancy.share,
                    jsd(view.end_points, made.end_points), jsd(view.end_points, ends.field), ends.share,
                ])  # fmt: skip
            s = np.mean(scores, axis=0)
            print(
                f"{name:26s} {epsilon:3.1f} {s[0]:17.4f} {s[1]:7.4f} {s[2]:5.2f} {s[3]:18.4f} {s[4]:7.4f} {s[5]:5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
