"""synthesize: a release → synthetic trajectories. It reads the release, public maps and rules, and nothing else.

Estimate → candidates → fit → refine, each its own module; this one is the recipe. What all trajectories share (the
estimates, the balanced routes) is a `Model`; trajectories are drawn from it in independent shards, so a million of
them need no more memory than one shard.

Privacy: free (post-processing).
"""

import operator
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.engine.pieces import Pieces
from wayveil.errors import InputError
from wayveil.progress import Progress, nobody, part, quiet
from wayveil.release import Release, made_notes
from wayveil.roads import RoadMap
from wayveil.rules.rule import Rule
from wayveil.synthesis.candidates import Trips, draw_trips, take_trips
from wayveil.synthesis.estimate import Estimates, estimate
from wayveil.synthesis.obey.steering import binding_rules, crowded_closures, steered_estimates, steered_graph
from wayveil.synthesis.prior import Prior, public_prior
from wayveil.synthesis.router import Router, balance_routes, route_trips
from wayveil.synthesis.shard import SETTINGS as SHARD_SETTINGS
from wayveil.synthesis.shard import Shard, added_counts, draw_shard
from wayveil.trajectories import Trajectories, concatenate

SHARD = 25_000
_MOST_TRAJECTORIES = 100_000_000
_QUICK = 25_000
"""Up to this many trajectories take seconds."""
_LARGE = 10_000_000
"""Above this many trajectories, more than half an hour of work, the number has to be asked for."""
_NOISE_SHARE = 0.1
"""A count is made without being asked for if the scale of its noise is at most this share of it."""
_PER_SECOND = 5_000
"""Trajectories a second on one core: 9,300 without a map, 2,300 with a map and rules (docs/explanation/speed.md)."""
_BALANCE_TRIPS = 8_000
_TRIED_TRIPS = 2_000
_DRAWING = "drawing trajectories"


@dataclass(frozen=True, eq=False)
class Synthesis:
    """Synthetic trajectories, and what is known about how well they came out.

    Privacy: free (post-processing); as private as the release that it was made from.
    """

    trajectories: Trajectories
    diagnostics: dict[str, Any]
    private: bool
    notes: dict[str, str] = field(default_factory=dict)
    """What a file of them says about itself; `wayveil.write(synthesis, FILE)` keeps it there."""

    def __len__(self) -> int:
        return len(self.trajectories)

    def __repr__(self) -> str:
        promise = "private" if self.private else "NOT private"
        return f"Synthesis({len(self):,} trajectories, {len(self.trajectories.lon):,} points, {promise})"

    def to_pandas(self) -> Any:
        """A pandas frame with one row a point: traj_id, lat, lon, t."""
        return self.trajectories.to_pandas()


@dataclass(frozen=True, eq=False)
class Model:
    """What every shard is drawn from."""

    estimates: Estimates
    prior: Prior
    router: Router
    rules: tuple[Rule, ...]
    avoided: tuple[Rule, ...] = ()
    """Rules whose area routes avoid at all times, although it is closed at some hours only."""


def synthesize(
    release: Release,
    *,
    roads: RoadMap | None = None,
    rules: Sequence[Rule] = (),
    n: int | None = None,
    seed: int | None = None,
    estimator: str = "learned",
    engine: Pieces | None = None,
    progress: Progress = quiet,
) -> Synthesis:
    """Synthetic trajectories with place and time, fitted to the release's noisy answers.

    Parameters
    ----------
    roads
        A public road map as a better prior; where it has no roads the grid takes over.
    rules
        Traffic rules that the output obeys; the scope's bounds always hold.
    n
        How many; the release's noisy count where not given.
    seed
        The same seed gives the same trajectories. It has nothing to do with the noise.
    estimator
        'bayes' or 'learned': how the noisy fields are smoothed.

    Privacy: free (post-processing).
    """
    count, seed = wanted_count(release, n), wanted_seed(seed)
    model = make_model(release, roads=roads, rules=rules, seed=seed, estimator=estimator, progress=progress)
    shards = list(draw_shards(model, count, seed, engine, progress))
    trajectories = concatenate([shard.trajectories for shard in shards])
    notes = made_notes(release, rules=len(rules), roads=roads is not None)
    return Synthesis(trajectories, diagnostics_of(shards), release.private, notes)


