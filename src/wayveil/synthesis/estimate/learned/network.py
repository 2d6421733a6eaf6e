"""The denoiser's forward pass in numpy: a small U-Net whose output is a log-correction to the Bayesian estimate.

Each of five scales has a residual block on the way down and one up: y = x + conv(swish(film(conv(swish(x))))).
The noise scales enter through FiLM (a scale and a shift of every channel), so that one network serves every ε. The code
needs no deep-learning framework: a 3 × 3 convolution is three matrix products per strip of rows, added in place.
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
CHANNELS = (24, 48, 64, 96, 96)
"""Channels at each scale, from fine to coarse."""
PATCH = 1
"""Side of the patches of cells that the network processes as one position. 2 was 10 % faster and 3 % worse."""
EMBEDDING = 32
"""Size of the embedding of the noise scales."""
LARGEST_CORRECTION = 6.0
"""The correction saturates here: no cell is moved by more than a factor of e^6."""
_STRIP_CELLS = 4000
"""Cells of a strip of rows that are convolved at a time, which bounds the memory."""


def parameter_shapes(
    inputs: int, constants: int, channels: tuple[int, ...] | None = None, patch: int | None = None
) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of the network."""
    channels, patch = channels or CHANNELS, patch or PATCH
    shapes: dict[str, tuple[int, ...]] = {
        "embed/w": (constants, EMBEDDING),
        "embed/b": (EMBEDDING,),
        "stem/w": (3, 3, inputs * patch**2, channels[0]),
        "stem/b": (channels[0],),
        "head/w": (channels[0], patch**2),
        "head/b": (patch**2,),
    }
    names = [f"down{i}" for i in range(len(channels))] + [f"up{i}" for i in range(len(channels) - 1)]
    for name in names:
        width = channels[int(name[-1])]
        shapes |= {
            f"{name}/conv1/w": (3, 3, width, width),
            f"{name}/conv1/b": (width,),
            f"{name}/conv2/w": (3, 3, width, width),
            f"{name}/conv2/b": (width,),
            f"{name}/film/w": (EMBEDDING, 2 * width),
            f"{name}/film/b": (2 * width,),
        }
    for i, (fine, coarse) in enumerate(pairwise(channels)):
        shapes |= {f"narrow{i}/w": (fine, coarse), f"widen{i}/w": (coarse, fine)}
    return shapes


def patch_of(weights: Mapping[str, Any]) -> int:
    """Side of the patches of cells that the network processes as one position; it has one output for each cell."""
    return math.isqrt(weights["head/w"].shape[1])


def depth_of(weights: Mapping[str, Any]) -> int:
    """Number of scales."""
    return sum(name.startswith("down") and name.endswith("conv1/w") for name in weights)


