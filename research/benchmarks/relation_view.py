"""Does the relation view pay? The five headline metrics with and without a share of ε for it, cell by cell.

usage: relation_view.py DATA [--datasets a,b] [--epsilons .1,1] [--seeds 1,2] [--variants spread-64-5,...]
                        -o OUT.jsonl

DATA is a folder of Parquet files as for `wayveil bench utility`. A variant is HOW-K-PERCENT: how the K anchors are
chosen, and the share of ε that the view gets (all other views get that much less). With 0 percent the view is answered
exactly and for nothing, which no private run can have: a bound.

    spread   anchors far from each other among trajectories that were synthesised from the other answers
    doubt    the same, but drawn where the fit had to bend its candidates most: there answers and pool disagree
    time     as spread, with the elapsed time of each way-point as a third coordinate
    straight as spread, but each anchor is a straight line between the ends of a trajectory: needs no routes
    apart    as straight, but between a start and an end that have nothing to do with each other
    route    K/4 pairs of ends far from each other, and four routes between each pair
    given    as route, but only the choice among the four is fitted, not how many travel between the ends
    flows    as spread, but its share of ε is taken from origin and destination alone
    less     no view; the share of ε is lost: what the view costs
    lessflows  no view; its share is taken from origin and destination, and lost

The noise is seeded, the same for every variant: nothing made here is private. A seed draws the same noise, scaled, at
every ε; `110+` is a seed of its own for each ε (111 at ε = .1, 120 at 1). Rows go to OUT as they are finished, and rows
that are there are not made again. `relation_view_table.py OUT.jsonl` makes tables of them.
"""

import argparse
import json
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from wayveil.core.polylines import Polylines
from wayveil.core.posterior import Noisy, posterior_mean
from wayveil.core.prepare import Prepared, prepare
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, concatenate
from wayveil.core.waypoints import waypoints
from wayveil.evaluation import METRICS, headline, project
from wayveil.evaluation.datasets import find_datasets
from wayveil.measurement import measure
from wayveil.privacy.fixedpoint import clip_l1, quantise
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.questions.catalogue import SHARES
from wayveil.questions.question import Features, exact_sums
from wayveil.synthesis import recipe
from wayveil.synthesis.fit.weights import SoftView
from wayveil.synthesis.model import Model, make_model
from wayveil.synthesis.recipe import draw_shards
from wayveil.synthesis.request import Request
from wayveil.synthesis.trips.candidates import Trips

WAY_POINTS = 16
POOL = 4_000
STEP = 0.5
ROUTES = 4
FLOWS = ("origin_destination/coarse", "origin_destination/fine")
WALKING_MPS = 1.4
"""A second of waiting counts like so many metres of way."""


@dataclass(frozen=True, eq=False)
class Relation:
    """φ_k(T) = softmax_k(−d(T, A_k)² / 2h²), d the root mean square distance over way-points and time.

    A partition of unity over the anchors, so ‖φ‖₁ = 1 for any number of anchors. The anchors are public, or drawn
    from earlier noisy answers.
    """

    anchors: NDArray[np.float64]
    """(k, way-points, 3): x and y in metres, elapsed time times `time_scale_mps`, at equal arc length."""
    bandwidth_m: float
    time_scale_mps: float = 0.0
    name: str = "relation"
    resolution: int = 1 << 16

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.anchors),)

    def features(self, batch: Prepared) -> Features:
        points = waypoints(batch.offsets, batch.x_m, batch.y_m, batch.t_utc, self.anchors.shape[1], self.time_scale_mps)
        shares = _softmax(-_squared_distances(points, self.anchors) / (2 * self.bandwidth_m**2))
        return _dense(shares, self.resolution)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--datasets", default="cabspotting,geolife,tdrive_partial")
    parser.add_argument("--epsilons", default=",".join(f"{k / 10:g}" for k in range(1, 11)))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--variants", default="spread-64-5,doubt-64-5,time-64-5,route-64-5,given-64-5")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    done = {tuple(row[:4]) for row in _rows(options.output)}
    for seeds in options.seeds.split(","):
        for dataset in find_datasets(options.data, None, options.datasets.split(",")):
            scope, real = dataset.scope, dataset.read()
            truth, batch = project(real, scope), prepare(real, scope)
            for epsilon in options.epsilons.split(","):
                seed = int(seeds) if not seeds.endswith("+") else int(seeds[:-1]) + round(10 * float(epsilon))
                others: dict[Any, _Others] = {}
                for variant in ("none", *options.variants.split(",")):
                    if (dataset.name, epsilon, seed, variant) in done:
                        continue
                    how, _, share = _parts(variant)
                    left = share, how in ("flows", "lessflows")
                    if left not in others:
                        others[left] = _Others.of(real, scope, Fraction(epsilon), *left, seed)
                    made = project(synthesise(batch, Fraction(epsilon), others[left], variant), scope)
                    scores = {**headline(truth, made, scope), "relation_time": METRICS["relation_time"](truth, made)}
                    row = [dataset.name, epsilon, seed, variant, {k: round(v, 5) for k, v in scores.items()}]
                    with options.output.open("a") as out:
                        out.write(json.dumps([*row, others[left].known]) + "\n")


