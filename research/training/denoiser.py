"""The U-Net of `wayveil.synthesis.estimate.learned.network` in jax, its loss, and one optimiser step on a pool."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from lessons import LESSONS, Lesson, blocks, jsd, kl, score
from product import features, network

EMA = 0.999
DTYPE = jnp.bfloat16
_LOWEST_LOG = features._LOWEST_LOG
INPUTS = {"occupancy": features.GAUSSIAN_OCCUPANCY_INPUTS, "end_points": features.GAUSSIAN_END_POINT_INPUTS}
_OFFSET_WEIGHT = 0.01
"""Corrections that are all high or all low give the same shares, until they reach their bound and learn no more: that
ended the lessons of the end points in the ninth stage, before this weight was there."""


def initial_weights(seed: int, shape: tuple[int, tuple[int, ...]] | None = None, start: dict | None = None) -> dict:
    """He-scaled kernels; films and the last layer zero, so that training starts at the Bayesian estimate.

    `shape` is (patch, channels). Of the weights to start from every array is taken whose name fits and that is not
    larger, where a network that folds squares of cells takes the deeper scales of one that does not. A wider network
    begins as the one it starts from: what its new channels say is not listened to at first.
    """
    random = np.random.default_rng([seed, 7])
    patch, channels = shape or (network.PATCH, network.CHANNELS)
    weights = {}
    for kind, inputs in INPUTS.items():
        weights[kind] = {}
        known = (start or {}).get(kind, {})
        skipped = patch // network.patch_of(known) - 1 if known else 0
        for name, size in network.parameter_shapes(inputs, features.CONSTANTS, channels, patch).items():
            gain = 0.0 if "film" in name or "head" in name or name.endswith("/b") else 1.4
            gain *= 0.4 if "conv2" in name else 1.0
            values = random.normal(size=size) * gain / np.sqrt(max(np.prod(size[:-1]), 1))
            scale = re.search(r"\d", name.split("/")[0])
            theirs = name.replace(scale[0], str(int(scale[0]) + skipped), 1) if scale else name
            old = known.get(theirs)
            if old is not None and (patch == network.patch_of(known) or old.shape == size):
                values = _grown(values, np.asarray(old), halves=2 if "film" in name else 1)
            weights[kind][name] = jnp.array(values, jnp.float32)  # a copy: the states are donated
    return weights


def _grown(fresh: np.ndarray, old: np.ndarray, halves: int) -> np.ndarray:
    """`old` in the corner of `fresh`, and nothing from new channels to old ones; new channels come last.

    A film's last axis holds two halves, the scales and the shifts.
    """
    wide = fresh.reshape(*fresh.shape[:-1], halves, -1).copy()
    narrow = old.reshape(*old.shape[:-1], halves, -1)
    wide[..., : narrow.shape[-1]] = 0.0
    wide[tuple(slice(size) for size in narrow.shape)] = narrow
    return wide.reshape(fresh.shape)


def swish(x):
    """x · clip(x / 6 + ½, 0, 1)."""
    return x * jnp.clip(x * (1 / 6) + 0.5, 0.0, 1.0)


def log_correction(weights, fields, constants, dtype=None):
    """(batch, rows, columns): the same arithmetic as the product's numpy code."""
    dtype = dtype or DTYPE
    cast = {name: value.astype(dtype) for name, value in weights.items()}
    embedding = swish(constants @ weights["embed/w"] + weights["embed/b"])

    def convolve(x, name):
        out = jax.lax.conv_general_dilated(
            x, cast[f"{name}/w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return out + cast[f"{name}/b"]

    def block(x, name):
        film = embedding @ weights[f"{name}/film/w"] + weights[f"{name}/film/b"]
        scale, shift = jnp.split(film[:, None, None].astype(dtype), 2, axis=-1)
        inner = convolve(swish(x), f"{name}/conv1") * (1 + scale) + shift
        return x + convolve(swish(inner), f"{name}/conv2")

    patch, depth = network.patch_of(weights), network.depth_of(weights)
    batch, rows, columns, inputs = fields.shape
    folded = fields.astype(dtype).reshape(batch, rows // patch, patch, columns // patch, patch, inputs)
    folded = folded.swapaxes(2, 3).reshape(batch, rows // patch, columns // patch, -1)
    x, kept = convolve(folded, "stem"), []
    for i in range(depth):
        x = block(x, f"down{i}")
        if i < depth - 1:
            kept.append(x)
            size = x.shape
            halved = x.reshape(size[0], size[1] // 2, 2, size[2] // 2, 2, size[3]).mean(axis=(2, 4))
            x = halved @ cast[f"narrow{i}/w"]
    for i in reversed(range(depth - 1)):
        wide = x @ cast[f"widen{i}/w"]
        x = kept.pop() + jnp.repeat(jnp.repeat(wide, 2, axis=1), 2, axis=2)
        x = block(x, f"up{i}")
    raw = swish(x).astype(jnp.float32) @ weights["head/w"] + weights["head/b"]
    raw = raw.reshape(batch, rows // patch, columns // patch, patch, patch).swapaxes(2, 3).reshape(batch, rows, columns)
    return network.LARGEST_CORRECTION * jnp.tanh(raw / network.LARGEST_CORRECTION)


def log_share(log_bayes, correction, area):
    """log softmax of the corrected log density over the scope; very negative outside."""
    logits = jnp.where(area > 0, log_bayes + correction, -1e9)
    flat = logits.reshape(len(logits), -1)
    return jax.nn.log_softmax(flat, axis=-1).reshape(logits.shape)


def predict(weights, fields, constants, dtype=None):
    """Log shares of occupancy and end points, from packed fields (see `samples.FIELDS`)."""
    return [share for share, _ in predict_with_offsets(weights, fields, constants, dtype)]


def predict_with_offsets(weights, fields, constants, dtype=None):
    """(log shares, mean correction a sample) of occupancy and of end points.

    A share does not tell by how much all corrections are too high or too low together.
    """
    fields = fields.astype(jnp.float32)
    area, roads = fields[..., 4], fields[..., 5:9]
    log_bayes, end_log_bayes = fields[..., 3], fields[..., 13]
    shown = jnp.concatenate(
        [fields[..., 0:3], log_bayes[..., None] / 4, area[..., None], roads, fields[..., 15:17],
         fields[..., 10:13], end_log_bayes[..., None] / 4, fields[..., 17:19], fields[..., 20:21], fields[..., 19:20]],
        axis=-1,
    )  # fmt: skip
    half = features.CONSTANTS
    correction = log_correction(weights["occupancy"], shown, constants[:, :half], dtype)
    occupancy = log_share(log_bayes, correction, area)
    cells = area.sum(axis=(1, 2), keepdims=True)

    def offset(correction):
        return (correction * area).sum(axis=(1, 2)) / cells[:, 0, 0]

    found = [(occupancy, offset(correction))]
    log_occupancy = jnp.where(area > 0, jnp.maximum(occupancy + jnp.log(cells), _LOWEST_LOG), 0.0)
    shown = jnp.concatenate(
        [fields[..., 10:13], end_log_bayes[..., None] / 4, area[..., None], roads,
         fields[..., 17:19], jax.lax.stop_gradient(log_occupancy)[..., None] / 4, fields[..., 20:21]], axis=-1
    )  # fmt: skip
    correction = log_correction(weights["end_points"], shown, constants[:, half:], dtype)
    return [*found, (log_share(end_log_bayes, correction, area), offset(correction))]


def divergences(truth, log_p):
    """Jensen–Shannon divergence at 1, 4 and 16 cells, and KL(truth ‖ p); nats, one of each a sample."""
    p = jnp.exp(log_p)
    truth = truth / jnp.maximum(truth.sum(axis=(1, 2), keepdims=True), 1e-9)
    return [jsd(blocks(truth, side), blocks(p, side)) for side in (1, 4, 16)] + [kl(truth, log_p)]


def loss(weights, fields, constants, lesson: Lesson = LESSONS["cells"]):
    """The lesson's score of both fields, mean over the batch, and a little for corrections that drift off together."""
    found = predict_with_offsets(weights, fields, constants)
    fields = fields.astype(jnp.float32)
    total = 0.0
    for (truth, bayes), (log_p, offset), known in zip(((9, 3), (14, 13)), found, jnp.split(constants, 2, axis=1)):
        log_bayes = log_share(fields[..., bayes], 0.0, fields[..., 4])
        total += score(lesson, fields[..., truth], log_bayes, log_p, known).mean()
        total += _OFFSET_WEIGHT * (offset**2).mean()
    return total


def optimiser():
    """AdamW with clipped gradients; the rate is set step by step by the caller."""
    return optax.chain(
        optax.clip_by_global_norm(0.5), optax.scale_by_adam(b2=0.99), optax.add_decayed_weights(1e-4), optax.scale(-1.0)
    )


@partial(jax.jit, static_argnames=("batch", "steps", "lesson"), donate_argnums=(0,))
def train_steps(state, pool, filled, rate, batch: int, steps: int, lesson: Lesson = LESSONS["cells"]):
    """`steps` optimiser steps on random samples of the pool, each batch turned and flipped as a whole."""

    def one(state, _):
        weights, average, memory, key, step = state
        key, pick, turn = jax.random.split(key, 3)
        index = jax.random.randint(pick, (batch,), 0, filled)
        fields, constants = pool[0][index], pool[1][index]
        flips = jax.random.bernoulli(turn, 0.5, (3,))
        fields = jnp.where(flips[0], fields[:, ::-1], fields)
        fields = jnp.where(flips[1], fields[:, :, ::-1], fields)
        fields = jnp.where(flips[2], fields.swapaxes(1, 2), fields)
        value, slope = jax.value_and_grad(loss)(weights, fields, constants, lesson)
        sound = jnp.isfinite(optax.global_norm(slope))  # one bad sample must not end a training
        slope = jax.tree.map(lambda s: jnp.where(sound, s, 0.0), slope)
        change, memory = optimiser().update(slope, memory, weights)
        weights = jax.tree.map(lambda w, c: w + rate * c, weights, change)
        decay = jnp.minimum(EMA, (1 + step) / (10 + step))
        average = jax.tree.map(lambda a, w: decay * a + (1 - decay) * w, average, weights)
        return (weights, average, memory, key, step + 1), value

    state, values = jax.lax.scan(one, state, length=steps)
    return state, values.mean()


def initial_state(seed: int, shape=None, start=None):
    """Weights, their average, the optimiser's memory, a key and a step counter."""
    weights = initial_weights(seed, shape, start)
    return (
        weights,
        jax.tree.map(jnp.copy, weights),
        optimiser().init(weights),
        jax.random.key(seed),
        jnp.zeros((), jnp.int32),
    )


@partial(jax.jit, donate_argnums=(0,))
def put(pool, fields, constants, start):
    """Write a chunk of samples into the pool."""
    return (
        jax.lax.dynamic_update_slice_in_dim(pool[0], fields, start, 0),
        jax.lax.dynamic_update_slice_in_dim(pool[1], constants, start, 0),
    )
