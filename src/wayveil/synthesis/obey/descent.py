"""Gradient descent on coordinates: points move until no rule is broken, as little and as smoothly as possible.

    minimise over d   λ Σ_rules penalty(x + d) + ½ Σ w_i |d_i|² + ½ s Σ |d_i − d_{i+1}|² − a Σ log A(x_i + d_i)

λ grows from round to round, so that the rules win in the end. w is larger at the ends of a trajectory. A is a density
that attracts points to places where people are. Only the points around a violation take part. They are processed in
windows of a fixed size, so that one program is compiled: a track that obeys after a round leaves its window, and the
next one in the queue takes its place.

Privacy: free (post-processing).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.errors import RuleError
from wayveil.progress import Progress, quiet
from wayveil.rules.motion import Array, Motion, to_jax
from wayveil.rules.rule import Rule
from wayveil.synthesis.obey.repair import place_rules
from wayveil.synthesis.obey.settings import DESCENT
from wayveil.synthesis.obey.task import Attraction, Task
from wayveil.synthesis.place.track_columns import Tracks, motion_of_tracks

Judge = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Descent:
    """The positions after the descent."""

    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Problem:
    """The points that take part, in the order of the tracks."""

    points: NDArray[np.int64]
    first: NDArray[np.int64]
    """(tracks + 1,) where each track's points start in `points`."""
    motion: Motion
    joins: NDArray[np.bool_]
    """(n,) whether each point is joined to the next one."""
    pace: NDArray[np.float64]
    """Step size of Adam in metres; zero for fixed points."""
    stay: NDArray[np.float64]
    """Weight of each squared displacement."""
    rules: tuple[Rule, ...]


class _State(NamedTuple):
    """Displacement of each point in metres, and both moments of Adam; (2, points)."""

    moved: Array
    mean: Array
    square: Array

    def take(self, part: NDArray[np.int64]) -> _State:
        """The state of some points."""
        return _State(*(values[:, part] for values in self))


class _Window(NamedTuple):
    """The points that move together, filled up to a fixed number."""

    motion: Motion
    pace: Array
    stay: Array
    weights: Array
    """(rules, points) λ of each."""
    prepared: tuple[tuple[Array, ...], ...]
    """What `Rule.prepare` returned, for each rule."""
    potential: Array
    """log A, on cells of `cell_m`."""
    cell_m: Array


def descend(tracks: Tracks, broken: Judge, task: Task, progress: Progress = quiet) -> Descent:
    """Move the points around each violation until their tracks obey, in at most rounds × steps steps.

    Parameters
    ----------
    broken
        A function of track indices and the positions of all their points; returns which tracks still break a rule.

    Privacy: free (post-processing).
    """
    x, y = tracks.x_m.copy(), tracks.y_m.copy()
    problem = _problem(tracks, task.rules, task.scope)
    if len(problem.points) == 0:
        return Descent(x, y)
    sizes = np.diff(problem.first)
    shape = _padded(min(int(sizes.sum()), DESCENT.windows[-1]), int(sizes.max()))
    field = _potential(task.attraction)
    inner = (problem.pace > 0) & (problem.stay < DESCENT.stay_weight_end)
    moved = task.random.normal(0, DESCENT.jitter_m, (2, len(problem.points))) * inner
    state = _State(moved, np.zeros_like(moved), np.zeros_like(moved))
    age = np.zeros(len(tracks), np.int64)
    queue = np.flatnonzero(sizes)
    total = len(queue)
    while len(queue):
        progress("refine", 1 - len(queue) / total)
        fits = max(1, int(np.searchsorted(np.cumsum(sizes[queue]), shape, side="right")))
        now, queue = queue[:fits], queue[fits:]
        part = ragged.take(problem.first, now)[1]
        weight = np.repeat(DESCENT.growth ** age[now], sizes[now])
        for values, after in zip(state, _round(problem, part, shape, state.take(part), weight, field)):
            values[:, part] = after
        age[now] += 1
        which = problem.points[part]
        x[which], y[which] = tracks.x_m[which] + moved[0, part], tracks.y_m[which] + moved[1, part]
        whole = ragged.take(tracks.offsets, now)[1]
        again = now[broken(now, x[whole], y[whole])]
        queue = np.r_[again[age[again] < DESCENT.rounds], queue]
    progress("refine", 1.0)
    return Descent(x, y)


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
            if rule.about_steps():
                wrong_step |= violated
            size_m = np.maximum(size_m, np.where(violated, penalty, 0.0))
    near = _near(wrong, motion.joins)
    points = np.flatnonzero(near)
    owner = tracks.owner
    deepest = np.zeros(len(tracks))
    np.maximum.at(deepest, owner, size_m)
    # A point next to one that does not take part stays, so that no step outside changes.
    alone = np.r_[False, motion.joins & ~near[:-1]] | np.r_[motion.joins & ~near[1:], False]
    # An end of a track moves only if it violates a rule itself or belongs to a violating step.
    concerned = wrong | np.r_[wrong_step[1:] & motion.joins, False]
    pace = np.clip(deepest[owner] / DESCENT.depth_per_step, DESCENT.least_step_m, DESCENT.most_step_m)
    pace = pace * ~(alone | (tracks.ends & ~concerned))
    stay = np.where(tracks.ends, DESCENT.stay_weight_end, DESCENT.stay_weight)
    joins = np.r_[motion.joins & near[:-1] & near[1:], False]
    first = ragged.offsets_of(np.bincount(owner[points], minlength=len(tracks)))
    chosen = _chosen(place_rules(rules), used)
    return _Problem(points, first, motion, joins[points], pace[points], stay[points], chosen)


