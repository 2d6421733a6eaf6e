"""Clip the contribution of each unit to an L2 bound, exactly and towards zero.

The noise of the Gaussian mode follows the L2 norm of what one unit adds to an answer. A unit's integer vector is scaled
down until its norm, computed in exact integers, is within the bound. The result depends on that unit's vector alone.

A vector may be given as its difference from a multiple of a public centre. The difference is dense, but its norm and
the sums follow from sparse values: ‖a − jp‖² = ‖a‖² − 2j·⟨a, p⟩ + j²·‖p‖².
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.privacy.fixedpoint import EXACT_FLOAT, LARGEST_SUM, exact_bincount

_HALF_BITS = 20
"""Values are multiplied in two halves of this many bits, so that products stay exact in int64."""
LARGEST_VALUE = 1 << 2 * _HALF_BITS
"""Values of a unit must be smaller, so that their squares are exact; callers ensure it from public numbers."""
_SHRINK = 2.0**-40
"""Share by which a vector that is still too long after rounding is shortened; it doubles with each attempt."""
_TRIES = 40
"""Maximum number of attempts."""
_LARGEST_CENTRE, _LARGEST_MULTIPLE = 1 << 20, 1 << 31
"""Limits within which the products of a centre and a multiple are exact in int64."""


@dataclass(frozen=True, eq=False)
class UnitVectors:
    """Sparse integer vectors, one for each unit: unit `unit[k]` has `value[k]` at position `column[k]`.

    No pair of unit and column occurs twice, and there are no zeros. With a centre, a unit's vector is that of its
    values minus `multiple[unit]` times the centre.

    Privacy: not private (trusted side only).
    """

    units: int
    unit: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[np.int64]
    centre: NDArray[np.int64] | None = None
    multiple: NDArray[np.int64] | None = None

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

    def times(self, weights: NDArray[np.int64]) -> "UnitVectors":
        """Each unit's vector with every value multiplied by the positive weight of its position."""
        largest, most = (int(np.abs(values).max(initial=0)) for values in (self.value, weights))
        if largest * most >= LARGEST_SUM:
            raise OverflowError("the weighted values do not fit in int64")
        return replace(self, value=self.value * weights[self.column])

    def counted_as(self, most: int, trajectories: NDArray[np.int64]) -> "UnitVectors":
        """Each unit's vector times `most` / `trajectories` where it has more, with values rounded towards zero."""
        if not (trajectories > most).any():
            return self
        number = np.maximum(trajectories, most)[self.unit]
        whole, rest = np.divmod(np.abs(self.value), number)
        value = np.sign(self.value) * (whole * most + rest * most // number)  # no product exceeds the value or 2^63
        some = value != 0
        return replace(self, unit=self.unit[some], column=self.column[some], value=value[some])

    def minus(self, centre: NDArray[np.int64], multiple: NDArray[np.int64]) -> "UnitVectors":
        """Each unit's vector minus its multiple of the centre."""
        if int(np.abs(centre).max(initial=0)) > _LARGEST_CENTRE or int(multiple.max(initial=0)) > _LARGEST_MULTIPLE:
            raise OverflowError("the centre is too large to be squared exactly")
        return replace(self, centre=centre, multiple=multiple)

    def sums(self, size: int) -> NDArray[np.int64]:
        """The sum of all vectors."""
        sums = exact_bincount(self.column, self.value, size)
        if self.centre is None or self.multiple is None:
            return sums
        whole = int(self.multiple.sum())
        if whole * int(np.abs(self.centre).max(initial=0)) >= LARGEST_SUM:
            raise OverflowError("the sums do not fit in int64")
        return sums - whole * self.centre


def squared_norms(vectors: UnitVectors) -> NDArray[np.object_]:
    """The exact squared L2 norm of each unit's vector, as Python integers.

    Privacy: not private (trusted side only).
    """
    norms = _squared_values(vectors)
    if vectors.centre is None or vectors.multiple is None:
        return norms
    # ⟨a, p⟩ in two sums that each fit in int64: a = h·2^20 + l.
    at = vectors.centre[vectors.column]
    high, low = vectors.value >> _HALF_BITS, vectors.value & ((1 << _HALF_BITS) - 1)
    inner = exact_bincount(vectors.unit, high * at, vectors.units).astype(object) << _HALF_BITS
    inner += exact_bincount(vectors.unit, low * at, vectors.units).astype(object)
    times = vectors.multiple.astype(object)
    result: NDArray[np.object_] = norms - 2 * times * inner + times * times * _squared(vectors.centre)
    return result


def _squared(centre: NDArray[np.int64]) -> int:
    """‖p‖², exact in int64 for fewer than 2^22 values of at most 2^20."""
    if len(centre) >= 1 << 22:
        return sum(value * value for value in centre.tolist())
    return int((centre * centre).sum())


def _squared_values(vectors: UnitVectors) -> NDArray[np.object_]:
    size = np.abs(vectors.value)
    largest = int(size.max()) if len(size) else 0
    if largest * largest * max(len(size), 1) < EXACT_FLOAT:
        return exact_bincount(vectors.unit, size * size, vectors.units).astype(object)
    if largest >= LARGEST_VALUE:
        raise OverflowError("a unit's contribution is too large to be squared exactly")
    # (h·2^20 + l)² in three sums that each fit in int64.
    high, low = size >> _HALF_BITS, size & ((1 << _HALF_BITS) - 1)
    norms = np.zeros(vectors.units, object)
    for part, shift in ((high * high, 2 * _HALF_BITS), (high * low, _HALF_BITS + 1), (low * low, 0)):
        norms += exact_bincount(vectors.unit, part, vectors.units).astype(object) << shift
    return norms


def clip_l2(vectors: UnitVectors, bound: int) -> UnitVectors:
    """w = sign(v)·⌊|v|·s⌋ for each unit, with the largest s ≤ 1 found for which Σ w² ≤ bound², checked in integers.

    A vector within the bound stays as it is. A unit's result depends on nothing but its own vector and the bound. With
    a centre p, w = sign(v)·⌊|v|·s⌋ − ⌊j·s⌋·p.

    Privacy: not private (trusted side only).
    """
    if bound < 1:
        raise ValueError("the bound must be at least 1")
    norms, limit = squared_norms(vectors), bound * bound
    scale = np.ones(vectors.units)
    over = np.asarray(norms > limit, bool)
    scale[over] = (bound - _rounding(vectors)[over]).clip(min=0) / np.array(
        [float(norm) ** 0.5 for norm in norms[over]]
    )
    clipped = vectors
    for attempt in range(_TRIES):
        if not over.any():
            break
        # Rounded towards zero. A float product may round up to the next integer; the exact check below decides.
        value = np.trunc(vectors.value * scale[vectors.unit]).astype(np.int64)
        multiple = None if vectors.multiple is None else np.trunc(vectors.multiple * scale).astype(np.int64)
        clipped = replace(vectors, value=value, multiple=multiple)
        over = np.asarray(squared_norms(clipped) > limit, bool)
        scale[over] *= 1 - _SHRINK * 2**attempt
    if over.any():
        raise ArithmeticError("a contribution could not be clipped to its bound")
    some = clipped.value != 0
    return replace(clipped, unit=clipped.unit[some], column=clipped.column[some], value=clipped.value[some])


def _rounding(vectors: UnitVectors) -> NDArray[np.float64]:
    """The most that rounding can add to a unit's norm: nothing without a centre, because it rounds towards zero."""
    if vectors.centre is None:
        return np.zeros(vectors.units)
    entries = np.bincount(vectors.unit, minlength=vectors.units)
    return np.asarray(np.sqrt(entries) + float(_squared(vectors.centre)) ** 0.5)
