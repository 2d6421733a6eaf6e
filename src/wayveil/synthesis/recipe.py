"""The recipe of synthesis: from a release to synthetic trajectories.

It reads the release, public maps and rules, and nothing else. The steps are those of docs/explanation/method.md, "From
noisy answers to trajectories": estimation and route balancing (`make_model`, once a run), then for each shard trips,
routes, fit, points and times, and rules (`draw_shard`). Shards are independent of each other, so a million trajectories
need no more memory than one shard.

Privacy: free (post-processing).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.divergence import jsd
from wayveil.core.html import card, extent_facts, points_svg
from wayveil.core.plots import plot_trajectories
from wayveil.core.polylines import Polylines, place
from wayveil.core.pyramid import Field
from wayveil.core.trajectories import Trajectories, concatenate
from wayveil.engine.pieces import Pieces
from wayveil.progress import Progress, part, quiet
from wayveil.release import synthesis_notes
from wayveil.rules import with_scope_bounds
from wayveil.rules.motion import motion_from_metres
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.estimate.fields import pool_estimates
from wayveil.synthesis.fit.targets import final_lengths, fit_views
from wayveil.synthesis.fit.weights import Fit, fit_weights
from wayveil.synthesis.model import Model, make_model, stream
from wayveil.synthesis.obey.replacement import obedient_tracks
from wayveil.synthesis.obey.steering import forbidden_candidates
from wayveil.synthesis.people import with_people
from wayveil.synthesis.place.points import Fixes, course_of, fit_slowness, histogram, slowness_weight, with_speeds
from wayveil.synthesis.place.track_columns import Tracks, written_degrees
from wayveil.synthesis.place.tracks import Pool, assigned_ends, fixes_of, refitted_slowness, timed_tracks
from wayveil.synthesis.request import Request
from wayveil.synthesis.routes.router import route_trips
from wayveil.synthesis.shard import (
    SETTINGS,
    Facts,
    Shard,
    count_violations,
    diagnostics_of,
    numbered_from,
    shard_sizes,
)
from wayveil.synthesis.single_points import draw_single_points, mixed_shard
from wayveil.synthesis.trips.candidates import Trips, draw_trips, timed_again
from wayveil.synthesis.trips.departures import departures
from wayveil.synthesis.trips.draw import stratified, within_groups
from wayveil.synthesis.trips.pairs import integer_trips

_DRAWING = "drawing trajectories"


@dataclass(frozen=True, eq=False)
class Synthesis:
    """Synthetic trajectories and diagnostics of their quality; the result of `wayveil.synthesize`.

    Examples
    --------
    >>> import wayveil
    >>> made = wayveil.synthesize("rides.release.json", n=100)  # doctest: +SKIP
    >>> len(made), made.to_pandas().columns  # doctest: +SKIP
    >>> wayveil.write(made, "synthetic.parquet")  # doctest: +SKIP

    Privacy
    -------
    Free (post-processing); as private as the release that it was made from.
    """

    trajectories: Trajectories
    diagnostics: dict[str, Any]
    private: bool
    notes: dict[str, str] = field(default_factory=dict)
    """Metadata about their origin, which `wayveil.write(synthesis, FILE)` writes into the file."""

    def __len__(self) -> int:
        return len(self.trajectories)

    def __repr__(self) -> str:
        promise = "differentially private" if self.private else "NOT private"
        return f"Synthesis({len(self):,} trajectories, {len(self.trajectories.lon):,} points, {promise})"

    def _repr_html_(self) -> str:
        made_of = [("epsilon", self.notes["epsilon"])] if "epsilon" in self.notes else []
        notice = "" if self.private else "Not private: the noise of its release came from a seed."
        drawing = points_svg(self.trajectories, label="Map of where the synthetic points are")
        return card("Synthetic trajectories", [*extent_facts(self.trajectories), *made_of], notice=notice,
                    drawing=drawing)  # fmt: skip

    def to_pandas(self) -> Any:
        """A pandas frame with one row per point: traj_id, lat, lon, t."""
        return self.trajectories.to_pandas()

    def to_geopandas(self, shapes: str = "lines") -> Any:
        """A GeoDataFrame in degrees: one row per trajectory, with start and end, or one row per point ("points")."""
        return self.trajectories.to_geopandas(shapes)

    def plot(self, ax: Any = None) -> Any:
        """Draw the trajectories as lines, or their density if there are many; returns the axes of matplotlib."""
        return plot_trajectories(self.trajectories, ax, title="Synthetic trajectories")


def synthesize(request: Request, engine: Pieces | None = None, progress: Progress = quiet) -> Synthesis:
    """Synthetic trajectories with place and time, fitted to the release's noisy answers.

    `engine` is where shards are drawn; by default in this process.

    Privacy: free (post-processing).
    """
    model = make_model(request, progress)
    shards = list(draw_shards(model, request, engine, progress))
    trajectories = concatenate([shard.trajectories for shard in shards])
    notes = synthesis_notes(request.release, rules=len(request.rules), roads=request.roads is not None)
    return Synthesis(trajectories, diagnostics_of([shard.facts for shard in shards]), request.release.private, notes)


def draw_shards(
    model: Model, request: Request, engine: Pieces | None = None, progress: Progress = quiet, first: int = 0
) -> Iterator[Shard]:
    """Shards of the output from number `first` on; each depends only on the model, the request and its own number.

    A shard holds all trips of its people.
    """
    sizes = shard_sizes(request.count)
    streams = [stream(request.seed, 1 + k) for k in range(len(sizes))]
    before = np.cumsum([0, *sizes])
    people: list[Any] = [None] * len(sizes)
    if request.people is not None:
        people = np.diff(np.rint(before * request.people / request.count)).tolist()
    work = [(model, *piece) for piece in list(zip(sizes, streams, people))[first:]]
    results: Iterator[Shard]
    if engine is None:  # in this process, so that a shard can report its progress
        edges = [k / len(sizes) for k in range(first, len(sizes) + 1)]
        results = (_draw(piece, part(progress, _DRAWING, *edge)) for piece, edge in zip(work, pairwise(edges)))
    else:
        results = engine.map(_draw, work)
    for k, shard in enumerate(results, first):
        progress(_DRAWING, (k + 1) / len(sizes))
        yield numbered_from(shard, int(before[k]))


def _draw(piece: tuple[Model, int, np.random.SeedSequence, float | None], progress: Progress = quiet) -> Shard:
    model, size, source, people = piece
    random = np.random.default_rng(source)
    shard = draw_shard(model, size, random, progress)
    if model.people is None:
        return shard
    scope = model.estimates.scope
    wanted = None if people is None else int(people)
    output = with_people(shard.trajectories, model.people, scope, model.rules, random, wanted, progress)
    after = count_violations(with_scope_bounds(model.rules, scope), output, scope)
    return Shard(output, replace(shard.facts, trajectories=len(output), violations_after=after))


def draw_shard(model: Model, count: int, random: np.random.Generator, progress: Progress = quiet) -> Shard:
    """Return `count` trajectories that obey the rules, with the estimated share of single-point trajectories."""
    single = round(model.estimates.one_point * count)
    if single == 0:
        return _draw_trips(model, count, random, progress)
    points = draw_single_points(model, single, random)
    if single == count:
        return points
    return mixed_shard(_draw_trips(model, count - single, random, progress), points, random)


def _draw_trips(model: Model, count: int, random: np.random.Generator, progress: Progress) -> Shard:
    """`count` trajectories of several points."""
    progress(_DRAWING, 0.0)
    pool = _draw_pool(model, count, random, progress)
    progress(_DRAWING, 0.25)
    fitted = _fit_pool(model, pool, random, progress)
    pool, estimates, fit = fitted.pool, fitted.estimates, fitted.fit
    progress(_DRAWING, 0.45)
    chosen = _resample(fit, pool.trips, count, random)

    # Points and times of the chosen trips.
    ends = assigned_ends(estimates, model.prior, pool, chosen, random)
    slowness = refitted_slowness(estimates, pool, fitted.slowness, chosen, ends, random)
    progress(_DRAWING, 0.5)
    tracks = timed_tracks(estimates, model.prior, pool, slowness, chosen, random, ends)
    density_jsd = jsd(histogram(Polylines(tracks.offsets, tracks.x_m, tracks.y_m), estimates.grid), estimates.occupancy)

    # Rules.
    def other_tracks(number: int) -> Tracks:
        others = stratified(fit.weight, number, random)
        return timed_tracks(estimates, model.prior, pool, slowness, others, random)

    obedient = obedient_tracks(
        tracks, model.rules, estimates, other_tracks, random, part(progress, _DRAWING, 0.55, 0.95)
    )
    tracks, scope = obedient.tracks, estimates.scope
    output = Trajectories(tracks.offsets, *written_degrees(tracks.x_m, tracks.y_m, scope), tracks.t_utc)
    before, all_rules = obedient.violations_before, with_scope_bounds(model.rules, scope)
    facts = Facts(
        trajectories=len(output),
        loss=fit.loss,
        effective_sample_share=fit.effective_sample_share,
        realised_density_jsd=density_jsd,
        violations_before=before,
        # If nothing was changed, the violations after are those before.
        violations_after=before if obedient.obeyed_before else count_violations(all_rules, output, scope),
        changed=obedient.changed,
        avoided=tuple(rule.name for rule in model.avoided),
    )
    return Shard(output, facts)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Candidates with their final durations, and everything that was fitted to the estimates."""

    pool: Pool
    estimates: Estimates
    """With the density pooled with that of the routes."""
    slowness: Field
    fit: Fit


