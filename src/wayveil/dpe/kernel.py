"""Metric sums and their gradient under the Euclidean metric, in strips: O(mD) memory, never an m×m matrix.

With q_i = sum_j d(T_i, T_j), a loss L(q_1..q_m) and slopes c_i = dL/dq_i,

    dL/dT_i = sum_j W_ij (T_i - T_j),   W_ij = (c_i + c_j) / d(T_i, T_j),

so two sweeps are enough: one for q, one for W applied to [T, 1] (the column of ones gives the row sums of W from the
same rounded numbers). Both visit each pair once, because d and W are symmetric. With the rows cut into an odd number
2h + 1 of blocks, block i is paired with itself and the next h blocks, cyclically: one strip of fixed shape, whose sums
over rows go to block i and whose sums over columns go to the others. The block on the diagonal is counted from both
sides, each time with weight one half. An iteration costs about 4 m^2 D floating-point operations instead of 6 m^2 D.

Precision. Distances come from |a|^2 + |b|^2 - 2ab of the *centred and already rounded* points. So `tf32` and `bf16`
lose nothing to cancellation that `float32` keeps: they give the float32 distances of points that were moved by at
most 2^-11 or 2^-9 of a coordinate. Pairs closer than sqrt(8 eps) of their norms (0.1 % in float32) count as equal.

This module needs numpy and jax alone, so that it runs on a bare GPU machine.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.dpe.losses import loss_and_slopes
from wayveil.errors import InputError

PRECISIONS = ("float64", "float32", "tf32", "bf16")
_PAD = -1e30  # squared norm of a padding row: its squared distances are negative, so it is in no pair


@dataclass(frozen=True)
class Plan:
    """How the kernel runs: rows per block (the number of blocks is odd), and the number format of products."""

    block: int
    precision: str


def default_plan(m: int, precision: str | None = None) -> Plan:
    """The plan for the device that jax sees: float32 on a CPU, TF32 on a GPU, unless `precision` is given."""
    gpu = on_gpu()
    chosen = precision or ("tf32" if gpu else "float32")
    if chosen not in PRECISIONS:
        raise InputError(f"Unknown precision '{chosen}'; choose one of {', '.join(PRECISIONS)}.")
    if m < 192:
        return Plan(max(m, 1), chosen)
    blocks = max(3, 2 * (-(-m // (4096 if gpu else 512)) // 2) + 1)
    rows = -(-m // blocks)
    block = -(-rows // 64) * 64 if m > 4096 else rows  # a multiple that suits matrix units
    return Plan(block, chosen)


def on_gpu() -> bool:
    """Whether jax computes on a GPU here."""
    import jax

    return jax.default_backend() == "gpu"


def x64(plan: Plan) -> Any:
    """A context in which jax keeps float64 where the plan asks for it."""
    import jax

    wide = plan.precision == "float64"
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(wide)
    from jax.experimental import enable_x64  # type: ignore[attr-defined, unused-ignore]  # in older versions of jax

    return enable_x64(wide)


def metric_sums(points: NDArray[np.floating[Any]], plan: Plan | None = None) -> NDArray[np.float64]:
    """q_i = sum over j != i of |T_i - T_j|, Eq. (query definition), for vectors of shape (m, D).

    Privacy: not private (trusted side only).
    """
    plan = plan or default_plan(len(points))
    with x64(plan):
        return np.asarray(_compiled_sums(points.shape[0], points.shape[1], plan)(_floats(points, plan)), np.float64)


def _floats(values: Any, plan: Plan) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(values, jnp.float64 if plan.precision == "float64" else jnp.float32)


@lru_cache(maxsize=64)
def _compiled_sums(m: int, dim: int, plan: Plan) -> Any:
    import jax

    return jax.jit(lambda points: _sums(_prepare(points, plan), plan)[:m])


@lru_cache(maxsize=64)
def compiled(m: int, dim: int, loss: str, plan: Plan) -> Any:
    """The jitted function (points, targets) -> (loss, gradient, residuals) on device arrays."""
    import jax
    import jax.numpy as jnp

    def function(points: Any, targets: Any) -> tuple[Any, Any, Any]:
        tiles = _prepare(points, plan)
        residuals = _sums(tiles, plan)[:m] - targets
        value, slopes = loss_and_slopes(residuals, loss)
        # Slopes of the mean-square loss are of order 1/m^3; scaled to 1 they survive bf16 and tf32 unharmed.
        scale = jnp.maximum(jnp.max(jnp.abs(slopes)), jnp.finfo(slopes.dtype).tiny)
        gradient = _pull(tiles, slopes / scale, plan)[:m, :dim] * scale
        return value, gradient, residuals

    return jax.jit(function)


@dataclass(frozen=True)
class _Strips:
    operand: Any
    """((blocks + h) block, width) centred, rounded points; the first h blocks are repeated at the end, cyclically."""
    norms: Any
    """((blocks + h) block,) squared norms of the rounded points, `_PAD` in padding rows."""
    dim: int
    blocks: int
    columns: int
    """Columns of a strip: (h + 1) block."""


def _prepare(points: Any, plan: Plan) -> _Strips:
    import jax.numpy as jnp

    m, dim = points.shape
    blocks = 2 * (-(-m // plan.block) // 2) + 1
    ahead = blocks // 2 * plan.block
    padding = blocks * plan.block - m
    width = -(-(dim + 1) // 16) * 16  # room for the column of ones
    centred = _rounded(points - jnp.mean(points, axis=0), plan)
    wide = centred.astype(points.dtype)
    norms = jnp.pad(jnp.sum(wide * wide, axis=1), (0, padding), constant_values=_PAD)
    operand = jnp.pad(centred, ((0, padding), (0, width - dim)))
    return _Strips(
        jnp.concatenate([operand, operand[:ahead]]),
        jnp.concatenate([norms, norms[:ahead]]),
        dim,
        blocks,
        ahead + plan.block,
    )


def _rounded(values: Any, plan: Plan) -> Any:
    """The values as the matrix units will see them."""
    import jax
    import jax.numpy as jnp

    if plan.precision == "bf16":
        # A conversion there and back may be optimised away, and norms would no longer belong to the rounded points.
        rounded = jax.lax.reduce_precision(values, exponent_bits=8, mantissa_bits=7)
        return rounded.astype(jnp.bfloat16) if on_gpu() else rounded  # CPUs multiply the rounded numbers in float32
    return _to_tf32(values) if plan.precision == "tf32" else values


def _to_tf32(values: Any) -> Any:
    """Rounded to the nearest, ties to even, at 10 bits after the point."""
    import jax
    import jax.numpy as jnp

    bits = jax.lax.bitcast_convert_type(values, jnp.uint32)
    bits = (bits + 0xFFF + ((bits >> 13) & 1)) & jnp.uint32(0xFFFFE000)
    return jax.lax.bitcast_convert_type(bits, jnp.float32)


def _matmul(a: Any, b: Any, axes: tuple[int, int], plan: Plan) -> Any:
    import jax
    from jax.lax import DotAlgorithmPreset, Precision

    def product(a: Any, b: Any, how: Any) -> Any:
        wide = jax.numpy.float64 if plan.precision == "float64" else jax.numpy.float32
        return jax.lax.dot_general(
            a, b, (((axes[0],), (axes[1],)), ((), ())), precision=how, preferred_element_type=wide
        )

    if plan.precision == "float64":
        return product(a, b, Precision.HIGHEST)
    if not on_gpu():
        return product(a, b, Precision.DEFAULT)
    if plan.precision == "bf16":
        return product(a, b, DotAlgorithmPreset.BF16_BF16_F32)
    if plan.precision == "float32":
        return _in_halves(a, b, axes, lambda a, b: product(a, b, DotAlgorithmPreset.TF32_TF32_F32))
    return product(a, b, DotAlgorithmPreset.TF32_TF32_F32)


def _in_halves(a: Any, b: Any, axes: tuple[int, int], product: Any) -> Any:
    """ab to 22 bits from three products of 11-bit halves: a1 b1 + a1 b2 + a2 b1.

    A GPU multiplies TF32 seven times as fast as float32. The halves stand side by side along whichever axis is short,
    so that no wide intermediate result is written twice.
    """
    import jax.numpy as jnp

    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    if axes == (1, 1):
        return product(jnp.concatenate([a1, a1, a2], axis=1), jnp.concatenate([b1, b2, b1], axis=1))
    both = product(a1, jnp.concatenate([b1, b2], axis=1))
    columns = b.shape[1]
    return both[:, :columns] + (both[:, columns:] + product(a2, b1))


def _halves(values: Any) -> tuple[Any, Any]:
    high = _to_tf32(values)
    return high, _to_tf32(values - high)


def _strip(strips: _Strips, begin: Any, plan: Plan) -> tuple[Any, Any]:
    """1/d (0 for missing or indistinguishable pairs; halved on the diagonal block) and d^2."""
    import jax
    import jax.numpy as jnp

    rows = jax.lax.dynamic_slice_in_dim(strips.operand, begin, plan.block)
    columns = jax.lax.dynamic_slice_in_dim(strips.operand, begin, strips.columns)
    both = (
        jax.lax.dynamic_slice_in_dim(strips.norms, begin, plan.block)[:, None]
        + jax.lax.dynamic_slice_in_dim(strips.norms, begin, strips.columns)[None, :]
    )
    square = both - 2.0 * _matmul(rows, columns, (1, 1), plan)
    row, column = jnp.arange(plan.block)[:, None], jnp.arange(strips.columns)[None, :]
    apart = (square > 8.0 * jnp.finfo(both.dtype).eps * both) & (row != column)
    share = jnp.where(column < plan.block, 0.5, 1.0).astype(both.dtype)
    return jnp.where(apart, share * jax.lax.rsqrt(jnp.where(apart, square, 1.0)), 0.0), square


def _add_at(total: Any, part: Any, begin: Any) -> Any:
    import jax

    old = jax.lax.dynamic_slice_in_dim(total, begin, part.shape[0])
    return jax.lax.dynamic_update_slice_in_dim(total, old + part, begin, 0)


def _folded(total: Any, strips: _Strips, plan: Plan) -> Any:
    """The rows beyond the last block, added to the first rows, which they repeat."""
    length = strips.blocks * plan.block
    return _add_at(total[:length], total[length:], 0)


def _sums(strips: _Strips, plan: Plan) -> Any:
    """First sweep: q of every row, padding included."""
    import jax
    import jax.numpy as jnp

    def add(i: Any, sums: Any) -> Any:
        begin = i * plan.block
        inverse, square = _strip(strips, begin, plan)
        distance = inverse * square
        sums = _add_at(sums, distance.sum(axis=1), begin)
        return _add_at(sums, distance.sum(axis=0), begin)

    return _folded(jax.lax.fori_loop(0, strips.blocks, add, jnp.zeros_like(strips.norms)), strips, plan)


def _pull(strips: _Strips, slopes: Any, plan: Plan) -> Any:
    """Second sweep: sum_j W_ij (T_i - T_j) for every row, W_ij = (c_i + c_j) / d_ij."""
    import jax
    import jax.numpy as jnp

    length = strips.blocks * plan.block
    c = jnp.pad(slopes, (0, length - slopes.shape[0]))
    c = jnp.concatenate([c, c[: len(strips.norms) - length]])
    with_ones = strips.operand.at[:, strips.dim].set(1.0)

    def add(i: Any, total: Any) -> Any:
        begin = i * plan.block
        inverse, _ = _strip(strips, begin, plan)
        slope = (
            jax.lax.dynamic_slice_in_dim(c, begin, plan.block)[:, None]
            + jax.lax.dynamic_slice_in_dim(c, begin, strips.columns)[None, :]
        )
        weights = _rounded(slope * inverse, plan)
        rows = jax.lax.dynamic_slice_in_dim(with_ones, begin, plan.block)
        columns = jax.lax.dynamic_slice_in_dim(with_ones, begin, strips.columns)
        total = _add_at(total, _matmul(weights, columns, (1, 0), plan), begin)
        return _add_at(total, _matmul(weights, rows, (0, 0), plan), begin)

    zero = jnp.zeros(strips.operand.shape, strips.norms.dtype)
    total = _folded(jax.lax.fori_loop(0, strips.blocks, add, zero), strips, plan)
    points = strips.operand[:length].astype(total.dtype)
    return points * total[:, strips.dim : strips.dim + 1] - total
