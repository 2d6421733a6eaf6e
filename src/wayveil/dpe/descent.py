"""Plain gradient descent, the paper's optimiser: T' <- T' - lr dL/dT'."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.dpe.align import Aligned
from wayveil.dpe.kernel import Plan, compiled, default_plan, metric_sums, on_gpu, x64
from wayveil.dpe.losses import check_loss
from wayveil.dpe.memory import check_memory
from wayveil.dpe.metrics import EUCLIDEAN, Metric
from wayveil.dpe.pairwise import compiled_pairs
from wayveil.errors import InputError
from wayveil.progress import Progress, quiet

Penalty = Callable[[Any], Any]
"""Maps (m, D') vectors, in jax, to one number that is added to the loss."""


@dataclass(frozen=True)
class Settings:
    """Settings of the gradient descent. The defaults are our reading of Eq. (target function)."""

    loss: str = "mean-square"
    """Name of the loss of the residuals, see `check_loss`."""
    learning_rate: float = 0.1
    """Factor of the gradient in each step."""
    iterations: int = 500
    """Largest number of steps."""
    tolerance: float = 1e-6
    """Stop once the mean |r_i| is below this share of the mean |target|."""
    precision: str | None = None
    """float64, float32, tf32 or bf16; None: float32 on a CPU, tf32 on a GPU."""

    def __post_init__(self) -> None:
        check_loss(self.loss)
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InputError("learning_rate= must be a number above 0.")
        if self.iterations < 0:
            raise InputError("iterations= must be 0 or more.")


@dataclass(frozen=True, eq=False)
class Compared:
    """A metric between trajectories, and the aligned trajectories, which say how a vector is cut into points."""

    metric: Metric
    aligned: Aligned


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
    check_memory(len(vectors), vectors.shape[1], plan)
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
    compared: Compared | None = None,
    penalty: Penalty | None = None,
    progress: Progress = quiet,
) -> Descent:
    """Move `start` (m, D') until its metric sums match `targets`, Eq. (target function with penalty).

    Without `compared` the metric is the Euclidean one.

    Privacy: not private (trusted side only); plain descent keeps the sum of all vectors unchanged, so the output
    reveals the last record to anyone who knows the others.
    """
    import jax

    start = np.asarray(start, np.float64)
    if not np.isfinite(start).all() or not np.isfinite(targets).all():
        raise InputError("Coordinates and metric sums must be finite numbers; check the file and epsilon=.")
    plan: Plan = default_plan(len(start), settings.precision)
    check_memory(len(start), start.shape[1], plan)
    # float32 is precise enough for differences from the centroid, but not for Unix time.
    origin = start.mean(axis=0)
    with x64(plan):
        if compared is None or compared.metric.distance is None:
            objective = compiled(*start.shape, settings.loss, plan)
        else:
            points_of = compared.aligned
            _, objective = compiled_pairs(compared.metric, points_of.points.shape, points_of.counts, settings.loss)
        shift = _device(origin, plan)
        with_gradient = None if penalty is None else jax.value_and_grad(lambda moved: penalty(moved + shift))

        advance = _advance(objective, None) if with_gradient is None else _advance.__wrapped__(objective, with_gradient)
        first = points = _device(start - origin, plan)
        goal = _device(targets, plan)
        tolerance = settings.tolerance * float(np.mean(np.abs(targets))) if penalty is None else -1.0
        losses: list[float] = []
        residuals = np.zeros(len(start))
        per_call = _iterations_per_call(4.0 * len(start) * start.size)
        while len(losses) < settings.iterations:
            count = min(per_call, settings.iterations - len(losses))
            points, some, done, stopped, residuals = advance(points, goal, settings.learning_rate, tolerance, count)
            values = np.asarray(some)[: int(done)]
            losses += [_finite(float(value), len(losses) + k, "loss") for k, value in enumerate(values)]
            progress("descent", len(losses) / settings.iterations)
            if bool(stopped):
                break
        moved = np.asarray(points, np.float64) - np.asarray(first, np.float64)
    progress("descent", 1.0)
    _finite(float(np.abs(moved).max(initial=0.0)), len(losses), "position")
    return Descent(start + moved, tuple(losses), np.asarray(residuals, np.float64))


