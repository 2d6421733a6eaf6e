"""One shard: candidates are drawn from the model, weighted, resampled, placed in space and time, and made to obey.

Privacy: free (post-processing).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import RuleError
from wayveil.polylines import Polylines, place
from wayveil.progress import Progress, nobody, quiet
from wayveil.pyramid import Field
from wayveil.rules import count as count_rules
from wayveil.rules import motion_of, with_scope_bounds
from wayveil.rules.counting import violating_trajectories
from wayveil.rules.motion import motion_from_metres
from wayveil.rules.rule import Rule
from wayveil.scope import Scope
from wayveil.synthesis.candidates import Trips, draw_trips, timed_again
from wayveil.synthesis.caps import within_caps
from wayveil.synthesis.draw import systematic, within_groups
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.fields import pool_opinions
from wayveil.synthesis.fit import Fit, fit_weights
from wayveil.synthesis.obey.refine import Refined, refine
from wayveil.synthesis.obey.steering import forbidden_candidates
from wayveil.synthesis.one_point import one_point_cells
from wayveil.synthesis.pairs import whole_trips
from wayveil.synthesis.place_hours import exchanged_departures
from wayveil.synthesis.placing import Fixes, course_of, fit_slowness, histogram, slowness_weight
from wayveil.synthesis.prior import Prior
from wayveil.synthesis.realise import Pool, fixes_of, settled_ends, settled_slowness, timed_tracks
from wayveil.synthesis.router import Router, route_trips
from wayveil.synthesis.targets import final_lengths, fit_views
from wayveil.synthesis.timing import departures, within_days
from wayveil.synthesis.tracks import Tracks, take_tracks, written_degrees
from wayveil.trajectories import Trajectories, concatenate, select


@dataclass(frozen=True)
class ShardSettings:
    """Settings of the stage that draws a shard."""

    candidates: int = 2
    """Candidates that are drawn for each trajectory that is wanted; the fit of the weights chooses among them."""
    fewest: int = 32
    """Trajectories that candidates are drawn for at least, so that the fit has a choice in a small shard."""
    replacements: int = 5
    """How often trajectories that still break a rule are replaced by other candidates."""
    redraws: int = 50
    """How often single points that break a rule are drawn again; a draw costs next to nothing."""
    pool_points: int = 32
    """Points of a candidate that the fit looks at, at most; more cost time and change the densities little."""
    routes_weight: float = 0.15
    """Weight of the routes' density beside the estimated density. Tuned on trial data, one value for all of it."""
    off_route: float = 0.02
    """Share of the estimated density that the routes' density keeps where no route is. Tuned on trial data likewise."""
    routed: float = 0.25
    """Share of a shard's time after the routes; this and the following ones are for progress only."""
    placed: float = 0.4
    """The same after the points are placed."""
    fitted: float = 0.45
    """The same after the fit of the weights."""
    settled: float = 0.5
    """The same after the ends are placed."""
    judged: tuple[float, float] = (0.55, 0.6)
    """The same before and after the first count of violations."""
    descended: tuple[float, float] = (0.6, 0.9)
    """The same before and after gradient descent."""
    repaired: tuple[float, float] = (0.9, 0.95)
    """The same before and after repair."""


SETTINGS = ShardSettings()


@dataclass(frozen=True, eq=False)
class Shard:
    """Some of the synthetic trajectories, with diagnostics."""

    trajectories: Trajectories
    loss: dict[str, float]
    effective_sample_share: float
    realised_density_jsd: float
    """Divergence of the points' density from the target (the estimate pooled with the routes' density), in nats."""
    violations_before: dict[str, dict[str, int]]
    violations_after: dict[str, dict[str, int]]
    changed: dict[str, int]
    """Numbers of trajectories that were moved, got other times, were replaced, or were left out, so that all obey."""
    avoided: tuple[str, ...] = ()
    """Names of rules with hours whose area routes avoid at all times, because too many trips pass it."""


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
    """Return `count` trajectories that obey the rules, the estimated share of them with a single point.

    Parameters
    ----------
    told
        Called with the share of the work that is done.
    avoided
        Rules with hours whose area routes avoid at all times.
    """
    single = round(estimates.one_point * count)
    if single == 0:
        return _draw_routed(estimates, prior, router, rules, count, random, told, avoided)
    points = replace(_draw_points(estimates, prior, rules, single, random), avoided=tuple(r.name for r in avoided))
    if single == count:
        return points
    routed = _draw_routed(estimates, prior, router, rules, count - single, random, told, avoided)
    return _mixed(routed, points, random)


