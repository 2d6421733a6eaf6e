"""Gradient descent on coordinates: points move until no rule is broken, as little and as smoothly as possible.

    minimise over d   λ Σ_rules penalty(x + d) + ½ Σ w_i |d_i|² + ½ s Σ |d_i − d_{i+1}|² − a Σ log A(x_i + d_i)

λ grows from round to round, so that the rules win in the end; w is larger at the ends of a trajectory; A is a density
that draws points to where people are. Only the points around a violation take part. They pass through windows of one
size, so that one program is compiled: what obeys after a round leaves its window, and the next in the queue comes in.

Privacy: free (post-processing).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.progress import Progress, quiet
from wayveil.pyramid import Field
from wayveil.rules.closed import Closed
from wayveil.rules.hours import ALWAYS
from wayveil.rules.motion import Array, Motion, to_jax
from wayveil.rules.one_way import OneWay
from wayveil.rules.pace import MaxDuration, MinSpeed
from wayveil.rules.rule import Rule
from wayveil.rules.speed import SpeedLimit
from wayveil.scope import Scope
from wayveil.synthesis.nearby import Nearby, near_pieces
from wayveil.synthesis.physics import Tracks, motion_of_tracks, points_of

ROUNDS = 6
STEPS = 20
"""Steps of one round; after each round the exact rules are asked."""
_NEIGHBOURS = 4
_STAY, _STAY_END, _SMOOTH = 0.002, 0.02, 0.004
_ATTRACTION_M = 4.0
_GROWTH = 1.4
_WINDOWS = (512, 4096)
_FEW_RULES, _MOST_RULES = 8, 40
_CLOSING_S = 60.0

Judge = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]]
_Lists = tuple[tuple[Array, ...], ...]
"""What `near_pieces` found, for each rule about one-way streets."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Where the points are after it, and how many steps it took."""

    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    iterations: int


@dataclass(frozen=True, eq=False)
class _Problem:
    """The points that take part, in the order of the tracks."""

    points: NDArray[np.int64]
    first: NDArray[np.int64]
    """(tracks + 1,) where each track's points start in `points`."""
    motion: Motion
    joins: NDArray[np.bool_]
    """(n,) whether each takes part together with the next one."""
    pace: NDArray[np.float64]
    """Metres of a step; zero for points that stay."""
    stay: NDArray[np.float64]
    rules: tuple[Rule, ...]


