"""One shard: candidates drawn from the model, fitted, resampled, placed in space and time, refined under the rules.

Privacy: free (post-processing).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import RuleError
from wayveil.progress import Progress, nobody, quiet
from wayveil.pyramid import Field
from wayveil.rules import count as count_rules
from wayveil.rules import motion_of, with_scope_bounds
from wayveil.rules.motion import motion_from_metres
from wayveil.rules.rule import Rule, violating_trajectories
from wayveil.scope import Scope
from wayveil.synthesis.candidates import Trips, draw_trips, timed_again
from wayveil.synthesis.caps import within_caps
from wayveil.synthesis.draw import systematic, within_groups
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.fields import pool_opinions
from wayveil.synthesis.fit import Fit, fit_weights
from wayveil.synthesis.lawful import binds_routes, metres_against
from wayveil.synthesis.pairs import whole_trips
from wayveil.synthesis.physics import Tracks, take_tracks, written_degrees
from wayveil.synthesis.placing import Fixes, course_of, fit_slowness, histogram, slowness_weight
from wayveil.synthesis.polylines import Polylines, place
from wayveil.synthesis.prior import Prior
from wayveil.synthesis.realise import Pool, fixes_of, settled_ends, settled_slowness, timed_tracks
from wayveil.synthesis.refine import Refined, refine
from wayveil.synthesis.router import Router, route_trips
from wayveil.synthesis.targets import final_lengths, fit_views
from wayveil.synthesis.timing import departures
from wayveil.trajectories import Trajectories

CANDIDATES = 2
"""Candidates that are drawn for each trajectory that is wanted."""
_FEWEST = 32
_REPLACEMENTS = 5
_POOL_POINTS = 32
_FORBIDDEN_M = 30.0
"""What a route may cut off a corner of a closed area."""
_ROUTES_WEIGHT = 0.15
_OFF_ROUTE = 0.02
"""How much the density of the routes counts beside the estimated one, and how much of that it has where no route is.
Seen on the trial data, one rule for all of it (docs/method.md)."""
_ROUTED, _PLACED, _FITTED, _SETTLED, _OBEYED = 0.25, 0.4, 0.45, 0.5, 0.95
_OBEYING = {"rules": (0.55, 0.6), "refine": (0.6, 0.9), "repair": (0.9, _OBEYED)}
"""About how much of a shard's time has gone after each step; for progress only."""


@dataclass(frozen=True, eq=False)
class Shard:
    """Some of the synthetic trajectories, with what is known about them."""

    trajectories: Trajectories
    loss: dict[str, float]
    effective_sample_share: float
    realised_density_jsd: float
    """Of the points' density against the wanted one (estimated, and pooled with the routes'), in nats."""
    violations_before: dict[str, dict[str, int]]
    violations_after: dict[str, dict[str, int]]
    changed: dict[str, int]
    """How many trajectories were moved, given other times, replaced by others, or left out so that all obey."""
    avoided: tuple[str, ...] = ()
    """Areas with hours that routes go around at all hours, because too many trips pass them."""


def draw_shard(
    estimates: Estimates,
    prior: Prior,
    router: Router,
    rules: Sequence[Rule],
    count: int,
    random: np.random.Generator,
    told: Callable[[float], None] = nobody,
    avoided: Sequence[Rule] = (),
) -> Shard:
    """`count` trajectories; `told` hears the share of the work that is done.

    No trajectory breaks one of the `rules`; routes also go around what is `avoided`.
    """
    told(0.0)
    pool_of = _draw_pool(estimates, prior, router, count, random, told)
    told(_ROUTED)
    course = pool_of.course
    fixes, evenly = _evenly_seen(estimates, pool_of, random)
    recorded_m = final_lengths(pool_of.trips, course, evenly)
    pool_of = replace(pool_of, trips=timed_again(estimates, pool_of.trips, recorded_m, random))
    points = pool_of.trips.points
    fixes, evenly = _evenly_seen(estimates, pool_of, random)
    estimates = _with_routes(estimates, histogram(evenly, estimates.grid, points))
    told((_ROUTED + _PLACED) / 2)
    slowness = fit_slowness(course, points, fixes.offsets, fixes.way, estimates.occupancy, estimates.grid)
    placed = place(course.lines, slowness_weight(course, slowness), fixes.offsets, fixes.way)
    told(_PLACED)
    forbidden = _forbidden(estimates, (*rules, *avoided), placed, fixes.time, pool_of)
    fit = fit_weights(
        fit_views(estimates, pool_of.trips, pool_of.course, placed), estimates.count, len(pool_of.trips), forbidden
    )
    told(_FITTED)
    chosen = _resample(fit, pool_of.trips, count, random)
    made = _finish(estimates, prior, rules, pool_of, slowness, fit, chosen, random, told)
    return replace(made, avoided=tuple(rule.name for rule in avoided))


