"""Training samples: a scope laid over a simulated city, the product's views of it, noise, and the Bayesian estimates.

Everything a sample holds is computed by the product's own code (`estimate_field`, `learned.features`), so that the
network is trained on exactly what it will be shown.
"""

from dataclasses import dataclass, replace

import numpy as np
from maps import road_map
from numpy.typing import NDArray
from product import (
    COUNT_SHARE,
    END_POINT_POWER,
    END_POINT_SHARE,
    FINER,
    OCCUPANCY_SHARE,
    PARTS,
    NoisyLevel,
    coarse_parts,
    concentration,
    estimate_field,
    estimate_mapped_field,
    features,
    fine_parts,
    level_sides,
    parts_of_cells,
    pool,
    value_weights,
)
from streets import KINDS, Streets, build_streets
from traffic import MOST_POINTS_EACH, Points, Trips, at_few_places, attraction, route_trips, sample_hours, sample_points

SIDE = 256
"""Most rows and columns of a scope; smaller ones are padded."""
WIDE_SIDE = 384
"""The same for the fourth stage, whose scopes roam."""
FIELDS = ("noisy0", "noisy1", "noisy2", "log_bayes", "area", "road0", "road1", "road2", "covered", "truth",
          "end_noisy0", "end_noisy1", "end_noisy2", "end_log_bayes", "end_truth",
          "heard1", "heard2", "end_heard1", "end_heard2", "heard0", "end_heard0")  # fmt: skip
_MOST_POINTS = 700_000
_INTERVALS_S = (5.0, 15.0, 60.0, 150.0, 400.0)
_HOURS_INTERVALS_S = (15.0, 60.0, 150.0, 300.0, 600.0)
_UNFOCUSED = 0.15
"""Of the samples, how many divide their questions alike in all blocks."""
_VARIED = 0.5
"""Of the fields of the ninth stage, how many have other cell sizes than the product's rule says."""
_SIGNALS = (7e-4, 3.0)
"""Signal of a base cell with Gaussian noise, in noise units of the detail: 141 people to 200,000 trips at ε = 10."""
_COARSE_RATIOS = {"occupancy": (2.5, 12.0), "end_points": (1.3, 7.0)}
"""Noise of the coarse blocks over that of the detail. With Gaussian noise it follows from the norms of units, which
these cities do not have; the ranges are those of releases of simulated and real data at trip and at user level."""
_END_POINT_RATIOS = (1.8, 3.2)
"""Noise of the end points' detail over that of the occupancy's."""
_FIRST_DRAW = (2.0, 5.0)
"""Noise of a first draw, which decides the weights of blocks, over that of the second."""
_HOURS_SHARE = 0.35
"""Of the views, how many are of days cut into pieces."""


@dataclass(frozen=True, eq=False)
class City:
    """Streets with their traffic, before any scope is laid over them."""

    streets: Streets
    trips: Trips
    popularity: NDArray[np.float64]
    """How often each trip is made, relative: commuters repeat themselves."""
    untidy: bool = False
    """Ends beside the streets, and maps that say less about traffic."""


@dataclass(frozen=True, eq=False)
class View:
    """The exact views of one scope on the base grid (in trajectories), and the public map."""

    kind: str
    occupancy: NDArray[np.float64]
    end_points: NDArray[np.float64]
    area: NDArray[np.float64]
    roads: list[NDArray[np.float64]]
    count: float


def build_city(
    kind: str, random: np.random.Generator, trips: int | None = None, outskirts: bool = False, untidy: bool = False
) -> City:
    """A city of the given kind with some thousand routed trips.

    With `outskirts` most cities do not end: streets thin out far into the country, and some places far from the centre
    draw many trips (an airport, a town). Where nothing lies outside, a network learns to give nothing there.
    `untidy` trips end beside the streets, many of them at few places, and maps say less about them.
    """
    for _ in range(20):
        streets = build_streets(kind, random)
        if len(streets.edges) > 30:
            break
    outskirts = outskirts and kind != "campus"
    if outskirts and random.random() < 0.7:
        streets = _thinning_out(streets, random)
    heat = attraction(streets, random)
    if outskirts and random.random() < 0.5:
        heat = _far_places(streets, heat, random)
    if untidy and random.random() < 0.6:
        heat = at_few_places(heat, random)
    count = trips or int(np.exp(random.uniform(np.log(1500), np.log(7000))))
    routed = route_trips(streets, heat, count, random, untidy)
    return City(streets, routed, random.gamma(np.exp(random.uniform(-1.2, 2.0)), size=len(routed)) + 1e-6, untidy)


