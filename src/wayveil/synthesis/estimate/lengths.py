"""Lengths and displacements of trips, from few noisy counts.

Trips are long where the city is large: half of them are longer than about a fifth of the scope's diagonal, within a
factor of two or so, and single lengths spread around that by a similar factor. Some trips go to one remote place, such
as an airport or the next town, or use a faster mode. So lognormal shapes around the scope's size, alone or with a
second, narrower one at longer lengths, are candidates besides the smooth curves of `curves.py`. A trip is a little
longer than its displacement, so the answer about one of the two quantities is informative about the other.

No city follows these shapes exactly, so the estimate that they take part in is averaged with smooth curves alone. The
stronger the signal of the answer is relative to its noise, the less weight the shapes have.

Privacy: free (post-processing).
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.estimate.curves import Kind, Total, log_likelihood
from wayveil.synthesis.estimate.histogram import ShapePrior, estimate_among
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
        """(shapes, bins): shares of one or two lognormal distributions, the first around the usual median."""
        from scipy.special import ndtr

        log_edges = np.log(np.maximum(self.edges, 1e-12)) - np.log(self.usual_km)
        log_edges[-1] = np.inf  # the last bin also counts what is longer
        away, spread, remote, farther = _grid()[..., None]
        near = np.diff(ndtr((log_edges - away) / spread), axis=1)
        far = np.diff(ndtr((log_edges - away - farther) / LENGTHS.remote_spread), axis=1)
        shares = (1 - remote) * near + remote * far
        shares = (1 - LENGTHS.anything_share) * shares + LENGTHS.anything_share / shares.shape[1]
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def log_likelihood(self, total: Total) -> Floats:
        """Log likelihood of each shape under the noise of the answer."""
        return log_likelihood(self.counts, total.count * self.shapes, self.noise, self.gaussian)


def estimate_lengths(own: NoisyLengths, other: NoisyLengths, middles: Floats, total: Total, kind: Kind) -> Floats:
    """Shares of each bin, adding up to one, never zero; `other` is the answer about the related quantity."""
    signal = total.count / own.noise
    prior = ShapePrior(
        own.shapes,
        kind,
        curve_nats=LENGTHS.curve_nats,
        log_prior=_log_prior(other, total),
        log_mean=(float(np.log(own.usual_km)), LENGTHS.usual_spread),
        curved_share=signal / (signal + LENGTHS.trust_units),
    )
    return estimate_among(own, middles, total, prior, long_tails=True)


def _log_prior(other: NoisyLengths, total: Total) -> Floats:
    """The log prior of each shape, given the answer about the related quantity.

    The medians of both quantities have about the same ratio everywhere, and their logarithms about the same spread. The
    total evidence of that answer is divided out, so that smooth curves, which do not use it, are comparable.
    """
    away, *others = _grid()
    usual = -0.5 * (away / LENGTHS.usual_spread) ** 2
    usual += np.where(others[1] > 0, np.log(LENGTHS.remote_chance / _REMOTE), np.log(1 - LENGTHS.remote_chance))
    usual -= np.log(np.exp(usual).sum())
    seen = other.log_likelihood(total)
    related = np.exp(-0.5 * ((away[:, None] - away) / LENGTHS.ratio_spread) ** 2)
    related *= np.all([same[:, None] == same for same in others], axis=0)
    related /= related.sum(axis=1, keepdims=True)
    best = seen.max()
    evidence = np.log(np.exp(usual) @ np.exp(seen - best))
    return np.asarray(usual + np.log(related @ np.exp(seen - best) + 1e-300) - evidence)


_REMOTE = len(LENGTHS.remote_shares) * len(LENGTHS.remote_ratios)
"""Number of shapes with a second peak for each shape without one."""


def _grid() -> Floats:
    """(4, shapes): the parameters of each shape.

    They are the log ratio of the median to the usual one, the standard deviation of the logarithm, the share of remote
    trips, and the log ratio of their median to that of the others.
    """
    second = [(0.0, 0.0), *product(LENGTHS.remote_shares, np.log(LENGTHS.remote_ratios))]
    return np.array([(*first, *more) for more in second for first in product(LENGTHS.medians, LENGTHS.spreads)]).T
