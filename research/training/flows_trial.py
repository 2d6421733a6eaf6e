"""Trip tables between regions on simulated cities: whether another prior than the present gravity pays.

    python research/training/flows_trial.py [--cities 30]

Priors: `none` (start × end, no distance), `present` (the product's), `smooth` (its distance factor fitted by
a + b·log d + c·d), `learned` (the present one times exp(x·β), β fitted on other cities by Poisson regression),
`short trips` (displacements that its pairs cannot reach stay inside their region),
`exact decay` (the present one told the true shares of displacement: what a perfect decay would give).
Numbers are JSD in nats between the estimated and the true table; `prior` before and `posterior` after the noisy tables
have spoken. Tested on new cities of the kinds it learned from, of other kinds, and on days cut into hours.
"""

import argparse
from types import SimpleNamespace

import numpy as np
from product import pool
from samples import END_POINT_POWER, END_POINT_SHARE, OCCUPANCY_SHARE, _drive, build_city, noisy_levels
from streets import KINDS
from unfamiliar import jsd

from wayveil.core.density import estimate_field
from wayveil.core.grid import Grid
from wayveil.core.posterior import Noisy, posterior_mean
from wayveil.core.pyramid import spread
from wayveil.core.regions import cut_regions, label_regions
from wayveil.questions.catalogue import SHARES
from wayveil.questions.displacement import Displacement
from wayveil.questions.flow import region_depth
from wayveil.questions.start_minus_end import StartMinusEnd, difference_side
from wayveil.synthesis.estimate.estimates import Distribution
from wayveil.synthesis.estimate.estimators.flows import gravity as product_gravity
from wayveil.synthesis.estimate.fields import split_ends
from wayveil.synthesis.estimate.histogram import estimate_histogram

EPSILONS = (0.1, 0.5, 1.0)
SIDE = 160
MERGED = 4


def trajectories(
    kind: str, random: np.random.Generator, hours: bool
) -> tuple[Grid, np.ndarray, np.ndarray, np.ndarray]:
    """A scope, the occupancy, and the first and last cell of every trajectory."""
    city = build_city(kind, random)
    cell_m = 50.0 if kind == "campus" else 100.0
    wanted = float(np.exp(random.uniform(np.log(2000), np.log(40_000))))
    points, _ = _drive(city, wanted, hours, random)
    xy = points.xy / cell_m + SIDE / 2
    inside = ((xy >= 0) & (xy < SIDE)).all(axis=1)
    trip, cell = points.trip[inside], (xy[inside, 1].astype(int) * SIDE + xy[inside, 0].astype(int))
    first = np.flatnonzero(np.r_[True, np.diff(trip) > 0])
    last = np.r_[first[1:] - 1, len(trip) - 1]
    each = np.bincount(trip)
    occupancy = np.bincount(cell, 1 / each[trip], minlength=SIDE * SIDE).reshape(SIDE, SIDE)
    return Grid(cell_m, SIDE, SIDE, SIDE * cell_m, SIDE * cell_m), occupancy, cell[first], cell[last]


