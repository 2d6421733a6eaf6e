"""Does the relation view pay? The five headline metrics with and without a share of ε for it, cell by cell.

usage: relation_view.py DATA [--datasets a,b] [--epsilons .1,1] [--seeds 1] [--variants spread-64-5,...] -o OUT.jsonl

DATA is a folder of Parquet files as for `wayveil bench utility`. A variant is HOW-K-PERCENT: how the K anchors are
chosen, and the share of ε that the view gets (all other views get that much less).

    spread   anchors far from each other among trajectories that were synthesised from the other answers
    doubt    the same, but drawn where the fit had to bend its candidates most: there answers and pool disagree
    time     as spread, with the elapsed time of each way-point as a third coordinate
    straight as spread, but each anchor is a straight line between the ends of a trajectory: needs no routes
    apart    as straight, but between a start and an end that have nothing to do with each other

The noise is seeded, the same for every variant: nothing made here is private. Rows go to OUT as they are finished, and
rows that are there are not made again.
"""

import argparse
import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from wayveil.evaluation import HEADLINE, headline, project
from wayveil.evaluation.datasets import find_datasets
from wayveil.measure import measure
from wayveil.prepare import prepare
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.scope import Scope
from wayveil.synthesis import shard as shards
from wayveil.synthesis.candidates import Trips
from wayveil.synthesis.fit import SoftView
from wayveil.synthesis.polylines import Polylines
from wayveil.synthesis.posterior import posterior_mean
from wayveil.synthesis.synthesize import Model, draw_shards, make_model
from wayveil.trajectories import Trajectories, concatenate
from wayveil.views import Relation
from wayveil.views.base import exact_sums
from wayveil.waypoints import waypoints

WAY_POINTS = 16
POOL = 4_000
STEP = 0.5
WALKING_MPS = 1.4
"""A second of waiting counts like so many metres of way."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--datasets", default="cabspotting,geolife,tdrive_partial")
    parser.add_argument("--epsilons", default=",".join(f"{k / 10:g}" for k in range(1, 11)))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--variants", default="spread-64-5,doubt-16-2,doubt-64-5,time-64-5")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    done = {tuple(row[:4]) for row in _rows(options.output)}
    for dataset in find_datasets(options.data, None, options.datasets.split(",")):
        scope, real = dataset.scope, dataset.read()
        truth = project(real, scope)
        for epsilon in options.epsilons.split(","):
            for seed in range(1, options.seeds + 1):
                for variant in ("none", *options.variants.split(",")):
                    if (dataset.name, epsilon, seed, variant) in done:
                        continue
                    scores = headline(truth, synthesise(real, scope, Fraction(epsilon), seed, variant), scope)
                    row = [dataset.name, epsilon, seed, variant, {k: round(v, 5) for k, v in scores.items()}]
                    with options.output.open("a") as out:
                        out.write(json.dumps(row) + "\n")
    summarise(_rows(options.output))


def synthesise(real: Trajectories, scope: Scope, epsilon: Fraction, seed: int, variant: str) -> Trajectories:
    """The product's synthesis, with a relation view where the variant asks for one."""
    how, anchors, percent = variant.split("-") if variant != "none" else ("none", "0", "0")
    share = Fraction(int(percent), 100)
    release = measure(real, scope, epsilon=epsilon * (1 - share), unit=Unit.trajectory(), noise=SeededNoise(seed))
    model = make_model(release, seed=seed)
    count = max(round(float(release["count"].counts[0])), 1)
    if how == "none":
        return _drawn(model, count, seed)
    pool = _Pool.of(model, seed)
    view = pool.view(how, int(anchors), np.random.default_rng(seed))
    sums = exact_sums([view], [prepare(real, scope)])[0]
    noisy = SeededNoise(seed + 1000).laplace(sums, view.resolution, epsilon * share)
    counts, noise = noisy.values / view.resolution, noisy.scale / view.resolution
    expected = count * (_shares(view, pool.vectors).T @ pool.weight)
    target = posterior_mean(counts, expected, noise, groups=1)
    usual = shards.fit_views

    def with_relation(estimates: Any, trips: Trips, course: Any, placed: Polylines) -> list[Any]:
        features = _shares(view, _vectors(trips, placed, view.time_scale_mps))
        relation = SoftView("relation", features, target / target.sum(), noise, STEP)
        return [relation, *usual(estimates, trips, course, placed)]

    with patch.object(shards, "fit_views", with_relation):
        return _drawn(model, count, seed)


