"""Statistics of each row of a ragged column (see `core.ragged`); NaN for rows that have too few elements."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def divided(numerator: NDArray[Any], denominator: NDArray[Any]) -> Floats:
    """Quotients; NaN where the denominator is 0 or NaN."""
    result = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=np.nan_to_num(denominator) != 0)
    return result


def total(column: NDArray[np.generic], offsets: Ints) -> Floats:
    """Sum of each row; 0 for an empty one."""
    counts = np.diff(offsets)
    return np.bincount(ragged.owners(counts), np.asarray(column, float), minlength=len(counts)).astype(float)


def mean(column: NDArray[np.generic], offsets: Ints) -> Floats:
    """Mean of each row."""
    return divided(total(column, offsets), np.diff(offsets))


def largest(column: Floats, offsets: Ints) -> Floats:
    """Maximum of each row."""
    result = np.full(len(offsets) - 1, np.nan)
    filled = np.diff(offsets) > 0
    if filled.any():
        result[filled] = np.maximum.reduceat(column, offsets[:-1][filled])
    return result


def smallest(column: Floats, offsets: Ints) -> Floats:
    """Minimum of each row."""
    return -largest(-column, offsets)


def deviation(column: Floats, offsets: Ints) -> Floats:
    """Standard deviation of each row."""
    return np.sqrt(mean(centred(column, offsets) ** 2, offsets))


def centred(column: Floats, offsets: Ints) -> Floats:
    """Each element minus the mean of its row."""
    return column - mean(column, offsets)[ragged.owners(np.diff(offsets))]


def quantiles(column: Floats, offsets: Ints, shares: tuple[float, ...]) -> list[Floats]:
    """Quantiles of each row, by linear interpolation."""
    counts = np.diff(offsets)
    ordered = np.append(column[np.lexsort((column, ragged.owners(counts)))], np.nan)
    result = []
    for share in shares:
        place = share * np.maximum(counts - 1, 0)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, np.maximum(counts - 1, 0))
        a, b = ordered[offsets[:-1] + low], ordered[offsets[:-1] + high]
        result.append(np.where(counts > 0, a + (place - low) * (b - a), np.nan))
    return result


def correlation(one: Floats, other: Floats, offsets: Ints, fewest: int) -> Floats:
    """Correlation of two columns within each row of at least `fewest` elements."""
    a, b = centred(one, offsets), centred(other, offsets)
    spread = np.sqrt(total(a * a, offsets) * total(b * b, offsets))
    known = (np.diff(offsets) >= fewest) & (spread > 1e-6)
    return np.where(known, divided(total(a * b, offsets), np.maximum(spread, 1e-12)), np.nan)


def autocorrelation(column: Floats, offsets: Ints, lag: int = 1) -> Floats:
    """Σ c(i)·c(i + lag) / Σ c(i)², with c centred, of each row of at least lag + 2 elements."""
    counts = np.diff(offsets)
    owner, c = ragged.owners(counts), centred(column, offsets)
    same = owner[lag:] == owner[:-lag] if len(c) > lag else np.zeros(0, bool)
    pairs = np.bincount(owner[lag:][same], (c[lag:] * c[: len(c) - lag])[same], minlength=len(counts))
    squares = total(c * c, offsets)
    return np.where((counts >= lag + 2) & (squares > 1e-9), divided(pairs, np.maximum(squares, 1e-12)), np.nan)


def shortened(offsets: Ints, number: int) -> Ints:
    """Offsets of the rows with `number` fewer elements each, but at least 0."""
    return ragged.offsets_of(np.maximum(np.diff(offsets) - number, 0))
