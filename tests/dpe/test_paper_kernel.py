"""The blocked kernel against autodiff of the plain formula, and what each precision costs."""

from functools import cache

import numpy as np
import pytest

from wayveil.dpe.kernel import Plan, compiled, default_plan, metric_sums, x64
from wayveil.dpe.losses import LOSSES, loss_and_slopes
from wayveil.dpe.memory import check_memory, needed_bytes
from wayveil.errors import InputError

pytestmark = pytest.mark.usefixtures("optimised")
M, DIM = 90, 12


def loss_and_gradient(points, targets, loss, plan):
    """L(q - targets), dL/dT, and the residuals q - targets."""
    kind = np.float64 if plan.precision == "float64" else np.float32
    with x64(plan):
        value, gradient, residuals = compiled(*points.shape, loss, plan)(points.astype(kind), targets.astype(kind))
        return float(value), np.asarray(gradient), np.asarray(residuals)


def data(seed: int = 0, m: int = M, dim: int = DIM) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, dim)) * 900.0 + 40_000.0, m * rng.uniform(2_000.0, 6_000.0, size=m)


@cache
def plain(loss: str) -> tuple[float, np.ndarray]:
    """Every pair of `data()` at once, in float64, gradient by jax."""
    import jax
    import jax.numpy as jnp

    from wayveil.dpe.kernel import x64

    points, targets = data()

    def function(points):
        away = points[:, None] - points[None]
        square = jnp.sum(away * away, axis=-1)
        distance = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
        return loss_and_slopes(distance.sum(axis=1) - targets, loss)[0]

    with x64(Plan(1, "float64")):
        value, gradient = jax.jit(jax.value_and_grad(function))(jnp.asarray(points))
        return float(value), np.asarray(gradient)


def gap(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


@pytest.mark.parametrize(("loss", "block"), [*((loss, 30) for loss in LOSSES), ("absolute", 7), ("absolute", 200)])
def test_gradient_equals_autodiff(loss: str, block: int) -> None:
    points, targets = data()
    value, gradient = plain(loss)
    found, blocked, _ = loss_and_gradient(points, targets, loss, Plan(block, "float64"))
    assert found == pytest.approx(value, rel=1e-12)
    assert gap(blocked, gradient) < 1e-12


def test_what_each_precision_keeps() -> None:
    """Relative errors of sums and gradient against every pair in float64; each is also coarser than the one before."""
    points, targets = data(1, 150, 30)
    away = points[:, None] - points[None]
    distance = np.linalg.norm(away, axis=-1)
    residuals = distance.sum(axis=1) - targets
    slopes = 2.0 * residuals / 150.0**3
    weights = (slopes[:, None] + slopes) / np.where(distance > 0, distance, np.inf)
    gradient = np.einsum("ij,ijk->ik", weights, away)
    before = 0.0
    for precision, sums_within, gradient_within in (
        ("float32", 1e-6, 1e-5), ("tf32", 1e-4, 1e-3), ("bf16", 1e-3, 8e-3)
    ):  # fmt: skip
        _, found, left = loss_and_gradient(points, targets, "mean-square", Plan(50, precision))
        assert gap(left + targets, residuals + targets) < sums_within
        assert 2 * before < gap(found, gradient) < gradient_within
        before = gap(found, gradient)


def test_three_half_precision_products_give_float32() -> None:
    """What a GPU does for float32, here with exact products: as near to the true product as float32 itself."""
    import jax.numpy as jnp

    from wayveil.dpe.kernel import _halves, _in_halves

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 40, 300)).astype(np.float32) * 900.0
    for axes, left, right in (((1, 1), a, b), ((1, 0), a, b.T), ((0, 0), a.T, b.T)):

        def exact(x, y, axes=axes):
            return np.tensordot(np.asarray(x, np.float64), np.asarray(y, np.float64), axes=([axes[0]], [axes[1]]))

        found = _in_halves(jnp.asarray(left), jnp.asarray(right), axes, exact)
        true = np.tensordot(a.astype(np.float64), b.astype(np.float64), axes=([1], [1]))
        size = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
        assert (np.abs(np.asarray(found) - true) / size).max() < 2.0**-22
        once = exact(*(np.asarray(_halves(jnp.asarray(x))[0]) for x in (left, right)))
        assert (np.abs(once - true) / size).max() > 2.0**-17  # one product of rounded numbers is far worse


def test_rounding_to_bf16_cannot_be_optimised_away() -> None:
    import jax
    import jax.numpy as jnp

    from wayveil.dpe.kernel import _prepare, _rounded

    plan, points = Plan(5, "bf16"), jnp.asarray(data()[0][:15], jnp.float32)
    assert "reduce_precision" in jax.jit(lambda x: _rounded(x, plan)).lower(points).as_text()
    strips = jax.jit(lambda x: (lambda s: (s.operand, s.norms))(_prepare(x, plan)))(points)
    operand, norms = (np.asarray(part, np.float64)[:15] for part in strips)
    assert norms == pytest.approx((operand**2).sum(axis=1), rel=1e-6)
    assert (np.asarray(jnp.asarray(operand, jnp.bfloat16), np.float64) == operand).all()


def test_equal_points_have_distance_zero_and_finite_gradients() -> None:
    points = np.repeat(data()[0][:3], 4, axis=0)
    for precision in ("float32", "bf16"):
        _, gradient, residuals = loss_and_gradient(points, np.zeros(12), "absolute", Plan(5, precision))
        assert np.isfinite(gradient).all()
        # Twelve points in three places: each has eight others at two distances.
        away = np.linalg.norm(points[:, None] - points[None], axis=-1).sum(1)
        assert residuals == pytest.approx(away, rel=5e-3)


def test_sums_by_hand() -> None:
    points = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 8.0]])
    assert metric_sums(points, Plan(2, "float64")) == pytest.approx([13.0, 10.0, 13.0])


def test_the_default_plan_has_equal_parts() -> None:
    assert default_plan(100).block == 100
    for m in (192, 1_000, 20_000):
        plan = default_plan(m)
        blocks = 2 * (-(-m // plan.block) // 2) + 1
        assert blocks * plan.block >= m
        assert blocks * plan.block < 1.1 * m + 64
    with pytest.raises(InputError, match="precision"):
        default_plan(10, "float8")


def test_memory_grows_linearly_and_says_what_fits() -> None:
    plan = Plan(512, "float32")
    assert needed_bytes(20_000, 600, plan) < 2.6 * needed_bytes(8_000, 600, plan)
    assert needed_bytes(20_000, 600, plan) < 2e9
    with pytest.raises(InputError, match=r"use subset=\d+"):
        check_memory(20_000, 600, plan, available=100_000_000)
    with pytest.raises(InputError, match=r"dim=\d+ or fewer"):
        check_memory(60, 300_000_000, plan, available=100_000_000)
    check_memory(20_000, 600, plan, available=2_000_000_000)


def test_program_memory_is_linear_in_m() -> None:
    """What the compiler reserves for the whole iteration: 4 times the rows, at most about 4 times the bytes."""
    import jax.numpy as jnp

    from wayveil.dpe.kernel import compiled

    def reserved(m: int) -> float:
        arguments = jnp.zeros((m, 60)), jnp.zeros(m)
        memory = compiled(m, 60, "mean-square", Plan(128, "float32")).lower(*arguments).compile().memory_analysis()
        return memory.temp_size_in_bytes

    small, large = reserved(1_000), reserved(4_000)
    assert large < 4.5 * small
    assert large < 4_000 * 4_000 * 4 / 2