def _fit_pool(model: Model, pool: Pool, random: np.random.Generator, progress: Progress) -> _Fitted:
    """Durations for the actual lengths of the routes, then the pace by place, then the weights of the candidates."""
    _, steady = _at_constant_speed(model.estimates, pool, random)
    recorded_m = final_lengths(pool.trips, pool.course, steady)
    trips = timed_again(model.estimates, pool.trips, recorded_m, random)
    pool = replace(pool, trips=trips, course=with_speeds(pool.course, recorded_m / trips.duration_s))
    fixes, steady = _at_constant_speed(model.estimates, pool, random)
    points = pool.trips.points
    estimates = _with_routes(model.estimates, histogram(steady, model.estimates.grid, points))
    progress(_DRAWING, 0.32)
    slowness = fit_slowness(pool.course, points, fixes.offsets, fixes.moving_share, estimates.occupancy, estimates.grid)
    placed = place(pool.course.lines, slowness_weight(pool.course, slowness), fixes.offsets, fixes.moving_share)
    progress(_DRAWING, 0.4)
    views = fit_views(estimates, pool.trips, pool.course, placed)
    fit = fit_weights(views, estimates.count, len(pool.trips), _forbidden(model, placed, fixes.time_share, pool))
    return _Fitted(pool, estimates, slowness, fit)