def observe(kind: str, epsilon: float, random: np.random.Generator, hours: bool = False) -> SimpleNamespace:
    """Everything that `estimators.flows` would see, with the truth beside it."""
    grid, occupancy, start, end = trajectories(kind, random, hours)
    count, area = float(len(start)), np.ones((SIDE, SIDE))
    both = 0.5 * np.bincount(np.r_[start, end], minlength=grid.cells).reshape(SIDE, SIDE)
    seen = estimate_field(noisy_levels(occupancy, OCCUPANCY_SHARE, epsilon, count, random), count, area)
    levels = noisy_levels(both, END_POINT_SHARE, epsilon, count, random)
    sharp = (seen / seen.max()) ** END_POINT_POWER
    ends = estimate_field(levels, count, area, base=sharp, coarse_base=seen, neighbours=False)
    share = float(SHARES["start_minus_end"])
    side = difference_side(grid, count * epsilon * share)
    difference = 0.5 * (np.bincount(start, minlength=grid.cells) - np.bincount(end, minlength=grid.cells))
    difference = pool(difference.reshape(SIDE, SIDE), side)
    noise = 1 / (epsilon * share)
    answer = SimpleNamespace(
        question=StartMinusEnd(grid, side), counts=difference + random.laplace(0, noise, difference.shape), noise=noise
    )
    starts, stops = split_ends(answer, ends)
    shares = [float(SHARES[f"origin_destination/{level}"]) for level in ("coarse", "fine")]
    depth = region_depth(count * epsilon * sum(shares))
    size = 2**depth
    rough = estimate_field(levels[:2], count, area, neighbours=False)
    regions = label_regions(grid, cut_regions(rough, depth))
    label = regions.ravel()
    true = np.bincount(label[start] * size + label[end], minlength=size * size).reshape(size, size).astype(float)
    coarse = pool(true, MERGED)
    noises = [1 / (epsilon * share) for share in shares]
    box = SimpleNamespace(width_m=grid.width_m, height_m=grid.height_m)
    bins = Displacement.finest_bins(box)
    moved = np.hypot(start % SIDE - end % SIDE, start // SIDE - end // SIDE) * grid.cell_m / 1000
    displaced = np.bincount(bins.index(moved), minlength=len(bins)).astype(float)
    edges = np.asarray(bins.edges)
    middles = (edges[1:] + edges[:-1]) / 2
    # The product adds up the rows of a table of displacement and length, 18 bins wide.
    noise = np.sqrt(18) / (epsilon * float(SHARES["displacement_length"]))
    return SimpleNamespace(
        grid=grid, regions=regions, size=size, starts=starts, ends=stops, count=count, true=true, bins=bins,
        displaced=displaced / displaced.sum(), signal=count * epsilon,
        displacement=estimate_histogram(Noisy(displaced + random.laplace(0, noise, len(bins)), noise), middles),
        coarse=coarse + random.laplace(0, noises[0], coarse.shape), coarse_noise=noises[0],
        fine=true + random.laplace(0, noises[1], true.shape), fine_noise=noises[1],
    )  # fmt: skip


def margins(made: SimpleNamespace) -> tuple[np.ndarray, np.ndarray]:
    label = made.regions.ravel()
    return tuple(np.bincount(label, f.ravel(), minlength=made.size) for f in (made.starts, made.ends))


def gravity(made: SimpleNamespace, displacement: np.ndarray | None) -> np.ndarray:
    """The product's prior mean before it is scaled to the margins."""
    out, into = margins(made)
    plain = np.outer(out, into) / (out.sum() * into.sum())
    if displacement is None:
        return plain
    mean = product_gravity(
        made.grid, made.regions, made.size, (made.starts, made.ends), Distribution(made.bins, displacement)
    )
    return mean / mean.sum() + 0.02 * plain


def with_short_trips(made: SimpleNamespace, displacement: np.ndarray) -> np.ndarray:
    """As `gravity`, but what its pairs cannot reach (very short trips) stays inside its region."""
    random = np.random.default_rng(0)
    cells = [random.choice(made.grid.cells, 60_000, p=f.ravel() / f.sum()) for f in (made.starts, made.ends)]
    (x0, y0), (x1, y1) = ((c % SIDE, c // SIDE) for c in cells)
    index = made.bins.index(np.hypot(x0 - x1, y0 - y1) * made.grid.cell_m / 1000)
    expected = np.bincount(index, minlength=len(made.bins)) / len(index)
    factor = np.divide(displacement, expected, out=np.ones(len(expected)), where=expected > 1e-4)
    reached = np.clip(factor, 0.05, 20.0) * expected
    missing = np.maximum(displacement - reached, 0.0).sum()
    out, into = margins(made)
    inside = np.sqrt(out * into)
    return gravity(made, displacement) + np.diag(missing / max(reached.sum(), 1e-9) * inside / inside.sum())


def scaled(made: SimpleNamespace, mean: np.ndarray) -> np.ndarray:
    out, into = margins(made)
    mean = mean.copy()
    for _ in range(30):
        mean *= (out / np.maximum(mean.sum(axis=1), 1e-12))[:, None]
        mean *= (into / np.maximum(mean.sum(axis=0), 1e-12))[None, :]
    return mean


def posterior(made: SimpleNamespace, mean: np.ndarray) -> np.ndarray:
    """As `estimators.flows` goes on from its prior mean."""
    out, into = margins(made)
    mean_coarse = pool(mean, MERGED)
    better = posterior_mean(Noisy(made.coarse, made.coarse_noise), mean_coarse, groups=3)
    mean = mean * spread(better / np.maximum(mean_coarse, 1e-9), MERGED, mean.shape)
    flows = posterior_mean(Noisy(made.fine, made.fine_noise), mean)
    for _ in range(10):
        flows *= (((out + 1e-9) / np.maximum(flows.sum(axis=1), 1e-9)) ** 0.5)[:, None]
        flows *= (((into + 1e-9) / np.maximum(flows.sum(axis=0), 1e-9)) ** 0.5)[None, :]
    return flows


def smooth_decay(made: SimpleNamespace) -> np.ndarray:
    """The displacement's shares with a factor over independence that is smooth in distance."""
    random = np.random.default_rng(0)
    pairs = 60_000
    cells = [random.choice(made.grid.cells, pairs, p=f.ravel() / f.sum()) for f in (made.starts, made.ends)]
    (x0, y0), (x1, y1) = ((c % SIDE, c // SIDE) for c in cells)
    distance = np.hypot(x0 - x1, y0 - y1) * made.grid.cell_m / 1000
    index = made.bins.index(distance)
    expected = np.bincount(index, minlength=len(made.bins)) / pairs
    middle = np.bincount(index, distance, minlength=len(made.bins)) / np.maximum(expected * pairs, 1)
    good = (expected > 1e-3) & (made.displacement > 1e-5)
    if good.sum() < 4:
        return made.displacement
    x = np.stack([np.ones(good.sum()), np.log(middle[good] + 0.05), middle[good]], axis=1)
    weight = np.sqrt(made.displacement[good])
    y = np.log(made.displacement[good] / expected[good])
    beta = np.linalg.lstsq(x * weight[:, None], y * weight, rcond=None)[0]
    fitted = made.displacement.copy()
    fitted[good] = expected[good] * np.exp(x @ beta)
    return fitted / fitted.sum()


def regressors(made: SimpleNamespace, mean: np.ndarray) -> np.ndarray:
    """(regions², 10): what a correction of the prior may depend on."""
    size, (out, into) = made.size, margins(made)
    label = made.regions.ravel()
    weight = (made.starts + made.ends).ravel() + 1e-9
    mass = np.maximum(np.bincount(label, weight, minlength=size), 1e-9)
    at = [np.bincount(label, weight * v, minlength=size) / mass
          for v in (np.arange(SIDE * SIDE) % SIDE, np.arange(SIDE * SIDE) // SIDE)]  # fmt: skip
    distance = np.hypot(*(a[:, None] - a[None, :] for a in at)) / SIDE
    same = np.eye(size)
    sibling = np.kron(np.eye(size // 2), np.ones((2, 2))) - same
    cousin = np.kron(np.eye(size // MERGED), np.ones((MERGED, MERGED))) - same - sibling
    surprise = np.log((mean + 1e-9) * size**2 / mean.sum())
    level = np.full_like(same, np.log(made.signal) / 10)
    columns = [
        same, sibling, cousin, distance, np.log(distance + 0.02), surprise, surprise * level, same * level,
        np.log(out + 1)[:, None] + np.log(into + 1)[None, :] + 0 * same, distance * level,
    ]  # fmt: skip
    return np.stack([c.ravel() for c in columns], axis=1)


def fit(cases: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
    """β that maximises Σ true·log(mean·exp(xβ) / Σ mean·exp(xβ)) over the cases, with a little ridge."""
    beta = np.zeros(cases[0][0].shape[1])
    for _ in range(25):
        slope, curve = -1e-3 * beta, 1e-3 * np.eye(len(beta))
        for x, mean, true in cases:
            p = mean.ravel() * np.exp(np.clip(x @ beta, -8, 8))
            p /= p.sum()
            centre = p @ x
            slope += x.T @ (true.ravel() / true.sum()) - centre
            curve += (x * p[:, None]).T @ x - np.outer(centre, centre)
        beta += np.clip(np.linalg.solve(curve, slope), -1, 1)
    return beta


def priors_of(made: SimpleNamespace, beta: np.ndarray) -> dict[str, np.ndarray]:
    present = scaled(made, gravity(made, made.displacement))
    corrected = present * np.exp(np.clip(regressors(made, present) @ beta, -3, 3)).reshape(present.shape)
    return {
        "none": scaled(made, gravity(made, None)),
        "present": present,
        "short trips": scaled(made, with_short_trips(made, made.displacement)),
        "smooth": scaled(made, gravity(made, smooth_decay(made))),
        "learned": scaled(made, corrected),
        "exact decay": scaled(made, gravity(made, made.displaced)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cities", type=int, default=30, help="to learn from, and as many of each sort to test on")
    chosen = parser.parse_args()
    near, far = KINDS[:5], KINDS[5:]
    cases = []
    for number in range(chosen.cities):
        for epsilon in EPSILONS:
            made = observe(near[number % len(near)], epsilon, np.random.default_rng([31, number]))
            present = scaled(made, gravity(made, made.displacement))
            cases.append((regressors(made, present), present, made.true))
    beta = fit(cases)
    print("learned from", ", ".join(near), "beta", np.round(beta, 3).tolist(), flush=True)
    for title, kinds, hours in (("same kinds", near, False), ("other kinds", far, False), ("hours", near, True)):
        results = []
        for number in range(chosen.cities):
            for epsilon in EPSILONS:
                random = np.random.default_rng([32, number])
                made = observe(kinds[number % len(kinds)], epsilon, random, hours)
                results.append((epsilon, {
                    name: (jsd(made.true, mean), jsd(made.true, posterior(made, mean)))
                    for name, mean in priors_of(made, beta).items()
                }))  # fmt: skip
        print(f"{title:12s}" + "".join(f"  eps {e}: prior posterior" for e in EPSILONS) + "   better than present")
        for name in results[0][1]:
            line = f"{name:12s}"
            for epsilon in EPSILONS:
                prior, after = np.mean([r[name] for e, r in results if e == epsilon], axis=0)
                line += f" {prior:14.4f} {after:9.4f}"
            better = sum(r[name][1] < r["present"][1] - 1e-4 for _, r in results)
            print(f"{line}   {better} of {len(results)}", flush=True)


if __name__ == "__main__":
    main()
