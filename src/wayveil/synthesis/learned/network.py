"""The denoiser's forward pass in numpy: a small U-Net whose output is a log-correction to the Bayesian estimate.

Five scales; at each one residual block on the way down and one on the way up, y = x + conv(silu(film(conv(silu(x))))).
The noise scales enter through the film (a scale and a shift of every channel), so that one network serves every ε.
No compiler and no framework: a 3 × 3 convolution is one matrix product of patches in blocks that stay in the cache.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
CHANNELS = (24, 48, 64, 96, 96)
EMBEDDING = 32
LARGEST_CORRECTION = 6.0
"""The correction saturates here: no cell is moved by more than a factor of e^6."""
_ROWS = 2048


def parameter_shapes(inputs: int, constants: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of the network."""
    shapes: dict[str, tuple[int, ...]] = {
        "embed/w": (constants, EMBEDDING),
        "embed/b": (EMBEDDING,),
        "stem/w": (3, 3, inputs, CHANNELS[0]),
        "stem/b": (CHANNELS[0],),
        "head/w": (CHANNELS[0], 1),
        "head/b": (1,),
    }
    names = [f"down{i}" for i in range(len(CHANNELS))] + [f"up{i}" for i in range(len(CHANNELS) - 1)]
    for name in names:
        width = CHANNELS[int(name[-1])]
        shapes |= {
            f"{name}/conv1/w": (3, 3, width, width),
            f"{name}/conv1/b": (width,),
            f"{name}/conv2/w": (3, 3, width, width),
            f"{name}/conv2/b": (width,),
            f"{name}/film/w": (EMBEDDING, 2 * width),
            f"{name}/film/b": (2 * width,),
        }
    for i, (fine, coarse) in enumerate(pairwise(CHANNELS)):
        shapes |= {f"narrow{i}/w": (fine, coarse), f"widen{i}/w": (coarse, fine)}
    return shapes


def log_correction(weights: Mapping[str, Array], fields: Array, constants: Array) -> Array:
    """(rows, columns) correction of log density from (rows, columns, inputs) fields and the constants."""
    rows, columns, _ = fields.shape
    side = 2 ** (len(CHANNELS) - 1)
    padded = np.zeros((-(-rows // side) * side, -(-columns // side) * side, fields.shape[2]), np.float32)
    padded[:rows, :columns] = fields
    embedding = _silu(constants @ weights["embed/w"] + weights["embed/b"])
    x = _convolve(padded, weights["stem/w"], weights["stem/b"])
    kept = []
    for i in range(len(CHANNELS)):
        x = _block(weights, f"down{i}", x, embedding)
        if i < len(CHANNELS) - 1:
            kept.append(x)
            x = _halve(x) @ weights[f"narrow{i}/w"]
    for i in reversed(range(len(CHANNELS) - 1)):
        x = kept.pop() + _double(x @ weights[f"widen{i}/w"])
        x = _block(weights, f"up{i}", x, embedding)
    raw = (_silu(x) @ weights["head/w"] + weights["head/b"])[:rows, :columns, 0]
    return LARGEST_CORRECTION * np.tanh(raw / LARGEST_CORRECTION)


def _block(weights: Mapping[str, Array], name: str, x: Array, embedding: Array) -> Array:
    scale, shift = np.split(embedding @ weights[f"{name}/film/w"] + weights[f"{name}/film/b"], 2)
    inner = _convolve(_silu(x), weights[f"{name}/conv1/w"], weights[f"{name}/conv1/b"])
    inner *= 1 + scale
    inner += shift
    out = _convolve(_silu(inner), weights[f"{name}/conv2/w"], weights[f"{name}/conv2/b"])
    out += x
    return out


def _silu(x: Array) -> Array:
    result = np.negative(x)
    np.minimum(result, 80.0, out=result)  # exp of more overflows float32, and x / e^80 is nothing anyway
    np.exp(result, out=result)
    result += 1
    return np.divide(x, result, out=result)


def _halve(x: Array) -> Array:
    return 0.25 * (x[0::2, 0::2] + x[1::2, 0::2] + x[0::2, 1::2] + x[1::2, 1::2])


def _double(x: Array) -> Array:
    return np.repeat(np.repeat(x, 2, axis=0), 2, axis=1)


def _convolve(x: Array, kernel: Array, bias: Array) -> Array:
    """3 × 3 convolution with zeros around: patches of a strip of rows times one matrix."""
    rows, columns, inputs = x.shape
    padded = np.zeros((rows + 2, columns + 2, inputs), np.float32)
    padded[1:-1, 1:-1] = x
    # Three neighbours on a row lie side by side in memory: a window of 3 · inputs numbers is one copy, not three.
    windows = np.lib.stride_tricks.as_strided(padded, (rows + 2, columns, 3 * inputs), padded.strides, writeable=False)
    matrix = kernel.reshape(9 * inputs, -1)
    out = np.empty((rows, columns, matrix.shape[1]), np.float32)
    strip = max(1, _ROWS // columns)
    patches = np.empty((strip, columns, 3, 3 * inputs), np.float32)
    for start in range(0, rows, strip):
        stop = min(start + strip, rows)
        part = patches[: stop - start]
        for down in range(3):
            part[:, :, down] = windows[start + down : stop + down]
        np.matmul(part.reshape(-1, 9 * inputs), matrix, out=out[start:stop].reshape(-1, matrix.shape[1]))
    out += bias
    return out