def _draw_pool(
    estimates: Estimates,
    prior: Prior,
    router: Router,
    count: int,
    random: np.random.Generator,
    told: Callable[[float], None],
) -> Pool:
    places = prior.places(estimates.grid)
    trips = draw_trips(estimates, max(count, _FEWEST), random, places, CANDIDATES)
    told(0.2 * _ROUTED)
    lines = route_trips(estimates, router, trips, random)
    told(0.6 * _ROUTED)
    lines = prior.as_recorded(lines, trips.points, estimates, random)
    told(0.8 * _ROUTED)
    return Pool(trips, course_of(lines, estimates.grid), departures(estimates, len(trips), random))


def _evenly_seen(estimates: Estimates, pool_of: Pool, random: np.random.Generator) -> tuple[Fixes, Polylines]:
    """When candidates are seen, and where if they went at an even pace; some points of each are enough."""
    fixes = fixes_of(estimates, np.minimum(pool_of.trips.points, _POOL_POINTS), pool_of.trips.beat, random)
    return fixes, place(pool_of.course.lines, pool_of.course.step_m, fixes.offsets, fixes.way)


def _with_routes(estimates: Estimates, routed: Field) -> Estimates:
    """The estimates with their density pooled with the one that the routes have at an even pace.

    Which of two streets people take follows from where they come from and go to, even where the noise hides it.
    """
    heard = estimates.occupancy
    routed = routed * (heard.sum() / routed.sum()) + _OFF_ROUTE * heard
    return estimates.with_fields(pool_opinions(heard, [(routed, _ROUTES_WEIGHT)]))


def _forbidden(
    estimates: Estimates, rules: Sequence[Rule], placed: Polylines, elapsed: NDArray[np.float64], pool_of: Pool
) -> NDArray[np.bool_] | None:
    """Candidates that break a rule which only another route would cure: their penalty weighs infinitely.

    Barring candidates for what other times would cure would drop the long and the fast trips (docs/method.md).
    """
    binding = [rule for rule in rules if binds_routes(rule)]
    if not binding:
        return None
    owner = np.repeat(np.arange(len(placed)), np.diff(placed.offsets))
    t_utc = pool_of.departure_utc[owner] + elapsed * pool_of.trips.duration_s[owner]
    motion = motion_from_metres(placed.x_m, placed.y_m, t_utc, placed.offsets, estimates.scope)
    by_route = metres_against(pool_of.course.lines, binding) > _FORBIDDEN_M
    return violating_trajectories(binding, motion) | by_route


