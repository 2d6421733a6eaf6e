"""Rules that a user writes as subclasses of Rule: synthesis calls their hooks without knowing the classes."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import shapely

import wayveil
from wayveil.core.grid import base_grid
from wayveil.core.polylines import Polylines, lengths
from wayveil.core.scope import Scope
from wayveil.errors import InputError, RuleError
from wayveil.rules import (
    Area,
    Hours,
    Motion,
    Rule,
    area_in_metres,
    at_last_point,
    at_later_point,
    count,
    ground_lengths,
    hours,
    metres_inside,
    module_of,
    motion_of,
)
from wayveil.synthesis.obey.refine import refine
from wayveil.synthesis.obey.steering import steered_graph
from wayveil.synthesis.place.track_columns import Tracks
from wayveil.synthesis.routes.graph import grid_graph


@dataclass(frozen=True)
class NoEntry(Rule):
    """Nobody may enter a disc, and routes avoid it: the route-graph hooks."""

    x_m: float
    y_m: float
    radius_m: float
    name: str = "no entry"

    def _depth_m(self, motion: Motion):
        xp = module_of(motion)
        return self.radius_m - xp.sqrt((motion.x_m - self.x_m) ** 2 + (motion.y_m - self.y_m) ** 2 + 1e-6)

    def penalty(self, motion):
        return module_of(motion).maximum(self._depth_m(motion) + 1.0, 0.0)

    def violations(self, motion):
        return self._depth_m(motion) > 0

    def binds_routes(self):
        return True

    def closed_area(self) -> Area:
        return area_in_metres(shapely.Point(self.x_m, self.y_m).buffer(1.01 * self.radius_m))


@dataclass(frozen=True)
class Toll(Rule):
    """Routes avoid an area by cost; nobody breaks the rule."""

    area: Area
    factor: float
    name: str = "toll"

    def penalty(self, motion):
        return module_of(motion).zeros_like(motion.x_m)

    def violations(self, motion):
        return np.zeros(len(motion.x_m), bool)

    def cost_factor(self, lines: Polylines):
        return 1 + (self.factor - 1) * metres_inside(lines, self.area) / lengths(lines)


@dataclass(frozen=True)
class Curfew(Rule):
    """No trip starts during the hours: the departure hooks, without any area."""

    closed: Hours
    name: str = "curfew"

    def _starts(self, offsets, points):
        first = np.zeros(points, bool)
        first[np.asarray(offsets)[:-1]] = True
        return first

    def penalty(self, motion):
        xp = module_of(motion)
        depth_s = xp.maximum(self.closed.depth_s(motion.week_s, xp), 0.0)
        return xp.where(self._starts(motion.offsets, len(motion.x_m)), depth_s, 0.0)

    def violations(self, motion):
        return self.penalty(motion) > 0

    def new_times_suffice(self):
        return True

    def closed_hours(self) -> Hours:
        return self.closed

    def timed_points(self, lines: Polylines):
        return self._starts(lines.offsets, len(lines.x_m))


@dataclass(frozen=True)
class Patrol(Rule):
    """Steps take at least a second per 8 m, and a trip at most 60 s and a second per metre: the time hooks."""

    fastest_mps: float = 8.0
    name: str = "patrol"

    def penalty(self, motion):
        xp = module_of(motion)
        length_m, dt = ground_lengths(motion, xp)
        fast = at_later_point(xp.maximum(length_m - self.fastest_mps * dt - 1e-3, 0.0), motion, xp)
        total_m, total_s = (np.add.reduceat(np.r_[0.0, each], motion.offsets[:-1]) for each in (length_m, dt))
        return fast + at_last_point(xp.maximum(total_s - 60.0 - total_m, 0.0), motion, xp)

    def violations(self, motion):
        return self.penalty(motion) > 0

    def new_times_suffice(self):
        return True

    def least_step_s(self, motion):
        return np.r_[0.0, ground_lengths(motion, np)[0]] / self.fastest_mps

    def longest_duration_s(self, length_m):
        return 60.0 + length_m


@dataclass(frozen=True)
class NoBand(Rule):
    """Nobody within 2 km of a line from north to south; the penalty has no gradient that would help."""

    x_m: float
    half_m: float = 2_000.0
    repairs: bool = True
    name: str = "band"
    note: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """An array, so that the generated __hash__ of the class fails: nothing may hash or compare rules."""

    def penalty(self, motion):
        xp = module_of(motion)
        return xp.where(abs(motion.x_m - self.x_m) < self.half_m, 1.0, 0.0)

    def violations(self, motion):
        return np.abs(motion.x_m - self.x_m) < self.half_m

    def legal_positions(self, motion):
        if not self.repairs:
            return super().legal_positions(motion)
        side = np.where(motion.x_m < self.x_m, -1.0, 1.0)
        return np.where(self.violations(motion), self.x_m + side * (self.half_m + 0.5), motion.x_m), motion.y_m


def made(release, rules, **options):
    return wayveil.synthesize(release, rules=rules, n=250, seed=2, estimator="bayes", **options)


def broken(rules, trajectories, scope):
    return sum(each["points"] for each in count(rules, motion_of(trajectories, scope)).values())


def test_routes_go_around_a_disc_that_a_user_closed(small_release, small_city):
    scope = small_release.scope
    rule = NoEntry(scope.width_m / 2, scope.height_m / 2, 350.0)
    free = made(small_release, None, roads=small_city.roadmap).trajectories
    found = made(small_release, [rule], roads=small_city.roadmap)
    inside = broken([rule], free, scope)
    assert inside > 50 and broken([rule], found.trajectories, scope) == 0
    assert found.diagnostics["violations_after"]["no entry"]["points"] == 0

    def across(trajectories):
        lines = Polylines(trajectories.offsets, *scope.to_metres(trajectories.lon, trajectories.lat))
        return int((rule.metres_against(lines) > 50).sum())

    # Only the route hooks keep trips from jumping across with no point inside.
    assert across(found.trajectories) < 0.2 * across(free)
    assert found.diagnostics["changed"]["moved"] < 0.1 * inside, "routes avoid the disc, so few points move"


def test_routes_avoid_a_toll_by_its_cost(small_release):
    scope = small_release.scope
    area = area_in_metres(shapely.box(0.4 * scope.width_m, 0, 0.6 * scope.width_m, 0.8 * scope.height_m))
    free, rule = made(small_release, None), Toll(area, 8.0)
    found = made(small_release, rule)
    assert broken([rule], found.trajectories, scope) == 0

    def inside(trajectories):
        return area.inside(*scope.to_metres(trajectories.lon, trajectories.lat)).mean()

    assert inside(found.trajectories) < inside(free.trajectories)
    grid = base_grid(scope)
    graph = grid_graph(grid, np.ones((grid.rows, grid.columns)))
    ratio = steered_graph(graph, [rule]).cost / graph.cost
    assert ratio.min() == 1 and ratio.max() == pytest.approx(8) and 0.05 < (ratio > 1).mean() < 0.5


def test_trips_depart_outside_a_curfew_that_a_user_wrote(small_release):
    scope, rule = small_release.scope, Curfew(hours("07:00", "10:00"))
    free, found = made(small_release, None), made(small_release, [rule])
    assert broken([rule], free.trajectories, scope) > 10 and broken([rule], found.trajectories, scope) == 0
    assert found.diagnostics["changed"]["retimed"] > 10 and found.diagnostics["changed"]["moved"] == 0
    assert np.array_equal(free.trajectories.lon, found.trajectories.lon), "positions stay"


def test_steps_and_trips_keep_user_defined_times(small_release):
    scope, rule = small_release.scope, Patrol()
    free, found = made(small_release, None), made(small_release, [rule])
    assert broken([rule], free.trajectories, scope) > 10 and broken([rule], found.trajectories, scope) == 0
    assert found.diagnostics["changed"]["retimed"] > 10 and found.diagnostics["changed"]["moved"] == 0


SCOPE = Scope.model_validate(
    {"name": "test", "south": 10.0, "west": 20.0, "north": 10.05, "east": 20.06, "timezone": "UTC"}
)


def crossing(points=30):
    """Tracks from west to east, with a point every 100 m."""
    offsets = np.arange(5) * points
    x = np.tile(1500 + 100.0 * np.arange(points), 4)
    return offsets, x, np.repeat([500.0, 1500.0, 2500.0, 3500.0], points), 1.7e9 + 20.0 * np.tile(np.arange(points), 4)


@pytest.mark.parametrize("repairs", [True, False])
def test_a_rule_moves_its_points_to_legal_positions(repairs):
    rule = NoBand(3000.0, repairs=repairs)
    result = refine(Tracks(*crossing()), [rule], SCOPE, random=np.random.default_rng(0))
    assert result.violations_before["band"]["trajectories"] == 4
    assert len(result.unresolved) == (0 if repairs else 4)


def test_a_penalty_that_jax_cannot_compute_is_named():
    class Numpy(NoBand):
        def penalty(self, motion):
            return np.maximum(self.half_m - np.abs(np.asarray(motion.x_m) - self.x_m), 0.0)

    with pytest.raises(RuleError, match=r"Rule 'band': its penalty fails with jax arrays .*module_of\(motion\)"):
        refine(Tracks(*crossing()), [Numpy(3000.0)], SCOPE, random=np.random.default_rng(0))


def test_rules_of_the_wrong_shape_or_kind_are_refused(small_release):
    class Short(NoBand):
        def penalty(self, motion):
            return np.zeros(1)

    class Numbers(NoBand):
        def violations(self, motion):
            return np.zeros(len(motion.x_m))

    with pytest.raises(RuleError, match="penalty must return one value for each point"):
        made(small_release, [Short(0.0)])
    with pytest.raises(RuleError, match="violations must return booleans"):
        made(small_release, [Numbers(0.0)])
    for wrong in ([NoBand], [object()], 3):
        with pytest.raises(InputError, match=r"wayveil\.rules\.Rule objects"):
            made(small_release, wrong)
    with pytest.raises(TypeError, match="abstract"):
        Rule()


def test_areas_of_own_rules_are_drawn_and_checked_for_contradictions():
    checked = wayveil.rules.check([NoEntry(1000.0, 1000.0, 200.0), Curfew(hours("07:00", "10:00"))], SCOPE)
    assert "2. curfew: A rule that is defined in Python (Curfew)." in str(checked) and "time zone UTC" in str(checked)
    with pytest.raises(RuleError, match="closed areas cover everything"):
        wayveil.rules.check(NoEntry(3000.0, 2500.0, 9000.0), SCOPE)
