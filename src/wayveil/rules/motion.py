"""Motion: the input of a rule, as flat columns in metres and seconds, in numpy or in jax."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.core.week import WEEK_S
from wayveil.errors import InputError

Array = Any
"""A numpy array, a jax array or a jax tracer; a penalty is written once for all of them."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Points of many trajectories, one after the other.

    The arrays decide whether a rule computes with numpy or with jax. For a compiled gradient descent, make the motion
    with numpy first and put traced positions in with `moved`: `penalty(motion.moved(x, y))`.
    """

    x_m: Array
    """(n,) metres east of the scope's south-west corner."""
    y_m: Array
    """(n,) metres north of it."""
    t_s: Array
    """(n,) elapsed seconds; any origin that is the same for the points of one trajectory."""
    week_s: Array
    """(n,) seconds since Monday 00:00 in local time."""
    joins: Array
    """(n - 1,) whether points i and i + 1 belong to the same trajectory."""
    offsets: Array
    """(trajectories + 1,) first point of each trajectory, and n at the end."""
    ground: Array
    """(n,) metres on the ground per metre of x at the point's latitude; about 1 in a city."""

    def moved(self, x_m: Array, y_m: Array, t_s: Array | None = None) -> Motion:
        """Return the same trajectories at other positions and, if given, other elapsed times; `week_s` follows them."""
        if t_s is None:
            return dataclasses.replace(self, x_m=x_m, y_m=y_m)
        return dataclasses.replace(self, x_m=x_m, y_m=y_m, t_s=t_s, week_s=(self.week_s + (t_s - self.t_s)) % WEEK_S)

    @property
    def owner(self) -> Array:
        """(n,) index of each point's trajectory."""
        xp = array_module(self.joins)
        if self.x_m.shape[0] == 0:
            return xp.zeros(0, dtype=np.int32)
        return xp.concatenate([xp.zeros(1, dtype=np.int32), xp.cumsum(~self.joins).astype(np.int32)])

    @property
    def trajectories(self) -> int:
        """Number of trajectories."""
        return int(self.offsets.shape[0]) - 1


def array_module(*arrays: Array) -> ModuleType:
    """Return numpy if all arrays are numpy arrays, otherwise jax.numpy."""
    if all(isinstance(array, np.ndarray | np.generic) for array in arrays):
        return np
    import jax.numpy as jnp

    return jnp


def module_of(motion: Motion) -> ModuleType:
    """Return the array module (numpy or jax.numpy) to compute with for this motion."""
    return array_module(motion.x_m, motion.y_m, motion.t_s)


def motion_from_metres(x_m: Array, y_m: Array, t_utc: Array, offsets: Array, scope: Scope) -> Motion:
    """Return the motion of points in the scope's metres and Unix seconds.

    `t_s` becomes the time since each trajectory's first point, so that single precision is enough for it.

    Privacy: free where the points are synthetic.
    """
    offsets = np.asarray(offsets, np.int64)
    x, y, t = (np.asarray(column, np.float64) for column in (x_m, y_m, t_utc))
    if not len(x) == len(y) == len(t) or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(x):
        raise InputError("x, y and t need the same number of values, and offsets must run from 0 to that number.")
    if (np.diff(offsets) < 1).any():
        raise InputError("Each trajectory needs at least one point.")
    joins = np.ones(max(len(x) - 1, 0), dtype=bool)
    joins[offsets[1:-1] - 1] = False
    start = np.repeat(t[offsets[:-1]], np.diff(offsets))
    return Motion(x, y, t - start, scope.local_seconds(t), joins, offsets, scope.ground(y))


def motion_of(trajectories: Trajectories, scope: Scope) -> Motion:
    """Return the motion of trajectories in degrees.

    Privacy: free where the trajectories are synthetic; on real ones, trusted side only.
    """
    x, y = scope.to_metres(trajectories.lon, trajectories.lat)
    return motion_from_metres(x, y, trajectories.t_utc, trajectories.offsets, scope)


def to_jax(motion: Motion) -> Motion:
    """Return the motion with jax arrays, registered as a pytree, so that it can be an argument of a jitted function."""
    import jax
    import jax.numpy as jnp

    if "jax" not in _registered:
        names = [field.name for field in dataclasses.fields(Motion)]
        jax.tree_util.register_dataclass(Motion, data_fields=names, meta_fields=[])
        _registered.add("jax")
    return Motion(*(jnp.asarray(getattr(motion, field.name)) for field in dataclasses.fields(Motion)))


_registered: set[str] = set()


def step_lengths(motion: Motion, xp: ModuleType) -> tuple[Array, Array, Array, Array]:
    """Return Δx, Δy, length (m) and duration (s, at least 0) of each of the n - 1 steps; 0 between trajectories.

    The length has a finite gradient (0) where a trajectory stands still.
    """
    joins = motion.joins
    dx = xp.where(joins, motion.x_m[1:] - motion.x_m[:-1], 0.0)
    dy = xp.where(joins, motion.y_m[1:] - motion.y_m[:-1], 0.0)
    dt = xp.where(joins, motion.t_s[1:] - motion.t_s[:-1], 0.0)
    return dx, dy, safe_sqrt(dx * dx + dy * dy, xp), xp.maximum(dt, 0.0)


def ground_lengths(motion: Motion, xp: ModuleType) -> tuple[Array, Array]:
    """Return length on the ground (m) and duration (s) of each of the n - 1 steps, for speeds.

    The projection is true to scale at the middle latitude of the box only; without the correction, the error in a tall
    box is a few per cent.
    """
    dx, dy, _, dt = step_lengths(motion, xp)
    dx = dx * (motion.ground[1:] + motion.ground[:-1]) / 2
    return safe_sqrt(dx * dx + dy * dy, xp), dt


def safe_sqrt(square: Array, xp: ModuleType) -> Array:
    """sqrt(max(square, 0)), with gradient 0 instead of infinity at 0."""
    positive = square > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, square, 1.0)), 0.0)


def at_later_point(step_values: Array, motion: Motion, xp: ModuleType) -> Array:
    """(n,) from (n - 1,): a step's value is assigned to its later point; 0 at each first point."""
    if motion.x_m.shape[0] == 0:
        return xp.zeros(0, dtype=step_values.dtype)
    zero = xp.zeros(1, dtype=step_values.dtype)
    return xp.concatenate([zero, xp.where(motion.joins, step_values, xp.zeros_like(step_values))])


def at_last_point(values: Array, motion: Motion, xp: ModuleType) -> Array:
    """(n,) from (trajectories,): a trajectory's value is assigned to its last point; 0 at all others."""
    if motion.x_m.shape[0] == 0:
        return xp.zeros(0, dtype=values.dtype)
    last = xp.concatenate([~xp.asarray(motion.joins), xp.ones(1, dtype=bool)])
    return xp.where(last, values[motion.owner], xp.zeros_like(values[:1]))


def sum_by_trajectory(point_values: Array, motion: Motion, xp: ModuleType) -> Array:
    """(trajectories,) sum of a value of each point."""
    if xp is np:
        return np.bincount(motion.owner, weights=point_values, minlength=motion.trajectories)
    import jax

    return jax.ops.segment_sum(point_values, motion.owner, num_segments=motion.trajectories)