@dataclass(frozen=True, eq=False)
class _Pool:
    """Candidates made from the other answers, and the weights of their fit."""

    vectors: NDArray[np.float64]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, model: Model, seed: int) -> "_Pool":
        seen: dict[str, Any] = {}
        usual_views, usual_fit = shards.fit_views, shards.fit_weights

        def views(estimates: Any, trips: Trips, course: Any, placed: Polylines) -> Any:
            seen["vectors"] = _vectors(trips, placed, WALKING_MPS)
            return usual_views(estimates, trips, course, placed)

        def fit(*arguments: Any) -> Any:
            found = usual_fit(*arguments)
            seen["weight"] = found.weight
            return found

        with patch.object(shards, "fit_views", views), patch.object(shards, "fit_weights", fit):
            _drawn(model, POOL, seed)
        return cls(seen["vectors"], seen["weight"])

    def view(self, how: str, count: int, random: np.random.Generator) -> Relation:
        """Anchors one by one, each far from those before (k-means++), the bandwidth half of their spacing."""
        vectors = self.vectors * [1.0, 1.0, 1.0 if how == "time" else 0.0]
        if how in ("straight", "apart"):
            ends = vectors[:, -1:] if how == "straight" else random.permutation(vectors[:, -1:])
            vectors = vectors[:, :1] + (ends - vectors[:, :1]) * np.linspace(0, 1, WAY_POINTS)[:, None]
        want = self.weight if how != "doubt" else np.abs(np.log(self.weight * len(self.weight)))
        chosen = [int(random.choice(len(vectors), p=want / want.sum()))]
        nearest = np.full(len(vectors), np.inf)
        while len(chosen) < count:
            nearest = np.minimum(nearest, ((vectors - vectors[chosen[-1]]) ** 2).sum(axis=2).mean(axis=1))
            chosen.append(int(random.choice(len(vectors), p=want * nearest / (want * nearest).sum())))
        anchors = vectors[chosen]
        apart = np.sqrt(((anchors[:, None] - anchors[None]) ** 2).sum(axis=3).mean(axis=2))
        np.fill_diagonal(apart, np.inf)
        bandwidth = float(np.median(apart.min(axis=1))) / 2
        return Relation(anchors, max(bandwidth, 1.0), WALKING_MPS if how == "time" else 0.0)


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


def _drawn(model: Model, count: int, seed: int) -> Trajectories:
    return concatenate([shard.trajectories for shard in draw_shards(model, count, seed)])


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def summarise(rows: list[Any]) -> None:
    """For each variant: the mean ratio to the run without the view, and in how many cells it was better."""
    scores = {tuple(row[:4]): row[4] for row in rows}
    print(f"{'dataset':>16} {'variant':>12}", *(f"{name:>20}" for name in HEADLINE))
    for dataset in sorted({row[0] for row in rows}):
        for variant in sorted({row[3] for row in rows} - {"none"}):
            cells = [key for key in scores if key[0] == dataset and key[3] == variant and (*key[:3], "none") in scores]
            line = []
            for name in HEADLINE:
                pairs = np.array([(scores[key][name], scores[(*key[:3], "none")][name]) for key in cells])
                ratio = pairs[:, 0].mean() / pairs[:, 1].mean()
                line.append(f"x{ratio:.3f} better {(pairs[:, 0] < pairs[:, 1]).sum()}/{len(pairs)}".rjust(20))
            print(f"{dataset:>16} {variant:>12}", *line)


if __name__ == "__main__":
    main()