def _draw_points(
    estimates: Estimates, prior: Prior, rules: Sequence[Rule], count: int, random: np.random.Generator
) -> Shard:
    """`count` trajectories of a single point; those that break a rule are drawn again, or else left out."""
    scope, all_rules = estimates.scope, with_scope_bounds(rules, estimates.scope)
    made = _single_points(estimates, prior, count, random)
    before = count_violations(all_rules, made, scope)
    broken = np.flatnonzero(violating_trajectories(all_rules, motion_of(made, scope)))
    replaced = len(broken)
    for _ in range(SETTINGS.redraws):
        if len(broken) == 0:
            break
        kept = select(made, np.setdiff1d(np.arange(len(made)), broken))
        made = concatenate([kept, _single_points(estimates, prior, len(broken), random)])
        broken = np.flatnonzero(violating_trajectories(all_rules, motion_of(made, scope)))
    if len(broken) == count:
        raise _no_room(count, [rule.name for rule in rules])
    made = select(made, np.setdiff1d(np.arange(len(made)), broken)) if len(broken) else made
    x_m, y_m = scope.to_metres(made.lon, made.lat)
    return Shard(
        trajectories=made,
        loss={},
        effective_sample_share=1 / SETTINGS.candidates,  # each is a draw of its own
        realised_density_jsd=_jsd(histogram(Polylines(made.offsets, x_m, y_m), estimates.grid), estimates.occupancy),
        violations_before=before,
        violations_after=count_violations(all_rules, made, scope),
        changed={"moved": 0, "retimed": 0, "replaced": replaced, "left_out": len(broken)},
    )


def _single_points(estimates: Estimates, prior: Prior, count: int, random: np.random.Generator) -> Trajectories:
    grid, scope = estimates.grid, estimates.scope
    cell = one_point_cells(estimates.starts, estimates.ends, count, random)
    x_m, y_m = prior.places(grid)(cell, random)
    t_utc = departures(estimates, count, random)
    if estimates.place_hours is not None:
        t_utc = exchanged_departures(estimates.place_hours, t_utc, cell, cell, scope, random)
    offsets = np.arange(count + 1)
    degrees = written_degrees(np.clip(x_m, 0, grid.width_m), np.clip(y_m, 0, grid.height_m), scope)
    return Trajectories(offsets, *degrees, within_days(offsets, np.rint(t_utc), scope))


def _mixed(routed: Shard, points: Shard, random: np.random.Generator) -> Shard:
    """Both kinds of trajectories in random order."""
    both = concatenate([routed.trajectories, points.trajectories])
    share = len(routed.trajectories) / len(both)
    return replace(
        routed,
        trajectories=select(both, random.permutation(len(both))),
        effective_sample_share=share * routed.effective_sample_share + (1 - share) * points.effective_sample_share,
        realised_density_jsd=share * routed.realised_density_jsd + (1 - share) * points.realised_density_jsd,
        violations_before=added_counts([routed.violations_before, points.violations_before]),
        violations_after=added_counts([routed.violations_after, points.violations_after]),
        changed={kind: number + points.changed[kind] for kind, number in routed.changed.items()},
    )


