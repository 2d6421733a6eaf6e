"""Clip, quantise, and add exactly in int64: a sensitivity proof is about exact sums."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wayveil.errors import InputError

EXACT_FLOAT = 2**53
"""Every whole number up to here is a float64, so float sums that stay below it are exact."""
LARGEST_SUM = 2**62
"""Half of int64: the other half is left to the noise."""


def quantise(values: ArrayLike, resolution: int) -> NDArray[np.int64]:
    """q = trunc(clip(v, -1, 1) * resolution), towards zero, so that Σ|q| <= resolution * Σ|v|.

    The resolution is a power of two: then the product is exact and cannot be rounded upwards. A value that is
    not a number counts as 0; no trajectory may stop a measurement by what it contains.

    Privacy
    -------
    Not private (trusted side only).
    """
    if resolution < 1 or resolution & (resolution - 1) or resolution > 2**40:
        raise ValueError("resolution must be a power of two, at most 2**40")
    array = np.nan_to_num(np.asarray(values, np.float64), nan=0.0, posinf=1.0, neginf=-1.0)
    return np.trunc(np.clip(array, -1.0, 1.0) * resolution).astype(np.int64)


def clip_l1(quantised: NDArray[np.int64], row: NDArray[np.integer] | None, rows: int, limit: int) -> NDArray[np.int64]:
    """Make Σ|q| <= limit in every row: q * limit / Σ|q| towards zero where a row is above it, unchanged elsewhere.

    `quantised` has one value per entry with its row in `row` (sparse), or is (rows, k) with `row` None (dense).
    Float features whose norm is 1 on paper may be above it by rounding; here the bound becomes exact, and each
    row's result depends on that row only.

    Privacy
    -------
    Not private (trusted side only).
    """
    size = np.abs(quantised)
    if row is None:
        norms = size.sum(axis=1)
        if not (norms > limit).any():
            return quantised
        norm_of_entry = np.broadcast_to(norms[:, None], quantised.shape)
    else:
        norms = exact_bincount(row, size, rows)
        if not (norms > limit).any():
            return quantised
        norm_of_entry = norms[row]
    clipped, over = quantised.copy(), norm_of_entry > limit
    # Python integers: q * limit may not fit in int64. Few entries are ever above the limit.
    clipped[over] = [
        (1 if value > 0 else -1) * (abs(value) * limit // norm)
        for value, norm in zip(quantised[over].tolist(), norm_of_entry[over].tolist())
    ]
    return clipped


def check_overflow(count_bound: int, resolution: int) -> None:
    """Refuse before the data is read if `count_bound` trajectories of norm `resolution` might not fit in int64."""
    if count_bound * resolution >= LARGEST_SUM:
        raise InputError(
            f"Sums of up to {count_bound} trajectories at resolution {resolution} do not fit; "
            "split the dataset into smaller ones."
        )


def exact_bincount(index: NDArray[np.integer], weights: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """sums[k] = Σ weights[index == k] as exact integers, whatever the order or the partitioning.

    Privacy
    -------
    Not private (trusted side only).
    """
    if len(index) == 0:
        return np.zeros(size, np.int64)
    if int(index.min()) < 0 or int(index.max()) >= size:
        raise IndexError("index outside the sums")
    largest = max(int(weights.max()), -int(weights.min()))
    if largest * len(weights) >= EXACT_FLOAT and _total_size(weights) >= EXACT_FLOAT:
        if _total_size(weights) >= LARGEST_SUM:
            raise OverflowError("the sums do not fit in int64")
        sums = np.zeros(size, np.int64)
        np.add.at(sums, index, weights)
        return sums
    return np.bincount(index, weights=weights, minlength=size).astype(np.int64)


def _total_size(weights: NDArray[np.int64]) -> int:
    """Σ|w| without overflow: high and low halves are added apart."""
    size = np.abs(weights.astype(object)) if int(weights.min()) == -(2**63) else np.abs(weights)
    if size.dtype == object:
        return int(size.sum())
    return (int((size >> 31).sum()) << 31) + int((size & (2**31 - 1)).sum())
