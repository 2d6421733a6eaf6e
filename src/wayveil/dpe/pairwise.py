"""Metric sums and their gradient for any metric, row by row: the slow, general sibling of `kernel`.

For a symmetric metric dL/dT_i = sum_j (c_i + c_j) d1 d(T_i, T_j), where d1 is the gradient with respect to the first
argument. So two sweeps over the pairs are enough here as well, and only one row of pairs is in memory at a time.
"""

from typing import Any

from wayveil.dpe.losses import loss_and_slopes
from wayveil.dpe.metrics import Metric


def compiled_pairs(metric: Metric, shape: tuple[int, int, int], counts: Any, loss: str) -> tuple[Any, Any]:
    """Jitted `sums(vectors)` and `function(vectors, targets) -> (loss, gradient, residuals)`; vectors are (m, n k)."""
    import jax
    import jax.numpy as jnp

    m, n, k = shape
    counts = jnp.asarray(counts)
    row = jnp.arange(m)
    distance = metric.distance
    assert distance is not None

    def sums(vectors: Any) -> Any:
        points = vectors.reshape(m, n, k)

        def one(i: Any) -> Any:
            values = jax.vmap(lambda b, count: distance(points[i], b, counts[i], count))(points, counts)
            return jnp.sum(jnp.where(row != i, values, 0.0))

        return jax.lax.map(one, row)

    def function(vectors: Any, targets: Any) -> tuple[Any, Any, Any]:
        residuals = sums(vectors) - targets
        value, slopes = loss_and_slopes(residuals, loss)
        points = vectors.reshape(m, n, k)

        def one(i: Any) -> Any:
            gradients = jax.vmap(lambda b, count: jax.grad(distance)(points[i], b, counts[i], count))(points, counts)
            weights = jnp.where(row != i, slopes + slopes[i], 0.0)
            return jnp.einsum("j,jnk->nk", weights, jnp.where((row != i)[:, None, None], gradients, 0.0))

        return value, jax.lax.map(one, row).reshape(m, n * k), residuals

    return jax.jit(sums), jax.jit(function)
