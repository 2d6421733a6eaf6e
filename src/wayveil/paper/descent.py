"""Plain gradient descent, the paper's optimiser: T' <- T' - lr dL/dT'."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError
from wayveil.paper.align import Aligned
from wayveil.paper.kernel import Plan, compiled, default_plan, metric_sums, x64
from wayveil.paper.losses import check_loss
from wayveil.paper.memory import check_memory
from wayveil.paper.metrics import EUCLIDEAN, Metric
from wayveil.paper.pairs import compiled_pairs
from wayveil.progress import Progress, quiet

Penalty = Callable[[Any], Any]
"""Maps (m, D') vectors, in jax, to one number that is added to the loss."""


@dataclass(frozen=True)
class Settings:
    """How to descend. The defaults are the settled reading of Eq. (target function)."""

    loss: str = "mean-square"
    learning_rate: float = 0.1
    iterations: int = 500
    tolerance: float = 1e-6
    """Stop once the mean |r_i| is below this share of the mean |target|."""
    precision: str | None = None
    """float64, float32, tf32 or bf16; None: float32 on a CPU, tf32 on a GPU."""

    def __post_init__(self) -> None:
        check_loss(self.loss)
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InputError("The learning rate must be a number above 0; lower or raise --learning-rate.")
        if self.iterations < 0:
            raise InputError("--iterations must be 0 or more.")


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent ended."""

    vectors: NDArray[np.float64]
    losses: tuple[float, ...]
    """The loss before each iteration, penalties included."""
    residuals: NDArray[np.float64]
    """q(D', T'_i) - target_i, before the last iteration."""


def sums_of(aligned: Aligned, metric: Metric = EUCLIDEAN, precision: str | None = None) -> NDArray[np.float64]:
    """q(D, T_i) = sum over j != i of d(T_i, T_j), Eq. (query definition).

    Privacy: not private (trusted side only).
    """
    vectors = aligned.vectors
    plan = default_plan(len(vectors), precision)
    check_memory(*vectors.shape, plan)
    if metric.distance is None:
        return metric_sums(vectors - vectors.mean(axis=0), plan)
    with x64(plan):
        sums, _ = compiled_pairs(metric, aligned.points.shape, aligned.counts, "mean-square")
        return np.asarray(sums(_device(vectors - vectors.mean(axis=0), plan)), np.float64)


def descend(
    start: NDArray[np.floating],
    targets: NDArray[np.floating],
    settings: Settings,
    *,
    metric: Metric = EUCLIDEAN,
    aligned: Aligned | None = None,
    penalty: Penalty | None = None,
    stage: str = "descent",
    progress: Progress = quiet,
) -> Descent:
    """Move `start` (m, D') until its metric sums match `targets`, Eq. (target function with penalty).

    `aligned` is needed by metrics other than the Euclidean one: it says how a vector is cut into points.

    Privacy: not private (trusted side only); plain descent keeps the sum of all vectors unchanged, so the output tells
    the last record to whoever knows the others.
    """
    import jax

    start = np.asarray(start, np.float64)
    if not np.isfinite(start).all() or not np.isfinite(targets).all():
        raise InputError("Coordinates and metric sums must be finite numbers; check the file and --epsilon.")
    plan: Plan = default_plan(len(start), settings.precision)
    check_memory(*start.shape, plan)
    # float32 is enough around the centroid, not around Unix time.
    origin = start.mean(axis=0)
    with x64(plan):
        if metric.distance is None:
            objective = compiled(*start.shape, settings.loss, plan)
        else:
            if aligned is None:
                raise InputError(f"The metric '{metric.name}' needs the points of each trajectory.")
            _, objective = compiled_pairs(metric, aligned.points.shape, aligned.counts, settings.loss)
        shift = _device(origin, plan)
        push = None if penalty is None else jax.value_and_grad(lambda moved: penalty(moved + shift))

        step = _step(objective, None) if push is None else _step.__wrapped__(objective, push)
        first = points = _device(start - origin, plan)
        goal = _device(targets, plan)
        close = settings.tolerance * float(np.mean(np.abs(targets))) if penalty is None else -1.0
        losses: list[float] = []
        residuals = np.zeros(len(start))
        for iteration in range(settings.iterations):
            moved, value, misfit, residuals = step(points, goal, settings.learning_rate)
            losses.append(_finite(float(value), iteration, "loss"))
            if float(misfit) <= close:
                break
            points = moved
            progress(stage, (iteration + 1) / settings.iterations)
        moved = np.asarray(points, np.float64) - np.asarray(first, np.float64)
    progress(stage, 1.0)
    _finite(float(np.abs(moved).max(initial=0.0)), len(losses), "position")
    return Descent(start + moved, tuple(losses), np.asarray(residuals, np.float64))


@lru_cache(maxsize=64)
def _step(objective: Any, push: Any) -> Any:
    """Jitted (points, goal, learning rate) -> (next points, loss, mean |r|, r); kept, as compiling takes a second."""
    import jax

    @jax.jit
    def step(points: Any, goal: Any, learning_rate: Any) -> tuple[Any, Any, Any, Any]:
        value, gradient, residuals = objective(points, goal)
        if push is not None:
            extra, pull = push(points)
            value, gradient = value + extra, gradient + pull
        return points - learning_rate * gradient, value, abs(residuals).mean(), residuals

    return step


def _finite(value: float, iteration: int, what: str) -> float:
    if not math.isfinite(value):
        raise InputError(
            f"The {what} stopped being a finite number at iteration {iteration + 1}; lower --learning-rate "
            "(or take --loss mean-square, which is the steadiest)."
        )
    return value


def _device(values: Any, plan: Plan) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(values, jnp.float64 if plan.precision == "float64" else jnp.float32)
