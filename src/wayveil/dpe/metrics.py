"""Metrics between whole trajectories; the paper allows any metric that is differentiable.

A metric's `distance(a, b, count_a, count_b)` works on jax arrays of shape (n, k), of which only the first `count_a` or
`count_b` points count. It must be symmetric. The Euclidean metric has a module of its own, `kernel`, and no function
here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wayveil.errors import InputError


@dataclass(frozen=True)
class Metric:
    """A metric, whether it needs aligned trajectories, and the largest value it can take inside a scope."""

    name: str
    distance: Callable[[Any, Any, Any, Any], Any] | None
    needs_alignment: bool
    largest: Callable[[int, float, float], float]
    """(n, 2r, tau) -> lambda: the largest distance between two trajectories, the paper's global sensitivity."""


def _euclidean_largest(n: int, diameter: float, tau: float) -> float:
    """lambda = sqrt(n (4 r^2 + tau^2))."""
    return float(np.sqrt(n * (diameter**2 + tau**2)))


EUCLIDEAN = Metric("euclidean", None, True, _euclidean_largest)


def frechet(smoothing: float) -> Metric:
    """Smoothed discrete Fréchet distance: c(i, j) = softmax(d_ij, softmin(c(i-1, j), c(i, j-1), c(i-1, j-1))).

    `smoothing` is the temperature in the coordinates' unit: as it goes to 0, the result approaches the discrete Fréchet
    distance. It needs no alignment. One pair costs n^2 operations, so it is for hundreds of trajectories, not for
    thousands.
    """
    if not smoothing > 0:
        raise InputError("The smoothing of the Fréchet metric must be above 0.")

    def join(cost: Any, best: Any) -> Any:
        import jax.numpy as jnp

        return smoothing * jnp.logaddexp(cost / smoothing, best / smoothing)

    return Metric(
        "frechet", _dynamic(join, smoothing), False, lambda n, diameter, tau: _euclidean_largest(1, diameter, tau)
    )


def soft_dtw(smoothing: float) -> Metric:
    """Soft dynamic time warping: c(i, j) = d_ij + softmin(c(i-1, j), c(i, j-1), c(i-1, j-1))."""
    if not smoothing > 0:
        raise InputError("The smoothing of the soft-DTW metric must be above 0.")
    return Metric(
        "soft-dtw",
        _dynamic(lambda cost, best: cost + best, smoothing),
        False,
        lambda n, diameter, tau: (2 * n - 1) * _euclidean_largest(1, diameter, tau),
    )


def metric_of(name: str, smoothing: float) -> Metric:
    """A metric by its name."""
    if name == "euclidean":
        return EUCLIDEAN
    if name == "frechet":
        return frechet(smoothing)
    if name == "soft-dtw":
        return soft_dtw(smoothing)
    raise InputError(f"Unknown metric '{name}'; choose euclidean, frechet or soft-dtw.")


def _dynamic(join: Callable[[Any, Any], Any], smoothing: float) -> Callable[[Any, Any, Any, Any], Any]:
    """The value of the recurrence c(i, j) = join(d_ij, softmin of the three neighbours) at the last points."""

    def distance(a: Any, b: Any, count_a: Any, count_b: Any) -> Any:
        import jax
        import jax.numpy as jnp

        away = a[:, None, :] - b[None, :, :]
        square = jnp.sum(away * away, axis=-1)
        costs = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
        far = jnp.asarray(1e12, costs.dtype)  # stands for infinity, with gradients that stay finite

        def softmin(values: Any) -> Any:
            return -smoothing * jax.nn.logsumexp(-values / smoothing, axis=0)

        def next_row(above: Any, row: Any) -> tuple[Any, Any]:
            cost, first = row

            def next_cell(left: Any, cell: Any) -> tuple[Any, Any]:
                value, up, diagonal, origin = cell
                best = jnp.where(origin, 0.0, softmin(jnp.stack([left, up, diagonal])))
                # At the origin there is nothing to join: c(0, 0) = d_00 in both recurrences.
                here = jnp.where(origin, value, join(value, best))
                return here, here

            diagonal = jnp.concatenate([far[None], above[:-1]])
            origin = first & (jnp.arange(cost.shape[0]) == 0)
            _, values = jax.lax.scan(next_cell, far, (cost, above, diagonal, origin))
            return values, values

        first = jnp.arange(costs.shape[0]) == 0
        _, table = jax.lax.scan(next_row, jnp.full(costs.shape[1], far), (costs, first))
        return table[count_a - 1, count_b - 1]

    return distance