def synthesise(batch: Prepared, epsilon: Fraction, others: "_Others", variant: str) -> Trajectories:
    """The product's synthesis, with a relation view where the variant asks for one."""
    how, anchors, share = _parts(variant)
    model, wanted, pool = others.model, others.wanted, others.pool
    count, seed = wanted.count, wanted.seed or 0
    if how in ("none", "less", "lessflows"):
        return _drawn(model, wanted)
    view = pool.view(how, anchors, np.random.default_rng(seed))
    sums = exact_sums([view], [batch])[0]
    expected = count * (_shares(view, pool.vectors).T @ pool.weight)
    if share == 0:
        target, noise = sums / view.resolution, 0.0
    else:
        noisy = SeededNoise(seed + 1000).laplace(sums, view.resolution, epsilon * share)
        noise = noisy.scale / view.resolution
        target = posterior_mean(Noisy(noisy.values / view.resolution, noise), expected, groups=1)
    if how == "given":
        target = _among_routes(target, expected)
    usual = recipe.fit_views

    def with_relation(estimates: Any, trips: Trips, course: Any, placed: Polylines) -> list[Any]:
        features = _shares(view, _vectors(trips, placed, view.time_scale_mps))
        relation = SoftView("relation", features, target / target.sum(), noise, STEP)
        return [relation, *usual(estimates, trips, course, placed)]

    with patch.object(recipe, "fit_views", with_relation):
        return _drawn(model, wanted)


@dataclass(frozen=True, eq=False)
class _Others:
    """The answers of all other views with what is left of ε, and what is made of them."""

    model: Model
    wanted: Request
    pool: "_Pool"
    known: dict[str, float]
    """What a rule that switches the view on may look at: public values and noisy answers."""

    @classmethod
    def of(
        cls, real: Trajectories, scope: Scope, epsilon: Fraction, share: Fraction, of_flows: bool, seed: int
    ) -> "_Others":
        flows = {name: part for name, part in SHARES.items() if name in FLOWS}
        fewer = {name: part * (1 - share / sum(flows.values())) for name, part in flows.items()} if of_flows else {}
        with patch.dict(SHARES, fewer):
            left, noise = epsilon * (1 - share), SeededNoise(seed)
            release = measure(real, scope, epsilon=left, unit=Unit.trajectory(), noise=noise)
        count = max(round(float(release["count"].counts[0])), 1)
        wanted = Request(release, n=count, seed=seed)
        model = make_model(wanted)
        pool = _Pool.of(model, replace(wanted, n=POOL))
        even = float(1 / (pool.weight**2).sum() / len(pool.weight))
        known = {"epsilon": float(epsilon), "count": count, "signal": float(epsilon) * count, "even": round(even, 4)}
        return cls(model, wanted, pool, known)


@dataclass(frozen=True, eq=False)
class _Pool:
    """Candidates made from the other answers, and the weights of their fit."""

    vectors: NDArray[np.float64]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, model: Model, wanted: Request) -> "_Pool":
        seen: dict[str, Any] = {}
        usual_views, usual_fit = recipe.fit_views, recipe.fit_weights

        def views(estimates: Any, trips: Trips, course: Any, placed: Polylines) -> Any:
            seen["vectors"] = _vectors(trips, placed, WALKING_MPS)
            return usual_views(estimates, trips, course, placed)

        def fit(*arguments: Any) -> Any:
            found = usual_fit(*arguments)
            seen["weight"] = found.weight
            return found

        with patch.object(recipe, "fit_views", views), patch.object(recipe, "fit_weights", fit):
            _drawn(model, wanted)
        return cls(seen["vectors"], seen["weight"])

    def view(self, how: str, count: int, random: np.random.Generator) -> Relation:
        """Anchors far from each other, the bandwidth half of their spacing."""
        vectors = self.vectors * [1.0, 1.0, 1.0 if how == "time" else 0.0]
        if how in ("straight", "apart"):
            vectors = _straight(vectors, vectors[:, -1:] if how == "straight" else random.permutation(vectors[:, -1:]))
        want = self.weight if how != "doubt" else np.abs(np.log(self.weight * len(self.weight)))
        if how in ("route", "given"):
            anchors = _routes(vectors, want, count, random)
        else:
            anchors = vectors[_far_apart(vectors, want, count, random)]
        apart = np.sqrt(((anchors[:, None] - anchors[None]) ** 2).sum(axis=3).mean(axis=2))
        np.fill_diagonal(apart, np.inf)
        bandwidth = float(np.median(apart.min(axis=1))) / 2
        return Relation(anchors, max(bandwidth, 1.0), WALKING_MPS if how == "time" else 0.0)