def _thinning_out(streets: Streets, random: np.random.Generator) -> Streets:
    """The outer streets stretched away from the centre: r → r·(1 + a·(r/R)^b)."""
    power, most = random.uniform(1, 3), random.uniform(0.2, 2.5)

    def stretched(xy: NDArray) -> NDArray:
        return xy * (1 + most * (np.hypot(*xy.T) / streets.radius_m) ** power)[:, None]

    return replace(streets, xy=stretched(streets.xy), centres=stretched(streets.centres))


def _far_places(streets: Streets, heat: NDArray, random: np.random.Generator) -> NDArray[np.float64]:
    """One to three places in the outer third of the streets that draw 2 to 15 % of all trip ends each."""
    away = np.hypot(*streets.xy.T)
    outer = np.flatnonzero(away >= np.quantile(away, 0.67))
    heat = heat / heat.sum()
    for place in streets.xy[random.choice(outer, int(random.integers(1, 4)))]:
        reach = np.exp(random.uniform(np.log(0.01), np.log(0.05))) * streets.radius_m
        near = np.exp(-0.5 * ((streets.xy - place) ** 2).sum(axis=1) / reach**2)
        heat = heat + random.uniform(0.02, 0.15) * near / max(near.sum(), 1e-9)
    return heat


def look(
    city: City, random: np.random.Generator, count: float | None = None, side: int = SIDE, hours: bool | None = None,
    roaming: bool = False,
) -> View:  # fmt: skip
    """Turn and stretch the city, lay a scope over it, sample GPS points and add up the views.

    With `hours` the trajectories are pieces of a day instead of trips; by default some are. A `roaming` scope may be a
    quarter of the city or the city with wide country around it, and its middle need not be the city's: a network that
    only sees cities in the middle of their scope learns that mass belongs there.
    """
    cell_m = 50.0 if city.streets.kind == "campus" else 100.0
    scale = random.uniform(0.75, 1.35)
    angle = random.uniform(0, 2 * np.pi)
    turn = scale * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    low, high = (0.5, 3.4) if roaming else (0.8, 2.6)
    extent = city.streets.radius_m * scale * np.exp(random.uniform(np.log(low), np.log(high)))
    size_m = np.clip(extent * np.exp(random.normal(0, 0.25, 2)), 24 * cell_m, (side - 1e-6) * cell_m)
    middle = random.normal(0, 0.15 * extent, 2)
    if roaming and random.random() < 0.6:
        middle = random.uniform(-0.75, 0.75, 2) * city.streets.radius_m * scale
    corner = middle - size_m / 2
    columns, rows = np.ceil(size_m / cell_m - 1e-9).astype(int)

    low, high = (700, 6000) if random.random() < 0.3 else (700, 200_000)
    wanted = float(np.exp(random.uniform(np.log(low), np.log(high)))) if count is None else count
    points, weight = _drive(city, wanted, random.random() < _HOURS_SHARE if hours is None else hours, random)
    moved = Points(points.trip, (points.xy @ turn - corner) / cell_m)
    occupancy, ends, seen = _add_up(moved, rows, columns, size_m / cell_m)
    area = np.outer(
        np.clip(size_m[1] / cell_m - np.arange(rows), 0, 1), np.clip(size_m[0] / cell_m - np.arange(columns), 0, 1)
    )
    untidy = city.untidy and random.random() < 0.7
    roads = road_map(city.streets, turn, corner, cell_m, (rows, columns), random, untidy)
    return View(city.streets.kind, occupancy * weight, ends * weight, area, roads, seen * weight)


def _drive(city: City, wanted: float, hours: bool, random: np.random.Generator) -> tuple[Points, float]:
    """GPS points of about `wanted` trajectories, and how many each of those drawn stands for."""
    interval = float(random.choice(_HOURS_INTERVALS_S if hours else _INTERVALS_S))
    noise_m = random.uniform(3, 15)
    share = city.popularity / city.popularity.sum()
    window_s = float(np.exp(random.uniform(np.log(600), np.log(7200))))
    longest = window_s if hours else float(np.mean(np.minimum(city.trips.duration_s, MOST_POINTS_EACH * interval)))
    drawn = int(min(wanted, _MOST_POINTS / (np.clip(longest / interval, 1, MOST_POINTS_EACH - 1) + 1)))
    if hours:
        day = random.choice(len(city.trips), len(city.trips), p=share)
        points = sample_hours(city.trips, day, drawn, window_s, interval, noise_m, random)
    else:
        points = sample_points(city.trips, random.choice(len(city.trips), drawn, p=share), interval, noise_m, random)
    return points, wanted / drawn


