"""What every rule promises, in one suite."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rules_zoo import MONDAY_UTC, RULES, SCOPE, make_motion

from wayveil.rules import count, motion_from_metres, to_jax, trajectory_penalty, violating_trajectories, without_margin
from wayveil.rules.rule import Rule

NAMES = list(RULES)
MOTION = make_motion(1)


@pytest.fixture(params=NAMES)
def rule(request):
    return RULES[request.param]


def _reversed(motion):
    """The same trajectories in the opposite order."""
    counts = np.diff(motion.offsets)[::-1]
    index = np.concatenate(
        [np.arange(a, b) for a, b in zip(motion.offsets[:-1][::-1], motion.offsets[1:][::-1])]
    )
    offsets = np.r_[0, np.cumsum(counts)]
    joins = np.ones(len(index) - 1, bool)
    joins[offsets[1:-1] - 1] = False
    columns = {name: getattr(motion, name)[index] for name in ("x_m", "y_m", "t_s", "week_s")}
    return dataclasses.replace(motion, **columns, joins=joins, offsets=offsets), index


def _jax_penalty(rule, motion, moved):
    with jax.enable_x64(True):
        return np.asarray(jax.jit(lambda x, y, t: rule.penalty(motion.moved(x, y, t)))(*map(jnp.asarray, moved)))


def test_is_a_rule_that_explains_itself(rule):
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


def test_finite_gradients_everywhere(rule):
    motion = make_motion(4, 300)
    for one in (rule, without_margin(rule)):
        gradient = jax.jit(jax.grad(lambda x, y, t: one.penalty(motion.moved(x, y, t)).sum(), argnums=(0, 1, 2)))  # noqa: B023
        for part in gradient(*map(jnp.asarray, (motion.x_m, motion.y_m, motion.t_s))):
            assert bool(jnp.isfinite(part).all())


def test_finite_gradients_at_awkward_places(rule):
    """On corners and edges of the areas, on the lines, standing still, at window ends, at equal times."""
    x = np.array([1000, 1000, 4000, 2500, 1200, 1200, 0, 0, 500, 2500, 5500, 300, 300, 300, 300, 300], float)
    y = np.array([1000, 1000, 1000, 1800, 1100, 1100, 0, 0, 500, 1500, 1800, 900, 500, 1000, 990, 980], float)
    t = np.array([0, 0, 0, 0, 79_200, 21_600, 0, 1, 2, 3, 3, 4, 5, 5, 6, 7], float) + MONDAY_UTC
    motion = motion_from_metres(x, y, t, np.array([0, 6, 16]), SCOPE)
    gradient = jax.grad(lambda x, y, t: rule.penalty(motion.moved(x, y, t)).sum(), argnums=(0, 1, 2))
    for part in gradient(*map(jnp.asarray, (motion.x_m, motion.y_m, motion.t_s))):
        assert bool(jnp.isfinite(part).all())


def test_gradient_is_the_slope(rule):
    """Moving all points a little changes the penalty by the gradient's forecast, almost everywhere."""
    motion = make_motion(5, 100, jitter_m=1.0)  # without standing still, where a length has a kink
    rng = np.random.default_rng(0)
    dx, dy = rng.normal(size=(2, len(motion.x_m))) * 1e-4
    with jax.enable_x64(True):
        total = jax.jit(lambda x, y: trajectory_penalty(rule, motion.moved(x, y)))
        at = (jnp.asarray(motion.x_m), jnp.asarray(motion.y_m))
        _, forecast = jax.jvp(total, at, (jnp.asarray(dx), jnp.asarray(dy)))
        change = total(at[0] + dx, at[1] + dy) - total(*at)
    close = np.isclose(np.asarray(change), np.asarray(forecast), rtol=1e-2, atol=1e-6)
    assert close.mean() > 0.98


def test_order_of_trajectories_does_not_matter(rule):
    turned, index = _reversed(MOTION)
    np.testing.assert_array_equal(rule.violations(turned), rule.violations(MOTION)[index])
    np.testing.assert_allclose(rule.penalty(turned), rule.penalty(MOTION)[index], rtol=1e-9, atol=1e-9)


def test_numpy_equals_jax(rule):
    expected = rule.penalty(MOTION)
    single = 1e-3 if rule.name == "custom" else 1e-6  # the user's function computes as jax is set
    got = _jax_penalty(rule, MOTION, (MOTION.x_m, MOTION.y_m, MOTION.t_s))
    np.testing.assert_allclose(got, expected, atol=single)
    # Single precision, as a descent on a GPU runs: a centimetre or so.
    motion = to_jax(MOTION)
    single_precision = np.asarray(jax.jit(rule.penalty)(motion))
    assert np.mean(np.abs(single_precision - expected) < 0.1) > 0.999


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


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("max duration", "map one-ways")])
def test_descent_on_the_penalty_ends_in_zero_violations(name):
    import optax

    rule, motion = RULES[name], make_motion(6, 60, jitter_m=1.0)
    free = dataclasses.replace(motion, t_s=np.arange(len(motion.t_s)) * 40.0)  # no equal times: those stay too fast
    slow = optax.adam(10.0)

    def step(_, state):
        xy, memory = state
        gradient = jax.grad(lambda xy: rule.penalty(free.moved(xy[0], xy[1])).sum())(xy)
        update, memory = slow.update(gradient, memory)
        return xy + update, memory

    xy = jnp.stack([jnp.asarray(free.x_m), jnp.asarray(free.y_m)])
    xy, _ = jax.jit(lambda xy: jax.lax.fori_loop(0, 800, step, (xy, slow.init(xy))))(xy)
    before, after = (rule.violations(free.moved(*np.asarray(at, float))).sum() for at in ((free.x_m, free.y_m), xy))
    assert before > 0 and after == 0
