"""The relative error of parts of a quantity that was measured in blocks: zones of cells, or ranges of bins.

A block is a cell, bin or pair of regions whose noisy count is in the release. A part consists of whole blocks and of
pieces of blocks. The logarithm of its true value is normal around the estimate, with the known spread of the prior, and
the noisy counts of its blocks are observations of it. How a block divides into pieces is not measured; the spread of
the prior applies to this as well.

Privacy: free (post-processing).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

LIKELY_SD = 1.645
"""A normal variable is below this many standard deviations with a probability of 95 %."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Intersections of parts and blocks: piece k lies in a part and in a block and has an estimated mass.

    Pieces outside all parts have the part −1.
    """

    part: Codes
    block: Codes
    mass: Floats
    parts: int

    def relative_variance(self, noise_variance: Floats, spread: float | Floats, *, own: bool = False) -> Floats:
        """(parts,) posterior variance of the logarithm of each part; `spread` may differ by part.

        With f the share of a block that lies in the part and λ the mass of the part, this is
        1 / (1/spread² + λ² / Σ f²·noise_variance) + spread²·Σ ((1 − f)·mass / λ)².

        With `own`, the estimate of a part follows its own noisy counts, not those of its neighbours. The true value is
        then unlikely to exceed λ plus the noise, which limits the error of the logarithm of a rare part.
        """
        code, position = np.unique(self.part * len(noise_variance) + self.block, return_inverse=True)
        mass = np.bincount(position, self.mass, minlength=len(code))
        block_mass = np.bincount(code % len(noise_variance), mass, minlength=len(noise_variance))
        inside = code >= 0
        part, block = np.divmod(code[inside], len(noise_variance))
        mass = mass[inside]
        share = np.divide(mass, block_mass[block], out=np.ones_like(mass), where=block_mass[block] > 0)
        whole = np.bincount(part, mass, minlength=self.parts)
        noise = np.bincount(part, share**2 * noise_variance[block], minlength=self.parts)
        rest = np.bincount(part, ((1 - share) * mass) ** 2, minlength=self.parts)
        squared = np.maximum(whole, 1e-100) ** 2
        posterior = 1 / (spread**-2.0 + np.divide(squared, noise, out=np.zeros_like(squared), where=noise > 0))
        if own:
            posterior = np.minimum(posterior, (np.log1p(LIKELY_SD * np.sqrt(noise / squared)) / LIKELY_SD) ** 2)
        return np.asarray(posterior + spread**2 * np.minimum(rest / squared, 1.0))


@dataclass(frozen=True, eq=False)
class Ranges:
    """The shares of a quantity in ranges, evenly spread inside each."""

    edges: Floats
    shares: Floats

    @property
    def median(self) -> float:
        """The value below which half of the shares lie."""
        running = np.r_[0.0, np.cumsum(self.shares)]
        return float(np.interp(running[-1] / 2, running, self.edges))

    def between(self, edges: Floats, theta: float = 0.0) -> Floats:
        """Shares between neighbouring edges if all values are multiplied by e^theta; the last range is open above."""
        running = np.interp(edges[:-1] * math.exp(-theta), self.edges, np.r_[0.0, np.cumsum(self.shares)])
        return np.diff(np.r_[running, float(self.shares.sum())])


def moved_errors(ranges: Ranges, edges: Floats, scale: float, least: float) -> Floats:
    """Relative change of the share between neighbouring edges if all values are multiplied or divided by e^scale.

    It is the larger of the two. Shares below `least` count as `least`, so that no factor is infinite.
    """
    usual, *scaled = (np.log(np.maximum(ranges.between(edges, theta), least)) for theta in (0.0, scale, -scale))
    return np.asarray(np.abs(np.array(scaled) - usual).max(axis=0))


def wrong_share(relative_variance: Floats, mass: Floats) -> float:
    """The expected share of the mass that is in the wrong part, ½·Σ|estimate − truth|, for lognormal errors.

    For X lognormal with mean 1 and standard deviation s of its logarithm, ½·E|X − 1| = erf(s / √8).
    """
    wrong = np.vectorize(math.erf, otypes=[float])(np.sqrt(relative_variance / 8))
    return float((wrong * mass).sum() / max(float(mass.sum()), 1e-300))