def log_correction(weights: Mapping[str, Array], fields: Array, constants: Array) -> Array:
    """(rows, columns) correction of log density from (rows, columns, inputs) fields and the constants."""
    rows, columns, inputs = fields.shape
    patch, depth = patch_of(weights), depth_of(weights)
    side = patch * 2 ** (depth - 1)
    padded_rows, padded_columns = -(-rows // side) * side, -(-columns // side) * side
    padded = np.zeros((padded_rows, padded_columns, inputs), np.float32)
    padded[:rows, :columns] = fields
    folded = padded.reshape(padded_rows // patch, patch, padded_columns // patch, patch, inputs).swapaxes(1, 2)
    embedding = _swish(constants @ weights["embed/w"] + weights["embed/b"])
    stem = folded.reshape(padded_rows // patch, padded_columns // patch, -1)
    x = _convolve(stem, weights["stem/w"], _filled(stem, weights["stem/b"]))
    kept = []
    for i in range(depth):
        x = _block(weights, f"down{i}", x, embedding)
        if i < depth - 1:
            kept.append(x)
            x = _pooled(x) @ (weights[f"narrow{i}/w"] / np.float32(4))
    for i in reversed(range(depth - 1)):
        x = _block(weights, f"up{i}", _spread_onto(kept.pop(), x @ weights[f"widen{i}/w"]), embedding)
    raw = _swish(x) @ weights["head/w"] + weights["head/b"]
    patches = raw.reshape(padded_rows // patch, padded_columns // patch, patch, patch)
    raw = patches.swapaxes(1, 2).reshape(padded_rows, padded_columns)[:rows, :columns]
    result: Array = LARGEST_CORRECTION * np.tanh(raw / LARGEST_CORRECTION)
    return result


def _block(weights: Mapping[str, Array], name: str, x: Array, embedding: Array) -> Array:
    """x + conv(swish(film(conv(swish(x))))), written into x."""
    scale, shift = np.split(embedding @ weights[f"{name}/film/w"] + weights[f"{name}/film/b"], 2)
    # FiLM scales the output of the first convolution; scaling its kernel instead saves two passes.
    kernel, bias = weights[f"{name}/conv1/w"] * (1 + scale), weights[f"{name}/conv1/b"] * (1 + scale) + shift
    inner = _convolve(x, kernel, _filled(x, bias), swish=True)
    x += weights[f"{name}/conv2/b"]
    return _convolve(inner, weights[f"{name}/conv2/w"], x, swish=True)


def _filled(x: Array, bias: Array) -> Array:
    """An array of the size of `x` that holds the bias in every cell."""
    result = np.empty((*x.shape[:2], len(bias)), np.float32)
    result[:] = bias
    return result


def _swish(x: Array, out: Array | None = None) -> Array:
    """x · clip(x / 6 + ½, 0, 1): the shape of x · sigmoid(x) without an exponential."""
    result = np.multiply(x, np.float32(1 / 6), out=out)
    result += np.float32(0.5)
    np.clip(result, np.float32(0), np.float32(1), out=result)
    result *= x
    return result


def _pooled(x: Array) -> Array:
    """Sums of 2 × 2 cells."""
    rows = x[0::2] + x[1::2]
    return rows[:, 0::2] + rows[:, 1::2]


def _spread_onto(fine: Array, coarse: Array) -> Array:
    """`fine` plus `coarse` with each cell repeated 2 × 2 times; written into `fine`."""
    rows, columns, channels = coarse.shape
    fine.reshape(rows, 2, columns, 2, channels)[...] += coarse[:, None, :, None]
    return fine


def _convolve(x: Array, kernel: Array, onto: Array, swish: bool = False) -> Array:
    """`onto` plus the 3 × 3 convolution of x, or of its swish, with zero padding; written into `onto`."""
    from scipy.linalg.blas import sgemm

    rows, columns, inputs = x.shape
    outputs = kernel.shape[3]
    matrices = [np.ascontiguousarray(kernel[down].reshape(3 * inputs, outputs), np.float32).T for down in range(3)]
    strip = max(1, min(_STRIP_CELLS // columns, rows))
    padded = np.zeros((strip + 2, columns + 2, inputs), np.float32)
    # Three neighbours in a row are contiguous in memory: a window of 3 · inputs numbers is one copy instead of three.
    # The rows above and below use the same windows, shifted by one row of the strip, and need no copy.
    windows = np.lib.stride_tricks.as_strided(padded, (strip + 2, columns, 3 * inputs), padded.strides, writeable=False)
    copied = np.empty((strip + 2, columns, 3 * inputs), np.float32)
    for start in range(0, rows, strip):
        stop = min(start + strip, rows)
        low, high = max(start - 1, 0), min(stop + 1, rows)
        inside = padded[low - start + 1 : high - start + 1, 1:-1]
        if swish:
            _swish(x[low:high], out=inside)
        else:
            inside[:] = x[low:high]
        if high < stop + 1:
            padded[stop - start + 1] = 0.0
        copied[: stop - start + 2] = windows[: stop - start + 2]
        if start == 0:
            copied[0] = 0.0
        target = onto[start:stop].reshape(-1, outputs).T
        for down, matrix in enumerate(matrices):
            cells = copied[down : down + stop - start].reshape(-1, 3 * inputs).T
            sgemm(1.0, matrix, cells, 1.0, target, overwrite_c=1)  # all in Fortran order: no copies
    return onto
