"""Trajectories of a single point: drawn where trips start and end, and mixed with trips of several points.

Privacy: free (post-processing).
"""

from dataclasses import replace

import numpy as np

from wayveil.core.divergence import jsd
from wayveil.core.polylines import Polylines
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.rules import motion_of, with_scope_bounds
from wayveil.rules.counting import violating_trajectories
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.model import Model
from wayveil.synthesis.obey.replacement import no_room_error
from wayveil.synthesis.place.points import histogram
from wayveil.synthesis.place.track_columns import written_degrees
from wayveil.synthesis.routes.prior import Prior
from wayveil.synthesis.shard import SETTINGS, Facts, Shard, added_counts, count_violations
from wayveil.synthesis.trips.departures import departures, within_days
from wayveil.synthesis.trips.hours_by_place import departures_by_place
from wayveil.synthesis.trips.one_point import one_point_cells


def draw_single_points(model: Model, count: int, random: np.random.Generator) -> Shard:
    """`count` trajectories of a single point; those that break a rule are drawn again, and finally left out."""
    estimates, prior, scope = model.estimates, model.prior, model.estimates.scope
    all_rules = with_scope_bounds(model.rules, scope)
    drawn = _single_points(estimates, prior, count, random)
    before = count_violations(all_rules, drawn, scope)
    broken = np.flatnonzero(violating_trajectories(all_rules, motion_of(drawn, scope)))
    replaced = len(broken)
    for _ in range(SETTINGS.redraws):
        if len(broken) == 0:
            break
        kept = select(drawn, np.setdiff1d(np.arange(len(drawn)), broken))
        drawn = concatenate([kept, _single_points(estimates, prior, len(broken), random)])
        broken = np.flatnonzero(violating_trajectories(all_rules, motion_of(drawn, scope)))
    if len(broken) == count:
        raise no_room_error(count, [rule.name for rule in model.rules])
    drawn = select(drawn, np.setdiff1d(np.arange(len(drawn)), broken)) if len(broken) else drawn
    x_m, y_m = scope.to_metres(drawn.lon, drawn.lat)
    facts = Facts(
        trajectories=len(drawn),
        loss={},
        effective_sample_share=1 / SETTINGS.candidates,  # all points are independent draws with equal weight
        realised_density_jsd=jsd(histogram(Polylines(drawn.offsets, x_m, y_m), estimates.grid), estimates.occupancy),
        violations_before=before,
        violations_after=count_violations(all_rules, drawn, scope),
        changed={"moved": 0, "retimed": 0, "replaced": replaced, "left_out": len(broken)},
        avoided=tuple(rule.name for rule in model.avoided),
    )
    return Shard(drawn, facts)


def _single_points(estimates: Estimates, prior: Prior, count: int, random: np.random.Generator) -> Trajectories:
    grid, scope = estimates.grid, estimates.scope
    cell = one_point_cells(estimates.starts, estimates.ends, count, random)
    x_m, y_m = prior.places(grid)(cell, random)
    t_utc = departures(estimates, count, random)
    if estimates.place_hours is not None:
        t_utc = departures_by_place(estimates.place_hours, t_utc, cell, cell, scope, random)
    offsets = np.arange(count + 1)
    degrees = written_degrees(np.clip(x_m, 0, grid.width_m), np.clip(y_m, 0, grid.height_m), scope)
    return Trajectories(offsets, *degrees, within_days(offsets, np.rint(t_utc), scope))


def mixed_shard(routed: Shard, points: Shard, random: np.random.Generator) -> Shard:
    """Both kinds of trajectories in random order."""
    both = concatenate([routed.trajectories, points.trajectories])
    share = len(routed.trajectories) / len(both)
    one, other = routed.facts, points.facts
    facts = replace(
        one,
        trajectories=len(both),
        effective_sample_share=share * one.effective_sample_share + (1 - share) * other.effective_sample_share,
        realised_density_jsd=share * one.realised_density_jsd + (1 - share) * other.realised_density_jsd,
        violations_before=added_counts([one.violations_before, other.violations_before]),
        violations_after=added_counts([one.violations_after, other.violations_after]),
        changed={kind: number + other.changed[kind] for kind, number in one.changed.items()},
    )
    return Shard(select(both, random.permutation(len(both))), facts)