def wanted_count(release: Release, n: int | None) -> int:
    """How many trajectories to make: what was asked, or the noisy count where the release supports it."""
    if n is None:
        if (why := unsupported_words(release)) is not None:
            raise InputError(f"{why}; say how many with n=.")
        return default_count(release)
    count = _whole(n)
    if count is None or not 1 <= count <= _MOST_TRAJECTORIES:
        raise InputError(f"n must be a whole number from 1 to {_MOST_TRAJECTORIES:,}.")
    return count


def default_count(release: Release) -> int:
    """The noisy count of the release, at least one."""
    return min(max(round(float(release["count"].counts[0])), 1), _MOST_TRAJECTORIES)


def unsupported_words(release: Release) -> str | None:
    """Why the noisy count is not made without being asked for, with the time that it would take; None where it is.

    What takes seconds is always made. Above that, a count within a few times its own noise may be hundreds of
    times the number of trajectories that there were, and a very large one may be a slip or a forgery.

    Privacy: free (post-processing).
    """
    count, noise = default_count(release), release["count"].noise
    if count <= _QUICK or (noise <= _NOISE_SHARE * count and count <= _LARGE):
        return None
    time = f"making them takes {duration_words(count)}"
    if count > _LARGE:
        return f"The release counts {count:,} trajectories, more than {_LARGE:,}, and {time}"
    return f"The release's count of {count:,} trajectories is inexact (its noise is about {noise:,.0f}), and {time}"


def duration_words(count: int) -> str | None:
    """About how long it takes to make `count` trajectories; None where that is a matter of seconds."""
    if count <= _QUICK:
        return None
    seconds = count / _PER_SECOND
    span = f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.0f} h"
    return f"about {span if seconds >= 60 else '1 min'} (at {_PER_SECOND:,} a second)"


def wanted_seed(seed: int | None) -> int | None:
    """The seed as Python's own kind of number; None where none was asked for."""
    if seed is None:
        return None
    chosen = _whole(seed)
    if chosen is None or chosen < 0:
        raise InputError("seed must be a whole number of at least 0; leave it out to have one drawn.")
    return chosen


