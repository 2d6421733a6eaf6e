"""Penalty terms P_k, Eq. (target function with penalty), in original coordinates.

The paper writes ReLU(d_e(point, S'_c)) with S'_c the boundary in embedding space. Read literally, the distance to a
boundary is positive on both sides, and f_t maps from the embedding to the original space, not back. So each penalty has
two readings: `depth` (default), how far a point is on the wrong side; and `as-printed`, the distance to the boundary.
Both are evaluated at f_t(T').
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.dpe.align import Aligned
from wayveil.errors import InputError

READINGS = ("depth", "as-printed")


@dataclass(frozen=True)
class Term:
    """One penalty: its factor, the value at each point (m, n, k) -> (m, n), and which points break it."""

    name: str
    factor: float
    at_points: Callable[[Any], Any]
    broken: Callable[[NDArray[np.floating]], NDArray[np.bool_]]


def disc(centre: tuple[float, float], radius: float, factor: float, reading: str = "depth") -> Term:
    """A closed disc. Depth: ReLU(R - |p - c|); as printed: | |p - c| - R |."""
    _check(reading)

    def inside(points: Any, xp: Any) -> Any:
        dx, dy = points[..., 0] - centre[0], points[..., 1] - centre[1]
        square = dx * dx + dy * dy
        return radius - xp.where(square > 0, xp.sqrt(xp.where(square > 0, square, 1.0)), 0.0)

    def at_points(points: Any) -> Any:
        import jax.numpy as jnp

        depth = inside(points, jnp)
        return jnp.maximum(depth, 0.0) if reading == "depth" else jnp.abs(depth)

    return Term("disc", factor, at_points, lambda points: inside(np.asarray(points), np) > 0)


def box(low: tuple[float, float], high: tuple[float, float], factor: float, reading: str = "depth") -> Term:
    """A box that must not be left. Depth: distance outside in x plus that in y; as printed: to the nearest side."""
    _check(reading)

    def outside(points: Any, xp: Any) -> list[Any]:
        return [side for axis in (0, 1) for side in (low[axis] - points[..., axis], points[..., axis] - high[axis])]

    def at_points(points: Any) -> Any:
        import jax.numpy as jnp

        sides = outside(points, jnp)
        if reading == "depth":
            return sum(jnp.maximum(side, 0.0) for side in sides)
        return jnp.min(jnp.stack([jnp.abs(side) for side in sides]), axis=0)

    def broken(points: NDArray[np.floating]) -> NDArray[np.bool_]:
        is_broken: NDArray[np.bool_] = np.max(np.stack(outside(np.asarray(points), np)), axis=0) > 0
        return is_broken

    return Term("box", factor, at_points, broken)


def total(terms: Sequence[Term], points: Any) -> Any:
    """sum_k factor_k P_k over all points (m, n, k)."""
    return sum(term.factor * term.at_points(points).sum() for term in terms)


def rules_term(rules: Sequence[Any], aligned: Aligned, motion: Any, time_scale_mps: float, factor: float) -> Term:
    """The penalties of `wayveil.rules`, on the trajectories' own points (copies of the alignment are left out).

    `motion` is the `wayveil.rules.motion.Motion` of the originals: its clock moves along with the time coordinate.
    """
    own = np.flatnonzero(aligned.own.ravel())
    start_t = aligned.points[:, :, 2].ravel()[own]

    def moved(points: Any) -> Any:
        flat = points.reshape(-1, points.shape[-1])[own]
        t_s = motion.t_s + (flat[:, 2] - start_t) / time_scale_mps if time_scale_mps > 0 else None
        return motion.moved(flat[:, 0], flat[:, 1], t_s)

    def at_points(points: Any) -> Any:
        import jax.numpy as jnp

        here = moved(points)
        return sum((rule.penalty(here) for rule in rules), jnp.zeros(len(own)))

    def broken(points: NDArray[np.floating]) -> NDArray[np.bool_]:
        here = moved(np.asarray(points))
        result = np.zeros(len(own), bool)
        for rule in rules:
            result |= rule.violations(here)
        return result

    return Term("rules", factor, at_points, broken)


def _check(reading: str) -> None:
    if reading not in READINGS:
        raise InputError(f"Unknown penalty reading '{reading}'; choose one of {', '.join(READINGS)}.")
