"""How the ε of a field is divided: between coarse blocks and detail, and in each block between middle and fine cells.

The coarse blocks get two to six sixteenths of a field's share: the fewer, the more trajectories there are. What is left
is divided into sixteen parts, in each block by itself, between the block's middle and its fine cells: many parts to the
fine cells where the noisy coarse answer predicts that they stand out from the noise, few where the noise would hide
them. One point then adds `parts` to its fine cell and `PARTS − parts` to its middle cell, PARTS in all wherever it
lies, so a trajectory's norm does not depend on the division (docs/explanation/method.md).
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.int64, np.float64)
Parts = NDArray[np.int64]
PARTS = 16
"""Parts into which the ε of a field's detail is divided."""
FEWEST, MOST = 3, 15
"""Fewest and most parts for the fine cells: both sizes of cells always get some of the ε."""


@dataclass(frozen=True)
class FineShare:
    """Shares of the fine cells where one of them has `low` and `high` noise units; logarithmic in between."""

    low: float = 0.03
    share_at_low: float = 0.2
    high: float = 1.0
    share_at_high: float = 0.95


FINE_SHARE = FineShare()
"""For every field, dataset and ε: the best of three rules for weak signals on simulated cities
(docs/explanation/model-card.md)."""


def concentration(blocks: NDArray[np.float64], side: int, noise: float | NDArray[np.float64]) -> float:
    """How much busier the place of a trajectory is than the average place, at blocks of 16 cells; at least 1.

    For blocks of one size that is K·Σc²/(Σc)², without the squares of the noise, 2·noise² per block on average. With
    blocks twice as large it is half as large if the data lie on a line, and the same if they fill an area. A factor of
    2^−¾ is assumed for all data.

    Parameters
    ----------
    blocks, side, noise
        Noisy counts of a field's coarse blocks, their side in base cells, and the noise scale, for all or for each.
    """
    noise = np.broadcast_to(noise, blocks.shape)
    squares = float((blocks**2).sum() - 2 * (noise**2).sum())
    total = max(float(blocks.sum()), float(noise.mean()))
    result: float = float(np.clip(blocks.size * squares / total**2, 1.0, blocks.size)) * (side / 16) ** 0.75
    return result


def coarse_parts(signal: float, cells: int) -> int:
    """How many of PARTS of a field's share go to its coarse blocks: 6 − 2·log10(signal / cells / 0.0025), from 2 to 6.

    `signal` is the noisy count in units of the field's noise. If a cell has a weak signal, only the sums of large
    blocks stand out from the noise; if it has a strong one, they stand out anyway. If the signal of the whole field is
    below 64 units, not even the blocks stand out, and they get up to 12 parts.
    """
    units = max(signal, 1e-9) / max(cells, 1)
    usual = int(np.clip(np.rint(6 - 2 * np.log10(units / 0.0025)), 2, 6))
    return max(usual, int(np.clip(np.rint(6 - 3 * np.log2(max(signal, 1e-9) / 64)), 0, 12)))


def fine_parts(coarse: NDArray[np.float64], cells: int, noise: float, rule: FineShare = FINE_SHARE) -> Parts:
    """How many of the PARTS the fine cells of each coarse block get.

    Parameters
    ----------
    coarse
        Noisy counts of the blocks, in trajectories.
    cells
        Fine cells in a whole block.
    noise
        Noise of a fine cell that gets all parts.
    """
    units = np.maximum(coarse, 1e-9) / (cells * noise)
    step = np.log(units / rule.low) / np.log(rule.high / rule.low)
    share = rule.share_at_low + (rule.share_at_high - rule.share_at_low) * step
    result: Parts = np.clip(np.rint(PARTS * share), FEWEST, MOST).astype(np.int64)
    return result


def parts_of_cells(parts: Parts, ratio: int, shape: tuple[int, int]) -> Parts:
    """Each block's parts, repeated for its `ratio` × `ratio` cells of a finer level of the given shape."""
    return np.repeat(np.repeat(parts, ratio, axis=0)[: shape[0]], ratio, axis=1)[:, : shape[1]]


def weigh(middle: NDArray[Number], fine: NDArray[Number], parts: Parts, ratios: tuple[int, int]) -> NDArray[Number]:
    """Middle and fine sums, each times its parts, as one long answer; `ratios` are cells of each level per block side.

    If ‖φ(T)‖₁ ≤ R on the fine cells, and the middle ones are their sums, the result has L1 norm at most PARTS·R.
    """
    of_middle, of_fine = (parts_of_cells(parts, r, x.shape) for r, x in zip(ratios, (middle, fine), strict=True))
    weighted: NDArray[Number] = np.concatenate([(middle * (PARTS - of_middle)).ravel(), (fine * of_fine).ravel()])
    return weighted


def unweigh(
    answer: NDArray[np.float64], parts: Parts, ratios: tuple[int, int], shapes: tuple[tuple[int, int], tuple[int, int]]
) -> tuple[tuple[NDArray[np.float64], Parts], tuple[NDArray[np.float64], Parts]]:
    """The inverse of `weigh`: (sums, parts of each cell) of the middle level and of the fine one.

    Noise of scale b on the long answer is noise of scale b / parts on the sums of a cell, given its number of parts.

    Privacy: free (post-processing).
    """
    of_middle, of_fine = (parts_of_cells(parts, *level) for level in zip(ratios, shapes, strict=True))
    of_middle = PARTS - of_middle
    middle, fine = np.split(answer, [of_middle.size])
    return (middle.reshape(shapes[0]) / of_middle, of_middle), (fine.reshape(shapes[1]) / of_fine, of_fine)
