"""One conformance suite for all rules: penalty, violations and hooks."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rules_zoo import MONDAY_UTC, RULES, SCOPE, make_motion

from wayveil.rules import count, module_of, motion_from_metres, to_jax, violating_trajectories
from wayveil.rules.motion import sum_by_trajectory
from wayveil.rules.rule import Rule

NAMES = list(RULES)
COLUMNS = ("x_m", "y_m", "t_s")
MOTION = make_motion(1)


def without_margin(rule):
    """The same rule with a penalty that is zero exactly where there is no violation."""
    margins = [field.name for field in dataclasses.fields(rule) if field.name.startswith("margin")]
    return dataclasses.replace(rule, **dict.fromkeys(margins, 0.0))


def trajectory_penalty(rule, motion):
    """The sum of the penalty over the points of each trajectory."""
    return sum_by_trajectory(rule.penalty(motion), motion, module_of(motion))


@pytest.fixture(params=NAMES)
def rule(request):
    return RULES[request.param]


def _reversed(motion):
    """The same trajectories in the opposite order."""
    counts = np.diff(motion.offsets)[::-1]
    index = np.concatenate([np.arange(a, b) for a, b in zip(motion.offsets[:-1][::-1], motion.offsets[1:][::-1])])
    offsets = np.r_[0, np.cumsum(counts)]
    joins = np.ones(len(index) - 1, bool)
    joins[offsets[1:-1] - 1] = False
    columns = {name: getattr(motion, name)[index] for name in ("x_m", "y_m", "t_s", "week_s", "ground")}
    return dataclasses.replace(motion, **columns, joins=joins, offsets=offsets), index


def _awkward():
    """On corners and edges of the areas, on the lines, standing still, at window ends, at equal times; then others."""
    x = np.array([1000, 1000, 4000, 2500, 1200, 1200, 0, 0, 500, 2500, 5500, 300, 300, 300, 300, 300], float)
    y = np.array([1000, 1000, 1000, 1800, 1100, 1100, 0, 0, 500, 1500, 1800, 900, 500, 1000, 990, 980], float)
    t = np.array([0, 0, 0, 0, 79_200, 21_600, 0, 1, 2, 3, 3, 4, 5, 5, 6, 7], float) + MONDAY_UTC
    return motion_from_metres(x, y, t, np.array([0, 6, 16]), SCOPE)


@functools.cache
def _in_jax(name, margin):
    """(motion, penalty, gradients) in double precision, compiled once for several tests."""
    rule = RULES[name] if margin else without_margin(RULES[name])
    parts = [make_motion(4, 150), make_motion(5, 100, jitter_m=1.0), _awkward()]
    xyt = [np.concatenate([getattr(part, column) for part in parts]) for column in ("x_m", "y_m", "t_s")]
    week_s = np.concatenate([part.week_s for part in parts])
    offsets = np.concatenate([[0], *(part.offsets[1:] + shift for part, shift in
                                     zip(parts, np.cumsum([0] + [len(part.x_m) for part in parts])))])  # fmt: skip
    motion = dataclasses.replace(motion_from_metres(*xyt, offsets, SCOPE), week_s=week_s)

    def total(x, y, t):
        penalty = rule.penalty(motion.moved(x, y, t))
        return penalty.sum(), penalty

    with jax.enable_x64(True):
        compute = jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2), has_aux=True))
        (_, penalty), gradients = compute(*(jnp.asarray(getattr(motion, c), jnp.float64) for c in COLUMNS))
    return motion, np.asarray(penalty), [np.asarray(part) for part in gradients]


def test_each_rule_has_a_name_and_a_description(rule):
    assert isinstance(rule, Rule)
    assert rule.name and rule.describe().endswith(".")


@pytest.mark.parametrize("seed", [2, 3])
def test_zero_penalty_exactly_where_no_violation(rule, seed):
    motion = make_motion(seed, 600)
    broken = rule.violations(motion)
    penalty = without_margin(rule).penalty(motion)
    assert broken.dtype == bool and broken.any() and not broken.all()
    np.testing.assert_array_equal(penalty > 0, broken)


def test_margin_only_widens(rule):
    exact, wide = without_margin(rule).penalty(MOTION), rule.penalty(MOTION)
    assert (wide >= exact).all() and (exact >= 0).all()


@pytest.mark.parametrize(("name", "margin"), [*((name, True) for name in NAMES), ("closed", False)])
def test_finite_gradients_everywhere(name, margin):
    _, penalty, gradients = _in_jax(name, margin)
    assert np.isfinite(penalty).all()
    assert all(np.isfinite(part).all() for part in gradients)


# Not for a rule made of a user's function, whose precision is up to the user.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "custom"])
def test_gradient_is_the_slope(name):
    """Moving every point a little changes the penalty by the gradient's forecast, but for kinks and standing still."""
    motion, _, gradients = _in_jax(name, True)
    rule, rng = RULES[name], np.random.default_rng(0)
    step = rng.normal(size=(3, len(motion.x_m))) * 1e-4
    before, after = (
        trajectory_penalty(rule, motion.moved(*(getattr(motion, c) + sign * s for c, s in zip(COLUMNS, step))))
        for sign in (-1, 1)
    )
    forecast = np.bincount(motion.owner, weights=sum(2 * s * part for s, part in zip(step, gradients)))
    moving = slice(150, 250)  # the jittered ones
    assert np.isclose(after - before, forecast, rtol=1e-2, atol=1e-6)[moving].mean() > 0.97