def _chosen(rules: tuple[Rule, ...], used: list[tuple[int, Rule]]) -> tuple[Rule, ...]:
    """Return the rules to compile: all if they are few, otherwise those with the most violations."""
    if len(rules) <= DESCENT.few_rules:
        return rules
    least = sorted((number for number, _ in used), reverse=True)[: DESCENT.most_rules][-1:]
    return tuple(rule for number, rule in used if [number] >= least)[: DESCENT.most_rules]


def _round(
    problem: _Problem,
    part: NDArray[np.int64],
    shape: int,
    state: _State,
    weight: NDArray[np.float64],
    field: tuple[NDArray[np.float32], float] | None,
) -> _State:
    """Return the state after one round for the points of one window."""
    import jax.numpy as jnp

    points, count = problem.points[part], len(part)
    motion = _padded_motion(problem.motion, points, problem.joins[part], shape)
    weights = np.zeros((len(problem.rules), shape), np.float32)
    at = motion.moved(motion.x_m + _fill(state.moved[0], shape), motion.y_m + _fill(state.moved[1], shape))
    prepared = []
    for row, rule in enumerate(problem.rules):
        weights[row, :count] = weight
        factor = rule.time_factor(problem.motion.week_s[points])
        if factor is not None:
            weights[row, :count] *= factor
        prepared.append(tuple(jnp.asarray(column) for column in rule.prepare(at)))
    potential, cell_m = field if field is not None else (np.zeros((1, 1), np.float32), 1.0)
    pace, stay = (jnp.asarray(_fill(values[part], shape)) for values in (problem.pace, problem.stay))
    window = _Window(
        to_jax(motion), pace, stay, jnp.asarray(weights), tuple(prepared), jnp.asarray(potential), jnp.float32(cell_m)
    )
    before = _State(*(jnp.asarray(_fill(values, shape)) for values in state))
    found = _advance(_SameRules(problem.rules), field is not None)(window, before)
    return _State(*(np.nan_to_num(np.asarray(values, np.float64)[:, :count]) for values in found))