def _draw_pool(model: Model, count: int, random: np.random.Generator, progress: Progress) -> Pool:
    """Candidates: trips, their routes, their departures."""
    estimates, prior = model.estimates, model.prior
    places = prior.places(estimates.grid)
    trips = draw_trips(estimates, max(count, SETTINGS.fewest), random, places, SETTINGS.candidates)
    progress(_DRAWING, 0.05)
    lines = route_trips(estimates, model.router, trips, random)
    progress(_DRAWING, 0.15)
    lines = prior.with_offroad_visits(lines, trips.points, estimates, random)
    progress(_DRAWING, 0.2)
    return Pool(trips, course_of(lines, estimates.grid), departures(estimates, len(trips), random))


def _at_constant_speed(estimates: Estimates, pool: Pool, random: np.random.Generator) -> tuple[Fixes, Polylines]:
    """Return the times of some fixes of each candidate, and their positions at a constant speed."""
    fixes = fixes_of(estimates, np.minimum(pool.trips.points, SETTINGS.pool_points), pool.trips.interval, random)
    return fixes, place(pool.course.lines, pool.course.step_m, fixes.offsets, fixes.moving_share)


def _with_routes(estimates: Estimates, routed: Field) -> Estimates:
    """Return the estimates with the density pooled with that of the routes, driven at the estimated pace.

    Routes between origins and destinations show which of two streets is used, even if noise dominates the density.
    """
    estimated, passage = estimates.occupancy, estimates.passage
    pace = np.divide(estimated, passage, out=np.ones_like(estimated), where=passage > 0)
    timed = routed * pace
    timed = timed * (estimated.sum() / max(float(timed.sum()), 1e-300)) + SETTINGS.off_route * estimated
    return estimates.with_fields(pool_estimates(estimated, [(timed, SETTINGS.routes_weight)]))


def _forbidden(model: Model, placed: Polylines, elapsed: NDArray[np.float64], pool: Pool) -> NDArray[np.bool_] | None:
    """Return which candidates break a rule that only another route can obey; they get no weight."""
    if not model.avoided and not any(rule.binds_routes() for rule in model.rules):
        return None
    owner = ragged.owners(np.diff(placed.offsets))
    t_utc = pool.departure_utc[owner] + elapsed * pool.trips.duration_s[owner]
    motion = motion_from_metres(placed.x_m, placed.y_m, t_utc, placed.offsets, model.estimates.scope)
    return forbidden_candidates(model.rules, model.avoided, motion, pool.course.lines)


def _resample(fit: Fit, trips: Trips, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return the chosen candidates: a whole number for each pair of zones, and within a pair by weight."""
    each = integer_trips(trips.pair, fit.weight, count, random)
    pair_of_each = ragged.owners(each)
    return random.permutation(within_groups(fit.weight, trips.pair, pair_of_each, len(each), random))