def test_order_of_trajectories_does_not_matter(rule):
    turned, index = _reversed(MOTION)
    np.testing.assert_array_equal(rule.violations(turned), rule.violations(MOTION)[index])
    np.testing.assert_allclose(rule.penalty(turned), rule.penalty(MOTION)[index], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_equals_jax(name):
    motion, penalty, _ = _in_jax(name, True)
    expected = RULES[name].penalty(motion)
    # numpy's call of a custom function computes in the precision that jax is set to.
    np.testing.assert_allclose(penalty, expected, atol=1e-2 if name == "custom" else 1e-6)


@pytest.mark.parametrize("name", ["closed at night", "min speed"])
def test_single_precision_is_enough(name):
    """As a descent on a GPU runs it: a motion of jax arrays as an argument of a jitted function."""
    expected = RULES[name].penalty(MOTION)
    got = np.asarray(jax.jit(RULES[name].penalty)(to_jax(MOTION)))
    assert got.dtype == np.float32 and np.mean(np.abs(got - expected) < 0.1) > 0.999


def test_one_point_and_no_point(rule):
    one = motion_from_metres([100.0], [100.0], [1.7e9], [0, 1], SCOPE)
    none = motion_from_metres([], [], [], [0], SCOPE)
    assert rule.penalty(one).shape == rule.violations(one).shape == (1,)
    assert rule.penalty(none).shape == rule.violations(none).shape == (0,)


def test_count_agrees_with_violations():
    rules = tuple(RULES.values())
    counted = count(rules, MOTION)
    assert len(counted) == len(rules)
    for rule, entry in zip(rules, counted.values()):
        broken = rule.violations(MOTION)
        by_trajectory = [broken[a:b].any() for a, b in zip(MOTION.offsets[:-1], MOTION.offsets[1:])]
        assert entry == {"points": broken.sum(), "trajectories": sum(by_trajectory)}
        totals = trajectory_penalty(without_margin(rule), MOTION)
        np.testing.assert_array_equal(totals > 0, by_trajectory)
        np.testing.assert_array_equal(violating_trajectories([rule], MOTION), by_trajectory)


@pytest.mark.parametrize("name", ["closed at night", "speed everywhere"])
def test_descent_on_the_penalty_ends_in_zero_violations(name):
    import optax

    rule, motion = RULES[name], make_motion(6, 300, jitter_m=1.0)
    motion = dataclasses.replace(motion, t_s=np.arange(len(motion.t_s)) * 20.0)  # no equal times: those stay too fast
    adam = optax.adam(2.0)

    def step(_, state):
        xy, memory = state
        gradient = jax.grad(lambda xy: rule.penalty(motion.moved(xy[0], xy[1])).sum())(xy)
        update, memory = adam.update(gradient, memory)
        return xy + update, memory

    xy = jnp.stack([jnp.asarray(motion.x_m), jnp.asarray(motion.y_m)])
    xy, _ = jax.jit(lambda xy: jax.lax.fori_loop(0, 600, step, (xy, adam.init(xy))))(xy)
    assert rule.violations(motion).sum() > 0
    assert rule.violations(motion.moved(*np.asarray(xy, float))).sum() == 0


# hooks ---------------------------------------------------------------------------------------------------------------


def test_the_parts_of_a_penalty_multiply_to_it(rule):
    """penalty = time_factor · place_penalty, whatever a rule prepares; gradient descent relies on it."""
    motion = make_motion(7, 400)
    factor = rule.time_factor(motion.week_s)
    prepared = tuple(jnp.asarray(column) for column in rule.prepare(motion))
    compiled = jax.jit(lambda motion, prepared: rule.place_penalty(motion, prepared))  # op by op takes seconds
    place = np.asarray(compiled(to_jax(motion), prepared), float)
    whole = place * (1.0 if factor is None else factor)
    expected = np.asarray(rule.penalty(motion), float)
    assert np.mean(np.abs(whole - expected) < 0.05) > 0.99 and (expected > 0).any()


def test_the_stricter_rule_implies_the_rule(rule):
    assert not (rule.violations(MOTION) & ~rule.stricter().violations(MOTION)).any()


def test_a_rule_that_reads_positions_only_ignores_times(rule):
    if rule.reads_positions_only():
        blind = dataclasses.replace(MOTION, t_s=None, week_s=None, joins=None, ground=None)
        np.testing.assert_array_equal(rule.violations(blind), rule.violations(MOTION))


CURED = [name for name in NAMES if RULES[name].new_times_suffice()]


def test_legal_times_are_enough_for_rules_about_times():
    from wayveil.synthesis.obey.times import legal_times
    from wayveil.synthesis.place.track_columns import Tracks, motion_of_tracks

    assert CURED == ["speed everywhere", "speed in area", "speed by class", "min speed", "max duration"]
    rng = np.random.default_rng(0)
    xy = rng.uniform((500, 500), (5500, 4500), (60, 1, 2)) + 70.0 * np.cumsum(rng.choice([-1.0, 1.0], (60, 20, 2)), 1)
    step_s = np.where(np.arange(60) % 2, 3.0, 90.0)[:, None]  # too fast, and too slow
    t_utc = (MONDAY_UTC + step_s * np.arange(20)).ravel()
    tracks = Tracks(np.arange(61) * 20, xy[..., 0].ravel(), xy[..., 1].ravel(), t_utc)
    for rule in (RULES[name] for name in CURED):
        assert rule.violations(motion_of_tracks(tracks, SCOPE)).any()
        cured = dataclasses.replace(tracks, t_utc=legal_times(tracks, [rule], SCOPE))
        assert not rule.violations(motion_of_tracks(cured, SCOPE)).any()


def test_metres_against_an_area_are_those_of_its_points():
    """A rule with an area counts metres of lines where points every metre would break it."""
    from wayveil.core.polylines import Polylines

    x = np.arange(0.0, 6000.0)
    for name in ("closed", "stay within", "closed at night"):
        rule = RULES[name]
        line = Polylines(np.array([0, 2]), np.array([0.0, 5999.0]), np.array([2000.0, 2000.0]))
        area = rule.closed_area() or rule.stay_area()
        inside = area.inside(x, np.full(len(x), 2000.0)).sum()
        expected = inside if rule.closed_area() else len(x) - inside
        assert rule.metres_against(line)[0] == pytest.approx(expected, abs=5)
        assert rule.timed_points(line).shape == (2,)
