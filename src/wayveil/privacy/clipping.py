"""Clip the contribution of each unit to an L2 bound, exactly and towards zero.

The noise of the Gaussian mode follows the L2 norm of what one unit adds to an answer. A unit's integer vector is scaled
down until its norm, computed in exact integers, is within the bound. The result depends on that unit's vector alone.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.privacy.fixedpoint import EXACT_FLOAT, exact_bincount

_HALF_BITS = 20
_SHRINK = 2.0**-40
_TRIES = 40


@dataclass(frozen=True, eq=False)
class UnitVectors:
    """Sparse integer vectors, one for each unit: unit `unit[k]` has `value[k]` at position `column[k]`.

    No pair of unit and column occurs twice, and there are no zeros.

    Privacy: not private (trusted side only).
    """

    units: int
    unit: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[np.int64]

    @classmethod
    def added_up(
        cls, units: int, size: int, unit: NDArray[np.int64], column: NDArray[np.int64], value: NDArray[np.int64]
    ) -> "UnitVectors":
        """The vectors of `size` values with these entries, in any order; entries at the same place are added."""
        if units * size >= 2**62:
            raise OverflowError("too many units for one batch")
        key, place = np.unique(unit * size + column, return_inverse=True)
        total = exact_bincount(place, value, len(key))
        some = total != 0
        return cls(units, key[some] // size, key[some] % size, total[some])

    def sums(self, size: int) -> NDArray[np.int64]:
        """The sum of all vectors."""
        return exact_bincount(self.column, self.value, size)


def squared_norms(vectors: UnitVectors) -> NDArray[np.object_]:
    """The exact squared L2 norm of each unit's vector, as Python integers.

    Privacy: not private (trusted side only).
    """
    size = np.abs(vectors.value)
    largest = int(size.max()) if len(size) else 0
    if largest * largest * max(len(size), 1) < EXACT_FLOAT:
        return exact_bincount(vectors.unit, size * size, vectors.units).astype(object)
    if largest >= 1 << 2 * _HALF_BITS:
        raise OverflowError("a unit's contribution is too large to be squared exactly")
    # (h·2^20 + l)² in three sums that each fit in int64.
    high, low = size >> _HALF_BITS, size & ((1 << _HALF_BITS) - 1)
    norms = np.zeros(vectors.units, object)
    for part, shift in ((high * high, 2 * _HALF_BITS), (high * low, _HALF_BITS + 1), (low * low, 0)):
        norms += exact_bincount(vectors.unit, part, vectors.units).astype(object) << shift
    return norms


def clip_l2(vectors: UnitVectors, bound: int) -> UnitVectors:
    """w = sign(v)·⌊|v|·s⌋ for each unit, with the largest s ≤ 1 found for which Σ w² ≤ bound², checked in integers.

    A vector within the bound stays as it is. A unit's result depends on nothing but its own vector and the bound.

    Privacy: not private (trusted side only).
    """
    if bound < 1:
        raise ValueError("the bound must be at least 1")
    norms, limit = squared_norms(vectors), bound * bound
    scale = np.ones(vectors.units)
    over = np.asarray(norms > limit, bool)
    scale[over] = [bound / float(norm) ** 0.5 for norm in norms[over]]
    clipped = vectors
    for attempt in range(_TRIES):
        if not over.any():
            break
        # Rounded towards zero. A float product may round up to the next integer; the exact check below decides.
        value = np.trunc(vectors.value * scale[vectors.unit]).astype(np.int64)
        clipped = replace(vectors, value=value)
        over = np.asarray(squared_norms(clipped) > limit, bool)
        scale[over] *= 1 - _SHRINK * 2**attempt
    if over.any():
        raise ArithmeticError("a contribution could not be clipped to its bound")
    some = clipped.value != 0
    return replace(clipped, unit=clipped.unit[some], column=clipped.column[some], value=clipped.value[some])
