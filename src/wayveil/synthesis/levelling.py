"""Too much is taken from the largest: min(amount, level), with a level for each part that leaves the wanted sum.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 12


def levelled(
    offsets: NDArray[np.int64], amount: NDArray[np.float64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`amount` with the largest of each part cut down to one level, so that part i adds up to at most `wanted[i]`.

    Parts that have no more than that stay as they are. Amounts are not negative; a part has at least one.
    """
    begin, counts = offsets[:-1], np.diff(offsets)
    large = np.flatnonzero(np.add.reduceat(amount, begin) > wanted) if len(begin) else begin
    result = amount.copy()
    if len(large) == 0:
        return result
    sizes = counts[large]
    own = np.cumsum(sizes) - sizes
    at = np.arange(sizes.sum()) + np.repeat(begin[large] - own, sizes)
    some, most = amount[at], wanted[large]
    level = most / sizes
    # What the smaller ones leave of the sum is shared by those above the level: it rises until nobody comes below it.
    for _ in range(_ROUNDS):
        above = some > np.repeat(level, sizes)
        left = most - np.add.reduceat(np.where(above, 0.0, some), own)
        higher = left / np.maximum(np.add.reduceat(above, own), 1)
        if np.allclose(higher, level, rtol=1e-6, atol=0.0):
            break
        level = np.maximum(higher, level)
    result[at] = np.minimum(some, np.repeat(level, sizes))
    return result
