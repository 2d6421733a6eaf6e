"""Rows whose sum is too large are clipped to a cap: min(amount, cap).

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.synthesis.place.settings import CAP_ROUNDS


def capped_rows(
    offsets: NDArray[np.int64], amount: NDArray[np.float64], most: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`amount` with each row clipped to one cap, so that the sum of row i is at most `most[i]`.

    Rows with a smaller sum do not change. Amounts are not negative; a row has at least one.
    """
    large = np.flatnonzero(ragged.sums(amount, offsets) > most)
    result = amount.copy()
    if len(large) == 0:
        return result
    own, at = ragged.take(offsets, large)
    sizes = np.diff(own)
    some, most = amount[at], most[large]
    cap = most / sizes
    # The elements above the cap share what the others leave of the sum. A higher cap leaves fewer elements above it, so
    # it is computed again until it stops rising.
    for _ in range(CAP_ROUNDS):
        above = some > np.repeat(cap, sizes)
        left = most - ragged.sums(np.where(above, 0.0, some), own)
        higher = left / np.maximum(ragged.sums(above, own), 1)
        if np.allclose(higher, cap, rtol=1e-6, atol=0.0):
            break
        cap = np.maximum(higher, cap)
    result[at] = np.minimum(some, np.repeat(cap, sizes))
    return result