def added_counts(parts: Sequence[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
    """Violations of several shards together, by rule."""
    total: dict[str, dict[str, int]] = {}
    for one in parts:
        for rule, counts in one.items():
            mine = total.setdefault(rule, dict.fromkeys(counts, 0))
            for kind, number in counts.items():
                mine[kind] += number
    return total


def _draw_routed(
    estimates: Estimates,
    prior: Prior,
    router: Router,
    rules: Sequence[Rule],
    count: int,
    random: np.random.Generator,
    told: Callable[[float], None],
    avoided: Sequence[Rule],
) -> Shard:
    """`count` trajectories of several points, on routes."""
    told(0.0)
    pool_of = _draw_pool(estimates, prior, router, count, random, told)
    told(SETTINGS.routed)
    course = pool_of.course
    fixes, evenly = _evenly_seen(estimates, pool_of, random)
    recorded_m = final_lengths(pool_of.trips, course, evenly)
    pool_of = replace(pool_of, trips=timed_again(estimates, pool_of.trips, recorded_m, random))
    points = pool_of.trips.points
    fixes, evenly = _evenly_seen(estimates, pool_of, random)
    estimates = _with_routes(estimates, histogram(evenly, estimates.grid, points))
    told((SETTINGS.routed + SETTINGS.placed) / 2)
    slowness = fit_slowness(course, points, fixes.offsets, fixes.way, estimates.occupancy, estimates.grid)
    placed = place(course.lines, slowness_weight(course, slowness), fixes.offsets, fixes.way)
    told(SETTINGS.placed)
    forbidden = _forbidden(estimates, rules, avoided, placed, fixes.time, pool_of)
    fit = fit_weights(
        fit_views(estimates, pool_of.trips, pool_of.course, placed), estimates.count, len(pool_of.trips), forbidden
    )
    told(SETTINGS.fitted)
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
    trips = draw_trips(estimates, max(count, SETTINGS.fewest), random, places, SETTINGS.candidates)
    told(0.2 * SETTINGS.routed)
    lines = route_trips(estimates, router, trips, random)
    told(0.6 * SETTINGS.routed)
    lines = prior.as_recorded(lines, trips.points, estimates, random)
    told(0.8 * SETTINGS.routed)
    return Pool(trips, course_of(lines, estimates.grid), departures(estimates, len(trips), random))


def _evenly_seen(estimates: Estimates, pool_of: Pool, random: np.random.Generator) -> tuple[Fixes, Polylines]:
    """Return the times of some fixes of each candidate, and their positions at a constant speed."""
    fixes = fixes_of(estimates, np.minimum(pool_of.trips.points, SETTINGS.pool_points), pool_of.trips.beat, random)
    return fixes, place(pool_of.course.lines, pool_of.course.step_m, fixes.offsets, fixes.way)


def _with_routes(estimates: Estimates, routed: Field) -> Estimates:
    """Return the estimates with the density pooled with the density of the routes at a constant speed.

    Origins and destinations decide which of two streets people take, even where the noise hides it.
    """
    heard = estimates.occupancy
    routed = routed * (heard.sum() / routed.sum()) + SETTINGS.off_route * heard
    return estimates.with_fields(pool_opinions(heard, [(routed, SETTINGS.routes_weight)]))


def _forbidden(
    estimates: Estimates,
    rules: Sequence[Rule],
    avoided: Sequence[Rule],
    placed: Polylines,
    elapsed: NDArray[np.float64],
    pool_of: Pool,
) -> NDArray[np.bool_] | None:
    """Return which candidates break a rule that only another route can obey; they get no weight."""
    if not avoided and not any(rule.binds_routes() for rule in rules):
        return None
    owner = np.repeat(np.arange(len(placed)), np.diff(placed.offsets))
    t_utc = pool_of.departure_utc[owner] + elapsed * pool_of.trips.duration_s[owner]
    motion = motion_from_metres(placed.x_m, placed.y_m, t_utc, placed.offsets, estimates.scope)
    return forbidden_candidates(rules, avoided, motion, pool_of.course.lines)


def _resample(fit: Fit, trips: Trips, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return the chosen candidates: a whole number for each pair of zones, and within a pair by weight."""
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
    """Return the chosen candidates with all points and times, made to obey; those that cannot obey are replaced."""
    ends = settled_ends(estimates, prior, pool_of, chosen, random)
    slowness = settled_slowness(estimates, pool_of, slowness, chosen, ends, random)
    told(SETTINGS.settled)
    tracks = timed_tracks(estimates, prior, pool_of, slowness, chosen, random, ends)
    gap = _jsd(histogram(Polylines(tracks.offsets, tracks.x_m, tracks.y_m), estimates.grid), estimates.occupancy)
    refined = _refined(estimates, rules, tracks, random, lambda stage, done: told(_obeying(stage, done)))
    told(SETTINGS.repaired[1])
    before = refined.violations_before
    obeying = not any(broken["points"] for broken in before.values())
    tracks = replace(tracks, x_m=refined.x_m, y_m=refined.y_m, t_utc=refined.t_utc)
    changed = {"moved": refined.moved, "retimed": refined.retimed, "replaced": len(refined.unresolved)}
    # If none could obey, others are unlikely to: one more try is enough.
    for _ in range(SETTINGS.replacements if len(refined.unresolved) < len(tracks) else 1):
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
        # If nothing was changed, the count before is the count after.
        violations_after=before if obeying else count_violations(all_rules, trajectories, estimates.scope),
        changed=changed,
    )


def _obedient(tracks: Tracks, refined: Refined, names: Sequence[str]) -> Tracks:
    """Return the tracks without those that could not be made to obey: no output breaks a rule."""
    if len(refined.unresolved) == 0:
        return tracks
    if len(refined.unresolved) == len(tracks):
        raise _no_room(len(tracks), names)
    return _without(tracks, refined.unresolved)


def _no_room(count: int, names: Sequence[str]) -> RuleError:
    return RuleError(
        f"None of {count:,} trajectories could be made to obey the rules ({', '.join(names)}): together they leave no "
        "place or no time for such trips; remove or relax one of them."
    )


def count_violations(rules: Sequence[Rule], trajectories: Trajectories, scope: Scope) -> dict[str, dict[str, int]]:
    """Return the exact violations of the output, by rule."""
    return count_rules(rules, motion_of(trajectories, scope))


def _obeying(stage: str, done: float) -> float:
    """Return the share of a shard's time at a stage of `refine`."""
    shares = {"rules": SETTINGS.judged, "refine": SETTINGS.descended, "repair": SETTINGS.repaired}
    first, last = shares.get(stage, (SETTINGS.repaired[1], SETTINGS.repaired[1]))
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
