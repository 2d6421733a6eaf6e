"""Gradient descent on coordinates: points move until no rule's penalty is left, as little and as smoothly as possible.

    minimise over the displacements d   λ Σ_rules penalty(x + d) + ½ Σ w_i |d_i|² + ½ s Σ |d_i − d_{i+1}|² − a log A(x + d)

λ grows from round to round, so that the rules win in the end; w is larger at the ends of a trajectory; A is a density
that draws points to where people are.

Privacy: free (post-processing).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.progress import Progress, quiet
from wayveil.rules.motion import Motion, to_jax
from wayveil.rules.pace import MaxDuration, MinSpeed
from wayveil.rules.rule import Rule
from wayveil.rules.speed import SpeedLimit
from wayveil.scope import Scope
from wayveil.synthesis.physics import Tracks, motion_of_tracks, points_of
from wayveil.synthesis.pyramid import Field

ROUNDS = 10
STEPS = 20
"""Steps of one round; after each round the exact rules are asked and what obeys stays as it is."""
_NEIGHBOURS = 4
_STAY, _STAY_END, _SMOOTH = 0.002, 0.02, 0.004
_ATTRACTION_M = 4.0
_GROWTH = 1.4
_FEWEST, _MOST = 1 << 10, 1 << 15
_MOST_RULES = 40


@dataclass(frozen=True, eq=False)
class Descent:
    """Where the points are after it, and how many steps it took."""

    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    iterations: int


def place_rules(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules about places; those about speed and duration are obeyed exactly by new times."""
    return tuple(rule for rule in rules if not isinstance(rule, SpeedLimit | MaxDuration | MinSpeed))


def descend(
    tracks: Tracks,
    rules: tuple[Rule, ...],
    scope: Scope,
    broken: Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]],
    random: np.random.Generator,
    attraction: Field | None = None,
    grid: Grid | None = None,
    progress: Progress = quiet,
) -> Descent:
    """Move the points around each violation until `broken` says that their tracks obey, at most 200 steps.

    Parameters
    ----------
    broken
        Given track numbers and the positions of all their points: which of these tracks still break a rule.

    Privacy: free (post-processing).
    """
    motion = motion_of_tracks(tracks, scope)
    wrong = np.zeros(len(tracks.x_m), bool)
    size_m = np.zeros(len(tracks.x_m))
    used = []
    for rule in place_rules(rules):
        penalty = np.asarray(rule.penalty(motion), np.float64)
        if (penalty > 0).any():
            used.append((int((penalty > 0).sum()), rule))
            violated = rule.violations(motion)
            wrong |= violated
            size_m = np.maximum(size_m, np.where(violated, penalty, 0.0))
    x, y = tracks.x_m.copy(), tracks.y_m.copy()
    if not wrong.any():
        return Descent(x, y, 0)
    used.sort(key=lambda pair: -pair[0])
    chosen = tuple(rule for _, rule in used[:_MOST_RULES])
    near = _near(wrong, motion.joins)
    window_points = np.add.reduceat(near, tracks.offsets[:-1])
    iterations, shape = 0, 0
    field = _potential(attraction, grid)
    batches = _batches(window_points)
    for number, batch in enumerate(batches):
        progress("refine", number / len(batches))
        points = points_of(tracks.offsets, batch)
        points = points[near[points]]
        shape = max(shape, _padded(len(points)))
        took = _one_batch(tracks, motion, batch, points, shape, size_m, chosen, field, broken, random, x, y)
        iterations = max(iterations, took)
    progress("refine", 1.0)
    return Descent(x, y, iterations)


def _one_batch(
    tracks: Tracks,
    motion: Motion,
    batch: NDArray[np.int64],
    points: NDArray[np.int64],
    shape: int,
    size_m: NDArray[np.float64],
    rules: tuple[Rule, ...],
    field: tuple[NDArray[np.float32], float] | None,
    broken: Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]],
    random: np.random.Generator,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
) -> int:
    import jax.numpy as jnp

    count, owner = len(points), tracks.owner
    joins = (np.diff(points) == 1) & motion.joins[points[:-1]]
    window = to_jax(_padded_motion(motion, points, joins, shape))
    ends = tracks.ends[points]
    # Next to what does not take part a point stays, so that nothing outside the window changes.
    open_left = np.r_[True, ~joins] & ~np.isin(points, tracks.offsets[:-1])
    open_right = np.r_[~joins, True] & ~np.isin(points, tracks.offsets[1:] - 1)
    free = ~(open_left | open_right)
    deepest = np.zeros(len(tracks))
    np.maximum.at(deepest, owner, size_m)
    pace = np.clip(deepest[owner[points]] / 40, 0.7, 10.0) * free
    # On the middle of a road both sides are equally near: a little noise decides.
    start = random.normal(0, 0.3, (2, count)) * (free & ~ends)
    stay = np.where(ends, _STAY_END, _STAY)
    fill = functools.partial(_fill, shape=shape)
    moved, state = jnp.asarray(fill(start)), None
    advance, initial = _advance(rules, field is not None)
    state = initial(moved)
    active = np.ones(count, bool)
    left = batch
    extra = (jnp.asarray(field[0]), field[1]) if field is not None else (jnp.zeros((1, 1)), 1.0)
    took = 0
    for turn in range(ROUNDS):
        moved, state = advance(
            window, moved, state, jnp.asarray(fill(pace * active)), jnp.asarray(fill(stay)),
            jnp.asarray(_fill(np.r_[joins, False], shape)), jnp.asarray(fill(np.ones(count))),
            jnp.float32(_GROWTH**turn), *extra,
        )  # fmt: skip
        took += STEPS
        shift = np.nan_to_num(np.asarray(moved, np.float64)[:, :count])
        mine = points[active]
        x[mine] = tracks.x_m[mine] + shift[0][active]
        y[mine] = tracks.y_m[mine] + shift[1][active]
        whole = points_of(tracks.offsets, left)
        left = left[broken(left, x[whole], y[whole])]
        if len(left) == 0:
            break
        active = np.isin(owner[points], left)
    return took