def place_rules(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules about places; those about speed and duration are obeyed exactly by new times."""
    return tuple(rule for rule in rules if not isinstance(rule, SpeedLimit | MaxDuration | MinSpeed))


def descend(
    tracks: Tracks,
    rules: tuple[Rule, ...],
    scope: Scope,
    broken: Judge,
    random: np.random.Generator,
    attraction: Field | None = None,
    grid: Grid | None = None,
    progress: Progress = quiet,
) -> Descent:
    """Move the points around each violation until `broken` says that their tracks obey, at most 120 steps.

    Parameters
    ----------
    broken
        Given track numbers and the positions of all their points: which of these tracks still break a rule.

    Privacy: free (post-processing).
    """
    x, y = tracks.x_m.copy(), tracks.y_m.copy()
    problem = _problem(tracks, rules, scope)
    if len(problem.points) == 0:
        return Descent(x, y, 0)
    sizes = np.diff(problem.first)
    shape = _padded(min(int(sizes.sum()), _WINDOWS[-1]), int(sizes.max()))
    field = _potential(attraction, grid)
    # On the middle of a road both sides are equally near: a little noise decides.
    moved = random.normal(0, 0.3, (2, len(problem.points))) * ((problem.pace > 0) & (problem.stay < _STAY_END))
    mean, square = np.zeros_like(moved), np.zeros_like(moved)
    age = np.zeros(len(tracks), np.int64)
    queue = np.flatnonzero(sizes)
    total = len(queue)
    while len(queue):
        progress("refine", 1 - len(queue) / total)
        fits = max(1, int(np.searchsorted(np.cumsum(sizes[queue]), shape, side="right")))
        now, queue = queue[:fits], queue[fits:]
        part = points_of(problem.first, now)
        weight = np.repeat(_GROWTH ** age[now], sizes[now])
        moved[:, part], mean[:, part], square[:, part] = _round(
            problem, part, shape, moved[:, part], mean[:, part], square[:, part], weight, field
        )
        age[now] += 1
        which = problem.points[part]
        x[which], y[which] = tracks.x_m[which] + moved[0, part], tracks.y_m[which] + moved[1, part]
        whole = points_of(tracks.offsets, now)
        again = now[broken(now, x[whole], y[whole])]
        queue = np.r_[again[age[again] < ROUNDS], queue]
    progress("refine", 1.0)
    return Descent(x, y, int(age.max()) * STEPS)


def _problem(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> _Problem:
    motion = motion_of_tracks(tracks, scope)
    wrong, wrong_step = np.zeros((2, len(tracks.x_m)), bool)
    size_m = np.zeros(len(tracks.x_m))
    used = []
    for rule in place_rules(rules):
        penalty = np.asarray(rule.penalty(motion), np.float64)
        if (penalty > 0).any():
            violated = rule.violations(motion)
            used.append((int(violated.sum()), rule))
            wrong |= violated
            wrong_step |= violated & isinstance(rule, OneWay)
            size_m = np.maximum(size_m, np.where(violated, penalty, 0.0))
    near = _near(wrong, motion.joins)
    points = np.flatnonzero(near)
    owner = tracks.owner
    deepest = np.zeros(len(tracks))
    np.maximum.at(deepest, owner, size_m)
    # Next to a point that does not take part a point stays, so that nothing outside changes.
    alone = np.r_[False, motion.joins & ~near[:-1]] | np.r_[motion.joins & ~near[1:], False]
    # An end moves only where it is wrong itself or one of the two points of a wrong step.
    concerned = wrong | np.r_[wrong_step[1:] & motion.joins, False]
    pace = np.clip(deepest[owner] / 40, 0.7, 10.0) * ~(alone | (tracks.ends & ~concerned))
    stay = np.where(tracks.ends, _STAY_END, _STAY)
    joins = np.r_[motion.joins & near[:-1] & near[1:], False]
    first = np.r_[0, np.cumsum(np.bincount(owner[points], minlength=len(tracks)))]
    chosen = _chosen(place_rules(rules), used)
    return _Problem(points, first, motion, joins[points], pace[points], stay[points], chosen)


def _chosen(rules: tuple[Rule, ...], used: list[tuple[int, Rule]]) -> tuple[Rule, ...]:
    """The rules of the program: all where they are few, so that the next shard needs no other program.

    A program of very many rules takes minutes to compile; what it leaves out is repaired afterwards.
    """
    if len(rules) <= _FEW_RULES:
        return rules
    least = sorted((number for number, _ in used), reverse=True)[:_MOST_RULES][-1:]
    return tuple(rule for number, rule in used if [number] >= least)[:_MOST_RULES]


def _round(
    problem: _Problem,
    part: NDArray[np.int64],
    shape: int,
    moved: NDArray[np.float64],
    mean: NDArray[np.float64],
    square: NDArray[np.float64],
    weight: NDArray[np.float64],
    field: tuple[NDArray[np.float32], float] | None,
) -> tuple[NDArray[np.float64], ...]:
    """STEPS steps of Adam for the points of one window; displacement and both moments after them."""
    import jax.numpy as jnp

    points, count = problem.points[part], len(part)
    motion = _padded_motion(problem.motion, points, problem.joins[part], shape)
    counted = np.zeros((len(problem.rules), shape), np.float32)
    lists = []
    for row, rule in enumerate(problem.rules):
        counted[row, :count] = weight
        if isinstance(rule, Closed) and not rule.hours.always:
            # Times do not move here, so the part of the penalty that depends on them is a number.
            seconds = rule.hours.depth_s(problem.motion.week_s[points], np) + rule.margin_s
            counted[row, :count] *= np.clip(seconds / _CLOSING_S, 0.0, 1.0)
        elif isinstance(rule, OneWay):
            at = motion.moved(motion.x_m + _fill(moved[0], shape), motion.y_m + _fill(moved[1], shape))
            lists.append(tuple(jnp.asarray(column) for column in near_pieces(rule, at)))
    potential, cell_m = field if field is not None else (np.zeros((1, 1), np.float32), 1.0)
    columns = [_fill(values, shape) for values in (moved, mean, square, problem.pace[part], problem.stay[part])]
    found = _advance(problem.rules, field is not None)(
        to_jax(motion), *(jnp.asarray(column) for column in columns), jnp.asarray(counted), tuple(lists),
        jnp.asarray(potential), jnp.float32(cell_m),
    )  # fmt: skip
    return tuple(np.nan_to_num(np.asarray(values, np.float64)[:, :count]) for values in found)


@functools.lru_cache(maxsize=4)
def _advance(rules: tuple[Rule, ...], attracted: bool) -> Callable[..., Any]:
    """The compiled round of descent for these rules; kept, because compiling costs seconds."""
    import jax
    import jax.numpy as jnp
    import optax

    adam = optax.scale_by_adam(b1=0.9, b2=0.95)

    def loss(
        d: Array, window: Motion, stay: Array, counted: Array, lists: _Lists, potential: Array, cell_m: Array
    ) -> Array:
        at = window.moved(window.x_m + d[0], window.y_m + d[1])
        left = iter(lists)
        wrong = sum(jnp.sum(_penalty(rule, at, left) * counted[row]) for row, rule in enumerate(rules))
        bend = jnp.where(window.joins, jnp.sum((d[:, 1:] - d[:, :-1]) ** 2, axis=0), 0.0)
        result = wrong + 0.5 * jnp.sum(stay * jnp.sum(d * d, axis=0)) + 0.5 * _SMOOTH * jnp.sum(bend)
        if attracted:
            # Points that only fill the window stay where they are, so that they need no mask here.
            result = result - _ATTRACTION_M * jnp.sum(_bilinear(potential, at.x_m / cell_m, at.y_m / cell_m))
        return result

    slope = jax.grad(loss)

    @jax.jit
    def advance(
        window: Motion, d: Array, mean: Array, square: Array, pace: Array, stay: Array, counted: Array, lists: _Lists,
        potential: Array, cell_m: Array,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        # Tracks of all ages share a window, so the correction for a young average is left out.
        state = optax.ScaleByAdamState(jnp.int32(10_000), mean, square)

        def step(carry: tuple[Array, Any], _: None) -> tuple[tuple[Array, Any], None]:
            d, state = carry
            gradient = jnp.nan_to_num(slope(d, window, stay, counted, lists, potential, cell_m))
            update, state = adam.update(gradient, state)
            return (d - pace * update, state), None

        (d, state), _ = jax.lax.scan(step, (d, state), None, length=STEPS)
        return d, state.mu, state.nu

    return advance


def _penalty(rule: Rule, at: Motion, lists: Iterator[tuple[Array, ...]]) -> Array:
    """The penalty without what does not change during a round: the hours, and the search for roads nearby."""
    if isinstance(rule, Closed):
        return dataclasses.replace(rule, hours=ALWAYS).penalty(at)
    if isinstance(rule, OneWay):
        piece, ends, directions, oneway = next(lists)
        return rule.penalty_among(Nearby(piece, ends, directions), oneway, at)
    return rule.penalty(at)


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


def _padded(count: int, longest: int) -> int:
    """The smallest window that holds this many points, or the longest track if that is more."""
    size = next(size for size in _WINDOWS if size >= count)
    while size < longest:
        size *= 2
    return size


def _fill(values: NDArray[Any], shape: int) -> NDArray[np.float32]:
    result = np.zeros((*values.shape[:-1], shape), np.float32)
    result[..., : values.shape[-1]] = values
    return result


def _padded_motion(motion: Motion, points: NDArray[np.int64], joins: NDArray[np.bool_], shape: int) -> Motion:
    """The window's points and, behind them, copies of its first one that nobody counts, each a track of its own."""
    which = np.concatenate([points, np.full(shape - len(points), points[0])])
    joined = np.zeros(shape - 1, bool)
    joined[: len(joins) - 1] = joins[:-1]
    columns = (motion.x_m, motion.y_m, motion.t_s, motion.week_s, motion.ground)
    x, y, t, week, ground = (np.asarray(column[which], np.float32) for column in columns)
    return Motion(x, y, t, week, joined, np.arange(shape + 1, dtype=np.int32), ground)
