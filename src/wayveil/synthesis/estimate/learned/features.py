"""Inputs of the network: noisy levels, the Bayesian estimate, the scope and the map, each relative to its scale.

Privacy: free (post-processing).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wayveil.core.density import NoisyLevel
from wayveil.core.pyramid import Field, spread

OCCUPANCY_INPUTS = 17
"""Input channels of the network for the occupancy; the stored weights have this shape."""
END_POINT_INPUTS = 12
"""Input channels of the network for end points."""
GAUSSIAN_OCCUPANCY_INPUTS = OCCUPANCY_INPUTS + 2
"""Input channels for the occupancy with Gaussian noise: also the precision of the coarse blocks of both fields."""
GAUSSIAN_END_POINT_INPUTS = END_POINT_INPUTS + 1
"""Input channels for end points with Gaussian noise: also the precision of their coarse blocks."""
CONSTANTS = 6
"""Inputs of both networks that are equal in all cells."""
_LOWEST_LOG = -10.0
"""Lower limit of the logarithm of a cell over the mean cell, so that empty cells do not dominate the input."""


def noisy_channels(levels: Sequence[NoisyLevel], shape: tuple[int, int]) -> NDArray[np.float32]:
    """(rows, columns, 3): asinh(count / noise) of each level, repeated over its base cells."""
    channels = [np.arcsinh(spread(level.counts / level.noise, level.side, shape)) / 3 for level in levels]
    return np.stack(channels, axis=-1).astype(np.float32)


def precision_channels(levels: Sequence[NoisyLevel], shape: tuple[int, int]) -> NDArray[np.float32]:
    """(rows, columns, 2): log(mean noise / noise), the relative precision of the two finer levels.

    Zero everywhere if a level has the same noise in all cells.
    """
    return np.concatenate([_precision(level, shape) for level in levels[1:]], axis=-1)


def coarse_precision_channel(levels: Sequence[NoisyLevel], shape: tuple[int, int]) -> NDArray[np.float32]:
    """(rows, columns, 1): the relative precision of the coarsest level."""
    return _precision(levels[0], shape)


def _precision(level: NoisyLevel, shape: tuple[int, int]) -> NDArray[np.float32]:
    noise = np.broadcast_to(level.noise, level.counts.shape)
    return np.log(level.mean_noise / spread(noise, level.side, shape)).astype(np.float32)[..., None]


def log_density(field: Field, area: Field) -> NDArray[np.float32]:
    """log(field / its mean per cell), bounded below, 0 outside the scope."""
    mean = max(field.sum(), 1e-300) / max(area.sum(), 1e-300)
    log = np.log(np.maximum(field / mean, np.exp(_LOWEST_LOG)))
    return np.where(area > 0, log, 0.0).astype(np.float32)


def road_channels(road_features: Sequence[Field] | None, shape: tuple[int, int]) -> NDArray[np.float32]:
    """(rows, columns, 4): log(1 + road length) of wide, medium and narrow roads, and a mask of the map's coverage.

    `road_features` contains an even number of classes from wide to narrow and, last, the mask of uncovered cells.
    """
    channels = np.zeros((*shape, 4), np.float32)
    if not road_features:
        return channels
    *classes, uncovered = road_features
    third = max(1, len(classes) // 3)
    covered = np.clip(1 - uncovered, 0, 1)
    for k, part in enumerate((classes[:third], classes[third : 2 * third], classes[2 * third :])):
        if len(part):
            channels[..., k] = np.log1p(np.maximum(sum(part), 0)) * covered
    channels[..., 3] = covered
    return channels


def constants(levels: Sequence[NoisyLevel], total: float, area: Field, mapped: bool) -> NDArray[np.float32]:
    """Noise of each level relative to its mean count, the finest side, the total, and whether there is a map."""
    cells = max(area.sum(), 1.0)
    total = max(total, 1.0)
    relative = [np.log(level.mean_noise * cells / (total * level.side**2)) / 4 for level in levels]
    return np.array([*relative, np.log2(levels[-1].side) / 4, np.log10(total) / 5, float(mapped)], np.float32)


def assemble(
    noisy: NDArray[np.float32],
    log_bayes: NDArray[np.float32],
    area: Field,
    roads: NDArray[np.float32],
    precision: NDArray[np.float32],
    other_field: NDArray[np.float32],
) -> NDArray[np.float32]:
    """The network's input fields, in the order of its training; `other_field` has channels about the other field."""
    channels: list[NDArray[np.generic]] = [
        noisy,
        log_bayes[..., None] / 4,
        (area > 0)[..., None],
        roads,
        precision,
        other_field,
    ]
    return np.concatenate(channels, axis=-1, dtype=np.float32)


def inputs_for_end_points(occupancy: Field, area: Field) -> NDArray[np.float32]:
    """(rows, columns, 1): the best estimate of the occupancy, as an input for the end points."""
    return log_density(occupancy, area)[..., None] / np.float32(4)


def inputs_for_occupancy(levels: Sequence[NoisyLevel], bayes: Field, area: Field) -> NDArray[np.float32]:
    """(rows, columns, 6): noisy counts, Bayesian estimate and precision of the end points, for the occupancy.

    With Gaussian noise there is one more channel: the precision of their coarse blocks.
    """
    log_bayes = log_density(bayes, area)[..., None] / 4
    shape = area.shape
    precision = precision_channels(levels, shape)
    if levels[0].gaussian:
        precision = np.concatenate([precision, coarse_precision_channel(levels, shape)], axis=-1)
    return np.concatenate([noisy_channels(levels, shape), log_bayes, precision], axis=-1)