@functools.lru_cache(maxsize=4)
def _advance(rules: tuple[Rule, ...], attracted: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The compiled round of descent for these rules; kept, because compiling costs seconds."""
    import jax
    import jax.numpy as jnp
    import optax

    adam = optax.adam(1.0, b1=0.9, b2=0.95)

    def loss(d, window, stay, joins, counted, weight, potential, cell_m):
        at = window.moved(window.x_m + d[0], window.y_m + d[1])
        wrong = sum(jnp.sum(rule.penalty(at) * counted) for rule in rules)
        bend = jnp.where(joins[:-1] > 0, jnp.sum((d[:, 1:] - d[:, :-1]) ** 2, axis=0), 0.0)
        result = weight * wrong + 0.5 * jnp.sum(stay * jnp.sum(d * d, axis=0)) + 0.5 * _SMOOTH * jnp.sum(bend)
        if attracted:
            result = result - _ATTRACTION_M * jnp.sum(counted * _bilinear(potential, at.x_m / cell_m, at.y_m / cell_m))
        return result

    slope = jax.grad(loss)

    @jax.jit
    def advance(window, d, state, pace, stay, joins, counted, weight, potential, cell_m):
        def step(carry, _):
            d, state = carry
            gradient = jnp.nan_to_num(slope(d, window, stay, joins, counted, weight, potential, cell_m))
            update, state = adam.update(gradient, state)
            return (d + pace * update, state), None

        return jax.lax.scan(step, (d, state), None, length=STEPS)[0]

    return advance, adam.init


def _bilinear(field: Any, column: Any, row: Any) -> Any:
    import jax.numpy as jnp

    rows, columns = field.shape
    column = jnp.clip(column - 0.5, 0, max(columns - 1.001, 0.0))
    row = jnp.clip(row - 0.5, 0, max(rows - 1.001, 0.0))
    c, r = jnp.floor(column).astype(jnp.int32), jnp.floor(row).astype(jnp.int32)
    u, v = column - c, row - r
    c1, r1 = jnp.minimum(c + 1, columns - 1), jnp.minimum(r + 1, rows - 1)
    return (1 - v) * ((1 - u) * field[r, c] + u * field[r, c1]) + v * ((1 - u) * field[r1, c] + u * field[r1, c1])


def _potential(attraction: Field | None, grid: Grid | None) -> tuple[NDArray[np.float32], float] | None:
    if attraction is None or grid is None or not attraction.max() > 0:
        return None
    floor = 1e-3 * attraction.max()
    return np.log(np.maximum(attraction, 0.0) + floor).astype(np.float32), grid.cell_m


def _near(wrong: NDArray[np.bool_], joins: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Points at most so many steps before or after a wrong one, on the same track."""
    near = wrong.copy()
    for _ in range(_NEIGHBOURS):
        wider = near.copy()
        wider[1:] |= near[:-1] & joins
        wider[:-1] |= near[1:] & joins
        near = wider
    return near


def _batches(window_points: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Tracks that have something to move, in runs of at most _MOST points (a longer one stands alone)."""
    which = np.flatnonzero(window_points)
    batches, begin, total = [], 0, 0
    for place, size in enumerate(window_points[which].tolist()):
        if total and total + size > _MOST:
            batches.append(which[begin:place])
            begin, total = place, 0
        total += size
    return [*batches, which[begin:]]


def _padded(count: int) -> int:
    size = _FEWEST
    while size < count:
        size *= 4 if size < _MOST else 2
    return size


def _fill(values: NDArray[Any], shape: int) -> NDArray[np.float32]:
    result = np.zeros((*values.shape[:-1], shape), np.float32)
    result[..., : values.shape[-1]] = values
    return result


def _padded_motion(motion: Motion, points: NDArray[np.int64], joins: NDArray[np.bool_], shape: int) -> Motion:
    """The window's points and, behind them, copies of its first one that nobody counts, each a track of its own."""
    which = np.concatenate([points, np.full(shape - len(points), points[0])])
    joined = np.zeros(shape - 1, bool)
    joined[: len(joins)] = joins
    columns = (np.asarray(column[which], np.float32) for column in (motion.x_m, motion.y_m, motion.t_s, motion.week_s))
    return Motion(*columns, joined, np.arange(shape + 1, dtype=np.int32))