def _resample(fit: Fit, trips: Trips, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """A whole number of each pair of zones, and within a pair by weight, so that the sample keeps the trips."""
    each = whole_trips(trips.pair, fit.weight, count, random)
    wanted = np.repeat(np.arange(len(each)), each)
    return random.permutation(within_groups(fit.weight, trips.pair, wanted, len(each), random))


def _finish(
    estimates: Estimates,
    prior: Prior,
    rules: Sequence[Rule],
    pool_of: Pool,
    slowness: Field,
    fit: Fit,
    chosen: NDArray[np.int64],
    random: np.random.Generator,
    told: Callable[[float], None],
) -> Shard:
    """The chosen candidates with all their points and times, made to obey; what resists is replaced by others."""
    ends = settled_ends(estimates, prior, pool_of, chosen, random)
    slowness = settled_slowness(estimates, pool_of, slowness, chosen, ends, random)
    told(_SETTLED)
    tracks = timed_tracks(estimates, prior, pool_of, slowness, chosen, random, ends)
    gap = _jsd(histogram(Polylines(tracks.offsets, tracks.x_m, tracks.y_m), estimates.grid), estimates.occupancy)
    refined = _refined(estimates, rules, tracks, random, lambda stage, done: told(_obeying(stage, done)))
    told(_OBEYED)
    before = refined.violations_before
    obeying = not any(broken["points"] for broken in before.values())
    tracks = replace(tracks, x_m=refined.x_m, y_m=refined.y_m, t_utc=refined.t_utc)
    changed = {"moved": refined.moved, "retimed": refined.retimed, "replaced": len(refined.unresolved)}
    # Where none could obey, others hardly will: one more try is enough.
    for _ in range(_REPLACEMENTS if len(refined.unresolved) < len(tracks) else 1):
        if len(refined.unresolved) == 0:
            break
        others = systematic(fit.weight, len(refined.unresolved), random)
        tracks = _without(tracks, refined.unresolved)
        fresh = timed_tracks(estimates, prior, pool_of, slowness, others, random)
        refined = _refined(estimates, rules, fresh, random)
        tracks = _joined(tracks, replace(fresh, x_m=refined.x_m, y_m=refined.y_m, t_utc=refined.t_utc))
        refined = replace(refined, unresolved=refined.unresolved + (len(tracks) - len(fresh)))
    tracks = _obedient(tracks, refined, [rule.name for rule in rules])
    changed["left_out"] = len(refined.unresolved)
    tracks = tracks if obeying else within_caps(tracks, estimates.scope)
    trajectories = Trajectories(tracks.offsets, *written_degrees(tracks.x_m, tracks.y_m, estimates.scope), tracks.t_utc)
    all_rules = with_scope_bounds(rules, estimates.scope)
    return Shard(
        trajectories=trajectories,
        loss=fit.loss,
        effective_sample_share=fit.effective_sample_share,
        realised_density_jsd=gap,
        violations_before=before,
        # Where nothing was changed, what was counted before is what goes out.
        violations_after=before if obeying else count_violations(all_rules, trajectories, estimates.scope),
        changed=changed,
    )


def _obedient(tracks: Tracks, refined: Refined, names: Sequence[str]) -> Tracks:
    """The tracks without those that nothing could make obey: no file holds a trajectory that breaks a rule."""
    if len(refined.unresolved) == 0:
        return tracks
    if len(refined.unresolved) == len(tracks):
        raise RuleError(
            f"None of {len(tracks):,} trajectories could be made to obey the rules ({', '.join(names)}): together they "
            "leave no place or no time for trips such as these."
        )
    return _without(tracks, refined.unresolved)


def count_violations(rules: Sequence[Rule], trajectories: Trajectories, scope: Scope) -> dict[str, dict[str, int]]:
    """Exact violations of what goes out, by rule."""
    return count_rules(rules, motion_of(trajectories, scope))


def _obeying(stage: str, done: float) -> float:
    """How far a shard is while its trajectories are made to obey."""
    first, last = _OBEYING.get(stage, (_OBEYED, _OBEYED))
    return first + (last - first) * done


def _refined(
    estimates: Estimates,
    rules: Sequence[Rule],
    tracks: Tracks,
    random: np.random.Generator,
    progress: Progress = quiet,
) -> Refined:
    return refine(
        tracks.offsets,
        tracks.x_m,
        tracks.y_m,
        tracks.t_utc,
        rules,
        estimates.scope,
        random=random,
        attraction=estimates.occupancy,
        grid=estimates.grid,
        progress=progress,
    )


def _without(tracks: Tracks, index: NDArray[np.int64]) -> Tracks:
    return take_tracks(tracks, np.setdiff1d(np.arange(len(tracks)), index))


def _joined(one: Tracks, other: Tracks) -> Tracks:
    offsets = np.r_[one.offsets, one.offsets[-1] + other.offsets[1:]]
    columns = (np.r_[getattr(one, name), getattr(other, name)] for name in ("x_m", "y_m", "t_utc"))
    return Tracks(offsets, *columns)


def _jsd(one: Field, other: Field) -> float:
    """Jensen–Shannon divergence in nats."""
    p, q = one.ravel() / one.sum(), other.ravel() / other.sum()
    middle = (p + q) / 2

    def half(a: NDArray[np.float64]) -> float:
        there = a > 0
        return float((a[there] * np.log(a[there] / middle[there])).sum())

    return 0.5 * half(p) + 0.5 * half(q)