class _SameRules(tuple[Rule, ...]):
    """Rules as a key of a cache: equal if they are the same objects, whatever equality a rule's class defines."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameRules) and list(map(id, self)) == list(map(id, other))

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))


@functools.lru_cache(maxsize=4)
def _advance(rules: _SameRules, attracted: bool) -> Callable[..., Any]:
    """Return the compiled round of descent for these rules; cached, because compiling takes seconds."""
    import jax
    import jax.numpy as jnp
    import optax

    adam = optax.scale_by_adam(b1=DESCENT.first_moment, b2=DESCENT.second_moment)

    def loss(d: Array, window: _Window) -> Array:
        motion = window.motion
        at = motion.moved(motion.x_m + d[0], motion.y_m + d[1])
        wrong = sum(
            jnp.sum(_penalty(rule, at, own) * window.weights[row])
            for row, (rule, own) in enumerate(zip(rules, window.prepared))
        )
        bend = jnp.where(motion.joins, jnp.sum((d[:, 1:] - d[:, :-1]) ** 2, axis=0), 0.0)
        stay = 0.5 * jnp.sum(window.stay * jnp.sum(d * d, axis=0))
        result = wrong + stay + 0.5 * DESCENT.smooth_weight * jnp.sum(bend)
        if attracted:
            # Points that only fill the window do not move, so that they need no mask here.
            column, row = at.x_m / window.cell_m, at.y_m / window.cell_m
            result = result - DESCENT.attraction_m * jnp.sum(_bilinear(window.potential, column, row))
        return result

    slope = jax.grad(loss)

    @jax.jit
    def advance(window: _Window, before: _State) -> _State:
        # Tracks in different rounds share a window; a large step count switches off Adam's bias correction.
        adams = optax.ScaleByAdamState(jnp.int32(10_000), before.mean, before.square)

        def step(carry: tuple[Array, Any], _: None) -> tuple[tuple[Array, Any], None]:
            d, adams = carry
            update, adams = adam.update(jnp.nan_to_num(slope(d, window)), adams)
            return (d - window.pace * update, adams), None

        (d, adams), _ = jax.lax.scan(step, (before.moved, adams), None, length=DESCENT.steps)
        return _State(d, adams.mu, adams.nu)

    return advance


def _penalty(rule: Rule, at: Motion, prepared: tuple[Array, ...]) -> Array:
    try:
        return rule.place_penalty(at, prepared)
    except Exception as error:
        raise RuleError(
            f"Rule '{rule.name}': its penalty fails with jax arrays ({type(error).__name__}); "
            "use the functions of wayveil.rules.module_of(motion) in it."
        ) from error


def _bilinear(field: Any, column: Any, row: Any) -> Any:
    import jax.numpy as jnp

    rows, columns = field.shape
    column = jnp.clip(column - 0.5, 0, max(columns - 1.001, 0.0))
    row = jnp.clip(row - 0.5, 0, max(rows - 1.001, 0.0))
    c, r = jnp.floor(column).astype(jnp.int32), jnp.floor(row).astype(jnp.int32)
    u, v = column - c, row - r
    c1, r1 = jnp.minimum(c + 1, columns - 1), jnp.minimum(r + 1, rows - 1)
    return (1 - v) * ((1 - u) * field[r, c] + u * field[r, c1]) + v * ((1 - u) * field[r1, c] + u * field[r1, c1])


def _potential(attraction: Attraction | None) -> tuple[NDArray[np.float32], float] | None:
    if attraction is None or not attraction.density.max() > 0:
        return None
    floor = DESCENT.density_floor * attraction.density.max()
    return np.log(np.maximum(attraction.density, 0.0) + floor).astype(np.float32), attraction.grid.cell_m


def _near(wrong: NDArray[np.bool_], joins: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the points at most `neighbours` steps before or after a violation, on the same track."""
    near = wrong.copy()
    for _ in range(DESCENT.neighbours):
        wider = near.copy()
        wider[1:] |= near[:-1] & joins
        wider[:-1] |= near[1:] & joins
        near = wider
    return near


def _padded(count: int, longest: int) -> int:
    """Return the smallest window that holds this many points and the longest track."""
    size = next(size for size in DESCENT.windows if size >= count)
    while size < longest:
        size *= 2
    return size


def _fill(values: NDArray[Any], shape: int) -> NDArray[np.float32]:
    result = np.zeros((*values.shape[:-1], shape), np.float32)
    result[..., : values.shape[-1]] = values
    return result


def _padded_motion(motion: Motion, points: NDArray[np.int64], joins: NDArray[np.bool_], shape: int) -> Motion:
    """Return the window's points, filled up with copies of the first one that have no weight and no neighbours."""
    which = np.concatenate([points, np.full(shape - len(points), points[0])])
    joined = np.zeros(shape - 1, bool)
    joined[: len(joins) - 1] = joins[:-1]
    columns = (motion.x_m, motion.y_m, motion.t_s, motion.week_s, motion.ground)
    x, y, t, week, ground = (np.asarray(column[which], np.float32) for column in columns)
    return Motion(x, y, t, week, joined, np.arange(shape + 1, dtype=np.int32), ground)