def _add_up(points: Points, rows: int, columns: int, size: NDArray) -> tuple[NDArray, NDArray, int]:
    """Occupancy (1/n_T a point) and end points (½ + ½) of the points inside; those outside are left out, not moved."""
    inside = ((points.xy >= 0) & (points.xy <= size)).all(axis=1)
    trip, xy = points.trip[inside], points.xy[inside]
    column = np.minimum(xy[:, 0].astype(int), columns - 1)
    cell = np.minimum(xy[:, 1].astype(int), rows - 1) * columns + column
    each = np.bincount(trip, minlength=1)
    occupancy = np.bincount(cell, 1 / each[trip], minlength=rows * columns)
    change = np.flatnonzero(np.diff(trip))
    both = np.r_[0, change + 1, change, len(trip) - 1] if len(trip) else np.zeros(0, int)
    ends = np.bincount(cell[both], np.full(len(both), 0.5), minlength=rows * columns)
    return occupancy.reshape(rows, columns), ends.reshape(rows, columns), int((each > 0).sum())


def noisy_levels(
    exact: NDArray, share: float, epsilon: float, signal_count: float, random: np.random.Generator,
    unfocused: float = 0.0, beside: NoisyLevel | None = None, varied: float = 0.0,
) -> list[NoisyLevel]:  # fmt: skip
    """The three levels with Laplace noise, sized and focused by the product's rule.

    `beside` are the coarse blocks of another field, which tell how close together trajectories lie. A share `unfocused`
    of them has the same division in every block, whatever it is: as releases of older versions do. A share `varied` has
    blocks and cells of other sizes, so that a rule for sizes can be chosen after training.
    """
    signal = max(signal_count, 1.0) * epsilon * share
    close = concentration(beside.counts, beside.side, beside.noise) if beside else 1.0
    sides, blocks = level_sides(exact.size, signal, close), coarse_parts(signal, exact.size) / PARTS
    if varied and random.random() < varied:
        sides = _other_sides(sides, random)
    blocks_noise, noise = 1 / (epsilon * share * blocks), 1 / (epsilon * share * (1 - blocks))
    coarse = _heard(pool(exact, sides[0]), sides[0], blocks_noise, random)
    parts = fine_parts(coarse.counts, (sides[0] // sides[2]) ** 2, noise)
    if unfocused and random.random() < unfocused:
        parts = np.full_like(parts, random.integers(3, 16))
    return _with_detail(coarse, exact, parts, sides, noise, random)


def gaussian_levels(
    exact: NDArray, kind: str, noise: float, total: float, random: np.random.Generator,
    beside: NoisyLevel | None = None, varied: float = 0.0,
) -> list[NoisyLevel]:  # fmt: skip
    """The three levels with Gaussian noise, as of users who were clipped.

    Half of the coarse blocks are drawn twice, the second time with weights by the first (`value_weights`). `noise` is
    that of a cell that gets all parts; as in a release, it was known roughly when sizes were chosen.
    """
    guessed = noise * np.exp(random.normal(0.0, 0.3))
    close = concentration(beside.counts, beside.side, beside.mean_noise) if beside else 1.0
    sides = level_sides(exact.size, FINER * total / guessed, close)
    if varied and random.random() < varied:
        sides = _other_sides(sides, random)
    blocks_noise = noise * _between(_COARSE_RATIOS[kind], random)
    blocks = pool(exact, sides[0])
    if random.random() < 0.5:
        first_noise = blocks_noise * _between(_FIRST_DRAW, random)
        first = _heard(blocks, sides[0], first_noise, random, gaussian=True)
        expected = pool(estimate_field([first], total, np.ones(exact.shape)), sides[0])
        second_noise = blocks_noise / value_weights(expected.ravel()).reshape(blocks.shape)
        blocks_noise = 1 / np.sqrt(1 / first_noise**2 + 1 / second_noise**2)
    coarse = _heard(blocks, sides[0], blocks_noise, random, gaussian=True)
    parts = fine_parts(coarse.counts, (sides[0] // sides[2]) ** 2, guessed)
    return _with_detail(coarse, exact, parts, sides, noise, random, gaussian=True)


def _between(limits: tuple[float, float], random: np.random.Generator) -> float:
    return float(np.exp(random.uniform(*np.log(limits))))


def _with_detail(
    coarse: NoisyLevel, exact: NDArray, parts: NDArray, sides: tuple[int, int, int], noise: float,
    random: np.random.Generator, gaussian: bool = False,
) -> list[NoisyLevel]:  # fmt: skip
    levels = [coarse]
    for side in sides[1:]:
        pooled = pool(exact, side)
        own = parts_of_cells(parts, sides[0] // side, pooled.shape)
        heard = own if side == sides[2] else PARTS - own
        levels.append(_heard(pooled, side, noise * PARTS / heard, random, gaussian))
    return levels


def _other_sides(sides: tuple[int, int, int], random: np.random.Generator) -> tuple[int, int, int]:
    """Blocks and fine cells half as large, as large or twice as large, each by itself; the middle 4 fine cells."""
    coarse = int(np.clip(sides[0] * random.choice((0.5, 1.0, 2.0)), 16, 64))
    fine = int(np.clip(sides[2] * random.choice((0.5, 1.0, 2.0)), 1, coarse // 4))
    return coarse, 4 * fine, fine


def _heard(
    exact: NDArray, side: int, noise: float | NDArray, random: np.random.Generator, gaussian: bool = False
) -> NoisyLevel:
    unit = random.normal(0, np.sqrt(2), exact.shape) if gaussian else random.laplace(0, 1, exact.shape)
    return NoisyLevel(exact + noise * unit, side, noise, gaussian)


@dataclass(frozen=True, eq=False)
class Release:
    """What the product's synthesis would see of a view, with the Bayesian estimates beside it."""

    view: View
    total: float
    roads: list[NDArray[np.float64]] | None
    occupancy_levels: list[NoisyLevel]
    end_levels: list[NoisyLevel]
    occupancy: NDArray[np.float64]
    end_points: NDArray[np.float64]


def release(
    view: View, epsilon: float, mapped: bool, random: np.random.Generator, unfocused: float = 0.0, varied: float = 0.0,
    gaussian: bool = False,
) -> Release:  # fmt: skip
    """Draw noise and estimate, as `measure` and `estimate` do.

    With `gaussian`, `epsilon` is the signal of a base cell in noise units of the occupancy's detail instead.
    """
    if gaussian:
        total = max(view.count * (1 + _between((0.003, 0.2), random) * random.normal()), 1.0)
        noise = view.count / (epsilon * view.area.size)
        end_noise = noise * _between(_END_POINT_RATIOS, random)
        end_levels = gaussian_levels(view.end_points, "end_points", end_noise, total, random, varied=varied)
        occupancy_levels = gaussian_levels(view.occupancy, "occupancy", noise, total, random, end_levels[0], varied)
    else:
        total = max(view.count + random.laplace(0, 1 / (epsilon * COUNT_SHARE)), 1.0)
        end_levels = noisy_levels(view.end_points, END_POINT_SHARE, epsilon, total, random, unfocused, varied=varied)
        occupancy_levels = noisy_levels(
            view.occupancy, OCCUPANCY_SHARE, epsilon, total, random, unfocused, end_levels[0], varied
        )
    roads = view.roads if mapped else None
    if roads:
        occupancy = estimate_mapped_field(occupancy_levels, total, view.area, roads)
    else:
        occupancy = estimate_field(occupancy_levels, total, view.area)
    base = (occupancy / max(occupancy.max(), 1e-300)) ** END_POINT_POWER
    ends = estimate_field(end_levels, total, view.area, base=base, coarse_base=occupancy, neighbours=False)
    return Release(view, total, roads, occupancy_levels, end_levels, occupancy, ends)


def draw_epsilon(view: View, random: np.random.Generator, usual: float = 0.0) -> float:
    """ε such that a cell's occupancy is worth 2·10⁻⁴ to 6 noise units, and ε itself is one in use.

    A share `usual` of them lies between .07 and 2 where the worth allows.
    """
    least, most = (0.07, 2.0) if usual and random.random() < usual else (0.02, 5.0)
    low, high = (np.clip(worth * view.area.size / (0.4 * max(view.count, 1)), least, most) for worth in (2e-4, 6.0))
    return float(np.exp(random.uniform(np.log(low), np.log(max(high, low * 1.01)))))


def pack(made: Release, side: int = SIDE) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """(side, side, fields) and the two vectors of constants, one after the other."""
    view = made.view
    rows, columns = shape = view.area.shape
    fields = np.zeros((side, side, len(FIELDS)), np.float16)
    cells = view.area.sum()
    part = fields[:rows, :columns]
    part[..., 0:3] = features.noisy_channels(made.occupancy_levels, shape)
    part[..., 3] = features.log_density(made.occupancy, view.area)
    part[..., 4] = view.area > 0
    part[..., 5:9] = features.road_channels(made.roads, shape)
    part[..., 9] = np.minimum(view.occupancy * cells / max(view.count, 1e-9), 60_000)
    part[..., 10:13] = features.noisy_channels(made.end_levels, shape)
    part[..., 13] = features.log_density(made.end_points, view.area)
    part[..., 14] = np.minimum(view.end_points * cells / max(view.count, 1e-9), 60_000)
    part[..., 15:17] = features.precision_channels(made.occupancy_levels, shape)
    part[..., 17:19] = features.precision_channels(made.end_levels, shape)
    part[..., 19:20] = features.coarse_precision_channel(made.occupancy_levels, shape)
    part[..., 20:21] = features.coarse_precision_channel(made.end_levels, shape)
    mapped = made.roads is not None
    constants = [features.constants(levels, made.total, view.area, mapped)
                 for levels in (made.occupancy_levels, made.end_levels)]  # fmt: skip
    return fields, np.concatenate(constants)


_KIND_SHARES = {"mixed": 2.5, "organic": 1.5, "grid": 1.2, "river": 1.5, "coast": 1.5}


def random_samples(
    seed: int, side: int = SIDE, roaming: bool = False, untidy: bool = False, varied: bool = False,
    gaussian: bool = False,
):  # fmt: skip
    """An endless stream of (fields, constants) from ever new cities."""
    random = np.random.default_rng([seed, 1])
    weight = np.array([_KIND_SHARES.get(kind, 1.0) for kind in KINDS])
    while True:
        free = roaming and random.random() < 0.7  # the others are as in the stages before
        city = build_city(
            str(random.choice(KINDS, p=weight / weight.sum())), random, outskirts=free,
            untidy=untidy and random.random() < 0.5,
        )  # fmt: skip
        for _ in range(3):
            view = look(city, random, side=side, roaming=free)
            if view.count < 50:
                continue
            for mapped in (False, True, bool(random.random() < 0.6)):
                epsilon = (
                    _between(_SIGNALS, random) if gaussian else draw_epsilon(view, random, 0.5 if roaming else 0.0)
                )
                yield pack(release(view, epsilon, mapped, random, _UNFOCUSED, _VARIED * varied, gaussian), side)


VALIDATION_EPSILONS = (0.1, 0.5, 1.0)
"""The field's own share is 0.4 of each: ε_v = .04, .2 and .4."""
VALIDATION_SIGNALS = (0.003, 0.03, 0.3)
"""Signals of a base cell instead, with Gaussian noise: few people, hundreds of drivers, and trips at ε = 1."""


def validation_samples(kind: str, number: int, side: int = SIDE, gaussian: bool = False):
    """(ε, mapped, fields, constants) of one fixed city, see `validation_releases`."""
    for epsilon, mapped, made in validation_releases(kind, number, side, gaussian):
        yield (epsilon, mapped, *pack(made, side))


def validation_releases(kind: str, number: int, side: int = SIDE, gaussian: bool = False):
    """(ε, mapped, release) of a city that training never sees: other seeds, always the same; two of three are of trips.

    The third is of days cut into pieces, with 1,000 to 10,000 of them.
    """
    random = np.random.default_rng([20_261_115, KINDS.index(kind), number])
    city = build_city(kind, random)
    hours = number % 3 == 2
    low, high = (1000, 10_000) if hours else (3000, 60_000)
    count = float(np.exp(random.uniform(np.log(low), np.log(high))))
    view = look(city, random, count=count, side=side, hours=hours)
    for epsilon in VALIDATION_SIGNALS if gaussian else VALIDATION_EPSILONS:
        for mapped in (False, True):
            yield epsilon, mapped, release(view, epsilon, mapped, random, gaussian=gaussian)


def roaming_releases(kind: str, number: int, side: int = WIDE_SIDE, untidy: bool = False):
    """(ε, mapped, release) of a held-out city under a roaming scope: even numbers trips (20,000), odd hours (5,000)."""
    random = np.random.default_rng([20_261_117 if untidy else 20_261_116, KINDS.index(kind), number])
    hours = number % 2 == 1
    for _ in range(20):
        city = build_city(kind, random, outskirts=True, untidy=untidy)
        view = look(city, random, 5000.0 if hours else 20_000.0, side, hours, roaming=True)
        if view.count >= 500:
            break
    for epsilon in VALIDATION_EPSILONS:
        for mapped in (False, True):
            yield epsilon, mapped, release(view, epsilon, mapped, random)