def _whole(value: object) -> int | None:
    """Any library's whole number; None for whatever is no number or not of a whole kind."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def make_model(
    release: Release,
    *,
    roads: RoadMap | None = None,
    rules: Sequence[Rule] = (),
    seed: int | None = None,
    estimator: str = "learned",
    progress: Progress = quiet,
) -> Model:
    """Estimates and balanced routes: everything that trajectories have in common."""
    if estimator not in ("bayes", "learned"):
        raise InputError(f"Estimator '{estimator}' is unknown; use bayes or learned.")
    if roads is not None and not isinstance(roads, RoadMap):
        raise InputError("roads must be a road map; read one with wayveil.read_roads(FILE).")
    if isinstance(rules, str | os.PathLike):
        raise InputError("rules must be rules; read them with wayveil.rules.read_rules(FILE, scope, roads).")
    progress("estimating", 0.0)
    prior = public_prior(release.scope, roads)
    told = part(progress, "estimating", 0.1, 0.9)
    estimates = estimate(release, prior.features, learned=estimator == "learned", told=told)
    estimates = steered_estimates(estimates, binding_rules(rules))
    progress("estimating", 1.0)
    progress("balancing routes", 0.0)
    random = np.random.default_rng(_stream(seed, 0))
    router, trips = _balanced(estimates, prior, rules, (), random, part(progress, "balancing routes", 0.0, 0.6))
    avoided: tuple[Rule, ...] = ()
    if any(rule.closed_hours() is not None for rule in rules):
        some = route_trips(estimates, router, take_trips(trips, np.arange(min(len(trips), _TRIED_TRIPS))), random)
        avoided = crowded_closures(rules, some, estimates.departure)
    if avoided:
        estimates = steered_estimates(estimates, avoided)
        router, _ = _balanced(
            estimates, prior, rules, avoided, random, part(progress, "balancing routes", 0.6, 1.0)
        )
    progress("balancing routes", 1.0)
    return Model(estimates, prior, router, tuple(rules), avoided)


def _balanced(
    estimates: Estimates,
    prior: Prior,
    rules: Sequence[Rule],
    avoided: Sequence[Rule],
    random: np.random.Generator,
    told: Callable[[float], None],
) -> tuple[Router, Trips]:
    """Return routes that obey the rules, and the trips that they were balanced with."""
    trips = draw_trips(estimates, _BALANCE_TRIPS, random, prior.places(estimates.grid))
    told(0.2)
    return balance_routes(estimates, steered_graph(prior.graph(estimates), rules, avoided), trips, random), trips


def draw_shards(
    model: Model,
    count: int,
    seed: int | None,
    engine: Pieces | None = None,
    progress: Progress = quiet,
    first: int = 0,
) -> Iterator[Shard]:
    """Shards of the output from number `first` on; each depends on the model, its number and the seed alone."""
    sizes = shard_sizes(count)
    streams = [_stream(seed, 1 + k) for k in range(len(sizes))]
    work = [(model, size, stream) for size, stream in zip(sizes[first:], streams[first:])]
    results: Iterator[Shard]
    if engine is None:  # here, so that a shard can say how far it is
        edges = [k / len(sizes) for k in range(first, len(sizes) + 1)]
        results = (_draw(piece, part(progress, _DRAWING, *edge)) for piece, edge in zip(work, pairwise(edges)))
    else:
        results = engine.map(_draw, work)
    for k, shard in enumerate(results, first):
        progress(_DRAWING, (k + 1) / len(sizes))
        yield shard


def shard_sizes(count: int) -> list[int]:
    """Shards of about equal size, none above SHARD."""
    shards = -(-count // SHARD)
    return [count // shards + (k < count % shards) for k in range(shards)]


def _draw(piece: tuple[Model, int, np.random.SeedSequence], told: Callable[[float], None] = nobody) -> Shard:
    model, size, stream = piece
    random = np.random.default_rng(stream)
    return draw_shard(model.estimates, model.prior, model.router, model.rules, size, random, told, model.avoided)


def _stream(seed: int | None, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(number,)) if seed is not None else np.random.SeedSequence()


def diagnostics_of(shards: Sequence[Shard]) -> dict[str, Any]:
    """Loss by view, effective sample size, realised against estimated density, violations, what obeying changed."""
    size: NDArray[np.float64] = np.array([len(shard.trajectories) for shard in shards], float)
    share = size / size.sum()
    views = {name: None for shard in shards for name in shard.loss}  # single points have no loss
    return {
        "trajectories": int(size.sum()),
        "loss": {name: float(sum(s * shard.loss.get(name, 0.0) for s, shard in zip(share, shards))) for name in views},
        "effective_sample_share": float(sum(s * shard.effective_sample_share for s, shard in zip(share, shards))),
        "effective_sample_size": round(
            sum(SHARD_SETTINGS.candidates * n * shard.effective_sample_share for n, shard in zip(size.tolist(), shards))
        ),
        "realised_density_jsd": float(sum(s * shard.realised_density_jsd for s, shard in zip(share, shards))),
        "violations_before": added_counts([shard.violations_before for shard in shards]),
        "violations_after": added_counts([shard.violations_after for shard in shards]),
        "changed": {kind: sum(shard.changed[kind] for shard in shards) for kind in shards[0].changed},
        "avoided": list(shards[0].avoided),
    }
