"""What the network is scored by while it learns: divergences at several sizes of block, and how far mass was moved.

Scored cell by cell alone, an estimate wins by giving a little less to places where each cell is uncertain: mass leaves
the outskirts for the centre, and no cell's score shows it. The sums of large blocks and the energy distance do.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from product import features

_ENERGY_SIDE = 16
_LEAST_ENERGY = 1e-6
BLOCK_SIDES = (16, 32, 64)
"""Sides that the coarsest level has (`product.level_sides`), but for signals too weak for any block to matter."""


@dataclass(frozen=True)
class Lesson:
    """Weights of the parts of the loss."""

    cell: float = 1.0
    """Weight of the divergence cell by cell."""
    kl: float = 0.8
    blocks: tuple[tuple[int, float], ...] = ((4, 0.5), (16, 0.5))
    """(side in cells, weight) of the divergence of block sums."""
    energy: float = 0.0
    """Weight of the square root of the energy distance."""
    settled: bool = False
    """Half of the score after block sums were moved to the Bayesian ones, as the product did until this stage."""


LESSONS = {
    "cells": Lesson(),
    "scales": Lesson(blocks=((4, 0.5), (16, 2.0), (64, 5.0)), energy=2.0),
    "light": Lesson(blocks=((4, 0.5), (16, 1.0), (64, 2.0)), energy=1.0),
    "settled": Lesson(blocks=((4, 0.5), (16, 2.0), (64, 5.0)), energy=2.0, settled=True),
    "both": Lesson(cell=3.0, kl=0.6, blocks=((4, 1.0), (16, 2.0), (64, 4.0)), energy=2.0),
    "fine": Lesson(cell=3.0, kl=0.8, blocks=((4, 0.5), (16, 1.0), (64, 2.0)), energy=0.7),
    "far": Lesson(cell=3.0, kl=0.6, blocks=((4, 1.0), (16, 2.0), (64, 6.0)), energy=4.0),
}
"""`cells` is the loss of the first three stages, `scales` that of the fourth, `both` that of the fifth and sixth; the
others were tried beside them."""


def score(lesson: Lesson, truth, log_bayes, log_p, constants):
    """The loss of one field, one number a sample; `truth` unscaled, the others log shares, `constants` the field's."""
    truth = truth / jnp.maximum(truth.sum(axis=(1, 2), keepdims=True), 1e-9)
    value = _score(lesson, truth, log_p)
    if not lesson.settled:
        return value
    return 0.5 * (value + _score(lesson, truth, settle(log_p, log_bayes, constants)))


def _score(lesson: Lesson, truth, log_p):
    p = jnp.exp(log_p)
    value = lesson.cell * jsd(truth, p) + lesson.kl * kl(truth, log_p)
    for side, weight in lesson.blocks:
        value += weight * jsd(blocks(truth, side), blocks(p, side))
    if lesson.energy:
        value += lesson.energy * jnp.sqrt(energy(truth, p) + _LEAST_ENERGY)
    return value


def settle(log_p, log_bayes, constants):
    """Bayesian block sums, with a map halfway, as the product once did; the side follows from the constants."""
    fine = jnp.round(2 ** (4 * constants[:, 3]))
    share = jnp.where(constants[:, features.CONSTANTS - 1] > 0, 0.5, 1.0)[:, None, None]
    p, bayes = jnp.exp(log_p), jnp.exp(log_bayes)
    moved = log_p
    for side in BLOCK_SIDES:
        mine, theirs = (jnp.maximum(blocks(field, side), 1e-12) for field in (p, bayes))
        factor = share * (jnp.log(theirs) - jnp.log(mine))
        wide = jnp.repeat(jnp.repeat(factor, side, axis=1), side, axis=2)
        moved = jnp.where((jnp.minimum(16 * fine, 64) == side)[:, None, None], log_p + wide, moved)
    flat = moved.reshape(len(moved), -1)
    return (flat - jax.nn.logsumexp(flat, axis=1, keepdims=True)).reshape(moved.shape)


def energy(truth, p):
    """−Σ d_i·d_j·|x_i − x_j| / Σ p_i·t_j·|x_i − x_j| with d = p − t, on blocks of 16 cells."""
    t, q = blocks(truth, _ENERGY_SIDE), blocks(p, _ENERGY_SIDE)
    y, x = np.mgrid[: t.shape[1], : t.shape[2]].reshape(2, -1).astype(np.float32)
    distance = jnp.asarray(np.hypot(x[:, None] - x, y[:, None] - y))
    t, q = t.reshape(len(t), -1), q.reshape(len(q), -1)
    gap = q - t
    apart = -(_times(gap, distance) * gap).sum(axis=1)
    return jnp.maximum(apart, 0.0) / jnp.maximum((_times(q, distance) * t).sum(axis=1), 1e-9)


def _times(a, b):
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)  # differences of nearly equal sums


def kl(truth, log_p):
    """KL(truth ‖ p) in nats."""
    return _entropy_sum(truth, jnp.log(jnp.maximum(truth, 1e-20)) - log_p)


def jsd(p, q):
    """Jensen–Shannon divergence in nats."""
    middle = jnp.log(jnp.maximum((p + q) / 2, 1e-20))
    parts = [_entropy_sum(a, jnp.log(jnp.maximum(a, 1e-20)) - middle) for a in (p, q)]
    return 0.5 * (parts[0] + parts[1])


def blocks(field, side: int):
    """Sums of squares of `side` cells."""
    rows, columns = field.shape[1:]
    return field.reshape(-1, rows // side, side, columns // side, side).sum(axis=(2, 4))


def _entropy_sum(weight, value):
    return jnp.where(weight > 0, weight * value, 0.0).sum(axis=(1, 2))