def descend_many(
    start: NDArray[np.floating], targets: NDArray[np.floating], settings: Settings, *, progress: Progress = quiet
) -> list[NDArray[np.float64]]:
    """The vectors of one Euclidean `descend` for each row of `targets` (k, m), all from the same start, in one batch.

    Privacy: not private (trusted side only).
    """
    import jax.numpy as jnp

    start = np.asarray(start, np.float64)
    if not np.isfinite(start).all() or not np.isfinite(targets).all():
        raise InputError("Coordinates and metric sums must be finite numbers; check the file and epsilon=.")
    plan = default_plan(len(start), settings.precision)
    check_memory(len(targets) * len(start), start.shape[1], plan)
    origin = start.mean(axis=0)
    with x64(plan):
        advance = _advance_many(compiled(*start.shape, settings.loss, plan))
        first = _device(start - origin, plan)
        points = jnp.broadcast_to(first, (len(targets), *first.shape))
        goals, tolerance = (_device(x, plan) for x in (targets, settings.tolerance * np.abs(targets).mean(axis=1)))
        per_call, finished = _iterations_per_call(4.0 * len(targets) * len(start) * start.size), 0
        while finished < settings.iterations:
            count = min(per_call, settings.iterations - finished)
            points, some, done, stopped, _ = advance(points, goals, settings.learning_rate, tolerance, count)
            for values, own in zip(np.asarray(some), np.asarray(done)):
                for k in np.flatnonzero(~np.isfinite(values[:own]))[:1]:
                    _finite(float(values[k]), finished + int(k), "loss")
            finished += count
            progress("descent", finished / settings.iterations)
            if np.asarray(stopped).all():
                break
        moved = np.asarray(points, np.float64) - np.asarray(first, np.float64)
    _finite(float(np.abs(moved).max(initial=0.0)), finished, "position")
    return list(start + moved)


_MOST_PER_CALL = 64
"""Maximum number of iterations per call: on a GPU a small iteration takes less time than the call."""


def _iterations_per_call(operations: float) -> int:
    """Number of iterations of `operations` each between two progress reports: about one second of work."""
    return int(np.clip((5e13 if on_gpu() else 2e10) / operations, 1, _MOST_PER_CALL))


@lru_cache(maxsize=64)
def _advance(objective: Any, penalty: Any) -> Any:
    """Jitted (points, goal, learning rate, tolerance, count) -> (points, losses, iterations, whether it stopped, r).

    Up to `count` <= 64 iterations per call. `penalty` returns a value and its gradient, or is None. The function is
    cached, because compiling takes a second.
    """
    import jax
    import jax.numpy as jnp

    def iterate(points: Any, goal: Any, learning_rate: Any, tolerance: Any) -> tuple[Any, Any, Any, Any]:
        value, gradient, residuals = objective(points, goal)
        if penalty is not None:
            extra, extra_gradient = penalty(points)
            value, gradient = value + extra, gradient + extra_gradient
        stop = (abs(residuals).mean() <= tolerance) | ~jnp.isfinite(value)
        return jnp.where(stop, points, points - learning_rate * gradient), value, stop, residuals

    @jax.jit
    def advance(points: Any, goal: Any, learning_rate: Any, tolerance: Any, count: Any) -> tuple[Any, ...]:
        def body(state: tuple[Any, ...]) -> tuple[Any, ...]:
            points, losses, done, _, _ = state
            points, value, stop, residuals = iterate(points, goal, learning_rate, tolerance)
            return points, losses.at[done].set(value), done + 1, stop, residuals

        start = (points, jnp.zeros(_MOST_PER_CALL, points.dtype), jnp.int32(0), jnp.bool_(False), jnp.zeros_like(goal))
        return jax.lax.while_loop(lambda state: (state[2] < count) & ~state[3], body, start)

    return advance


@lru_cache(maxsize=64)
def _advance_many(objective: Any) -> Any:
    """`_advance` for many points, goals and tolerances at once."""
    import jax

    return jax.jit(jax.vmap(_advance(objective, None), in_axes=(0, 0, None, 0, None)))


def _finite(value: float, iteration: int, what: str) -> float:
    if not math.isfinite(value):
        raise InputError(
            f"The {what} stopped being a finite number at iteration {iteration + 1}; lower learning_rate= (or use "
            "loss='mean-square', which is the most stable)."
        )
    return value


def _device(values: Any, plan: Plan) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(values, jnp.float64 if plan.precision == "float64" else jnp.float32)
