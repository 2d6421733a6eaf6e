"""Lengths and displacements of trips, from few noisy counts.

Trips are long where the city is large: half of them are longer than about a fifth of the scope's diagonal, within a
factor of two or so, and single lengths spread around that by a similar factor. So lognormal shapes around the scope's
size are candidates besides the smooth curves of `curves.py`. A trip is a little longer than its displacement, so
the answer about one of the two quantities tells about the shape of the other. Any signal above the noise outweighs
this prior.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.estimate.curves import Kind, Total, log_likelihood
from wayveil.synthesis.estimate.histogram import estimate_among
from wayveil.synthesis.estimate.settings import LENGTHS

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoisyLengths:
    """Noisy counts of lengths or displacements, and the usual median of that quantity."""

    counts: Floats
    noise: float
    edges: Floats
    usual_km: float
    gaussian: bool = False

    @property
    def shapes(self) -> Floats:
        """(shapes, bins): shares of lognormal distributions around the usual median."""
        from scipy.special import ndtr

        log_edges = np.log(np.maximum(self.edges, 1e-12))
        log_edges[-1] = np.inf  # the last bin also counts what is longer
        away, spread = _grid()
        shares = np.diff(ndtr((log_edges - np.log(self.usual_km) - away[:, None]) / spread[:, None]), axis=1)
        shares = (1 - LENGTHS.anything_share) * shares + LENGTHS.anything_share / shares.shape[1]
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def log_likelihood(self, total: Total) -> Floats:
        """Of each shape, under the noise of the answer."""
        return log_likelihood(self.counts, total.count * self.shapes, self.noise, self.gaussian)


def estimate_lengths(own: NoisyLengths, other: NoisyLengths, middles: Floats, total: Total, kind: Kind) -> Floats:
    """Shares of each bin, adding up to one, never zero; `other` is the answer about the related quantity."""
    return estimate_among(
        own.counts,
        own.noise,
        middles,
        total,
        own.shapes,
        kind,
        doubt=LENGTHS.curve_nats,
        long_tails=True,
        gaussian=own.gaussian,
        log_prior=_log_prior(other, total),
        usual=(float(np.log(own.usual_km)), LENGTHS.usual_spread),
    )


def _log_prior(other: NoisyLengths, total: Total) -> Floats:
    """The log prior of each shape, given the answer about the related quantity.

    The medians of both quantities have about the same ratio everywhere, and their logarithms about the same spread. The
    total evidence of that answer is divided out, so that smooth curves, which do not use it, are comparable.
    """
    away, spread = _grid()
    usual = -0.5 * (away / LENGTHS.usual_spread) ** 2
    usual -= np.log(np.exp(usual).sum())
    seen = other.log_likelihood(total)
    related = np.exp(-0.5 * ((away[:, None] - away) / LENGTHS.ratio_spread) ** 2) * (spread[:, None] == spread)
    related /= related.sum(axis=1, keepdims=True)
    best = seen.max()
    evidence = np.log(np.exp(usual) @ np.exp(seen - best))
    return np.asarray(usual + np.log(related @ np.exp(seen - best) + 1e-300) - evidence)


def _grid() -> tuple[Floats, Floats]:
    """Log ratio of each shape's median to the usual one, and standard deviation of the logarithm."""
    away, spread = np.meshgrid(LENGTHS.medians, LENGTHS.spreads)
    return away.ravel(), spread.ravel()