def _far_apart(
    vectors: NDArray[np.float64], want: NDArray[np.float64], count: int, random: np.random.Generator
) -> list[int]:
    """One by one, each far from those before (k-means++)."""
    chosen = [int(random.choice(len(vectors), p=want / want.sum()))]
    nearest = np.full(len(vectors), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, _apart(vectors, vectors[chosen[-1]]))
        chosen.append(int(random.choice(len(vectors), p=want * nearest / (want * nearest).sum())))
    return chosen


def _routes(
    vectors: NDArray[np.float64], want: NDArray[np.float64], count: int, random: np.random.Generator
) -> NDArray[np.float64]:
    """Pairs of ends far from each other, and for each the ways round of candidates with about these ends."""
    straight = _straight(vectors, vectors[:, -1:])
    anchors = []
    for pair in _far_apart(straight, want, count // ROUTES, random):
        near = np.argsort(_apart(straight, straight[pair]))[: len(vectors) * ROUTES // count]
        detour = vectors[near] - straight[near]
        anchors.append(straight[pair] + detour[_far_apart(detour, want[near], ROUTES, random)])
    return np.concatenate(anchors)


def _among_routes(target: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """The wanted shares of the routes of each pair of ends, with as many between the ends as the other answers say."""
    wanted, have = target.reshape(-1, ROUTES), expected.reshape(-1, ROUTES)
    return (wanted / np.maximum(wanted.sum(axis=1, keepdims=True), 1e-9) * have.sum(axis=1, keepdims=True)).ravel()


def _straight(vectors: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(vectors[:, :1] + (ends - vectors[:, :1]) * np.linspace(0, 1, WAY_POINTS)[:, None])


def _apart(vectors: NDArray[np.float64], one: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(((vectors - one) ** 2).sum(axis=2).mean(axis=1))


def _parts(variant: str) -> tuple[str, int, Fraction]:
    how, anchors, percent = variant.split("-") if variant != "none" else ("none", "0", "0")
    return how, int(anchors), Fraction(int(percent), 100)


def _vectors(trips: Trips, placed: Polylines, time_scale_mps: float) -> NDArray[np.float64]:
    """Way-points of candidates; their points come at about equal steps of time."""
    points = np.diff(placed.offsets)
    passed = np.arange(len(placed.x_m)) - np.repeat(placed.offsets[:-1], points)
    t_s = passed * np.repeat(trips.duration_s / (points - 1), points)
    return waypoints(placed.offsets, placed.x_m, placed.y_m, t_s, WAY_POINTS, time_scale_mps)


def _shares(view: Relation, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """φ of candidates, as the view takes it of the data."""
    scaled = vectors * [1.0, 1.0, 1.0 if view.time_scale_mps else 0.0]
    flat, anchors = scaled.reshape(len(scaled), -1), view.anchors.reshape(len(view.anchors), -1)
    squared = (flat**2).sum(axis=1)[:, None] + (anchors**2).sum(axis=1)[None] - 2 * flat @ anchors.T
    score = -squared / WAY_POINTS / (2 * view.bandwidth_m**2)
    share = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _squared_distances(points: NDArray[np.float64], anchors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the way-points of the squared distance, for each pair.

    A row must not depend on its neighbours in the batch, so terms are added in a fixed order, value by value, and not
    by a blocked matrix product.
    """
    result = np.zeros((len(points), len(anchors)))
    for k in range(anchors.shape[1]):
        for axis in range(anchors.shape[2]):
            result += (points[:, None, k, axis] - anchors[None, :, k, axis]) ** 2
    answer: NDArray[np.float64] = result / anchors.shape[1]
    return answer


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    # Column by column, for the same reason: how a sum along a row is grouped must not hang on the batch's shape.
    total = np.zeros(len(weights))
    for column in weights.T:
        total += column
    result: NDArray[np.float64] = weights / total[:, None]
    return result


def _dense(shares: NDArray[np.float64], resolution: int) -> Features:
    rows, columns = shares.shape
    # Quantising rounds towards zero, but a float sum of shares may exceed 1 by a few ulp: the bound is made exact.
    weight = clip_l1(quantise(shares, resolution), None, rows, resolution)
    return Features(np.repeat(np.arange(rows), columns), np.tile(np.arange(columns), rows), weight.ravel())


def _drawn(model: Model, wanted: Request) -> Trajectories:
    return concatenate([shard.trajectories for shard in draw_shards(model, wanted)])


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


if __name__ == "__main__":
    main()
