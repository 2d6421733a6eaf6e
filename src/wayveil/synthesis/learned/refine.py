"""refine: the Bayesian estimate of a field → a better one, by a network that was trained on simulated cities only.

Privacy: free (post-processing). It reads noisy counts, their scales and public maps; its weights hold no real data.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wayveil.callers import callers_level
from wayveil.density import NoisyLevel
from wayveil.pyramid import Field
from wayveil.synthesis.learned import features, guard
from wayveil.synthesis.learned.network import log_correction
from wayveil.synthesis.learned.weights import WeightsError, load_weights

Kind = Literal["occupancy", "end_points"]
_BYTES_A_CELL = 500
"""Memory that a field needs at its widest: 290 measured in the forward pass, and some for what is around it."""


class LearnedFallback(UserWarning):
    """The learned estimator stepped back, entirely or in part, for the reason given."""


@dataclass(frozen=True, eq=False)
class Refined:
    """An estimate, how much of it is the network's, and why if not all."""

    field: Field
    share: float
    """1: the network's estimate; 0: the Bayesian one; between: their geometric mixture."""
    reason: str | None


def refine(
    levels: Sequence[NoisyLevel],
    total: float,
    area: Field,
    bayes: Field,
    *,
    kind: Kind,
    beside: NDArray[np.float32],
    road_features: Sequence[Field] | None = None,
) -> Refined:
    """softmax(log bayes + correction(levels, bayes, map)) · Σ bayes; where unsure `bayes` itself, with the reason.

    Parameters
    ----------
    levels, total, area
        As given to `estimate_field`.
    bayes
        What `estimate_field`, or with a map `estimate_mapped_field`, answered; for the end points `estimate_field` with
        the *Bayesian* occupancy^1.5 as base.
    beside
        What the other field tells: `features.beside_occupancy` with the Bayesian end points, or for the end points
        `features.beside_end_points` with the occupancy, refined already.
    road_features
        Road length a cell by class, from wide to narrow, and last the mask of what the map does not cover.

    Privacy: free (post-processing).
    """
    worth = guard.worth(levels, total) / max(area.sum(), 1.0)
    if not guard.LEAST_WORTH <= worth <= guard.MOST_WORTH[kind] or len(levels) != 3:
        return Refined(
            bayes, 0.0, f"The {_words(kind)} are {_unlike(worth, kind)}; the plain Bayesian estimate is used."
        )
    if kind == "end_points" and not road_features and guard.worth(levels, total) < guard.FEWEST_UNITS:
        return Refined(
            bayes,
            0.0,
            "There are too few starts and ends for the network at this noise; the plain Bayesian estimate is used.",
        )
    if area.size * _BYTES_A_CELL > _free_bytes():
        return Refined(
            bayes, 0.0, "The grid is too large for the network in this memory; the plain Bayesian estimate is used."
        )
    try:
        weights = load_weights(kind)
        learned = _corrected(weights, levels, total, area, bayes, beside, road_features)
    except WeightsError as error:
        return Refined(bayes, 0.0, f"{error} Bayes is used meanwhile.")
    except MemoryError:
        return Refined(
            bayes, 0.0, "The grid is too large for the network in this memory; the plain Bayesian estimate is used."
        )
    if not np.isfinite(learned).all():
        return Refined(
            bayes,
            0.0,
            f"The network found no finite estimate of the {_words(kind)}; the plain Bayesian estimate is used.",
        )
    learned = guard.towards_coarse(levels, learned)
    share = guard.trusted_share(levels, bayes, learned)
    if share == 1.0:
        return Refined(learned, 1.0, None)
    reason = f"The network's {_words(kind)} fit the release less well; {share:.0%} of it is mixed with Bayes."
    return Refined(guard.mix(bayes, learned, share) if share else bayes, share, reason)


def aloud(refined: Refined) -> Refined:
    """The same, with a warning where the network stepped back."""
    if refined.reason is not None:
        warnings.warn(refined.reason, LearnedFallback, stacklevel=callers_level())
    return refined


def _corrected(
    weights: dict,
    levels: Sequence[NoisyLevel],
    total: float,
    area: Field,
    bayes: Field,
    beside: NDArray[np.float32],
    road_features: Sequence[Field] | None,
) -> Field:
    shape = area.shape
    log_bayes = features.log_density(bayes, area)
    fields = features.assemble(
        features.noisy_channels(levels, shape),
        log_bayes,
        area,
        features.road_channels(road_features, shape),
        features.heard_channels(levels, shape),
        beside,
    )
    constants = features.constants(levels, total, area, bool(road_features))
    with one_thread():
        correction = log_correction(weights, fields, constants)
    logits = np.where(area > 0, log_bayes + correction, -np.inf).astype(float)
    share = np.exp(logits - logits.max())
    return share * (bayes.sum() / share.sum())


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for matrix products: on a busy machine several wait for each other longer than small ones take."""
    import scipy.linalg.blas  # noqa: F401  (only a library that is loaded can be told)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


def _unlike(worth: float, kind: Kind) -> str:
    """What sets these answers apart from those that the network was taught with."""
    if guard.LEAST_WORTH <= worth <= guard.MOST_WORTH[kind]:
        return "asked in other cells than the network was taught with"
    fewer = worth < guard.LEAST_WORTH
    return f"{'fewer and noisier' if fewer else 'more and clearer'} than any that the network was taught with"


def _words(kind: Kind) -> str:
    return "starts and ends" if kind == "end_points" else "counts of places"


def _free_bytes() -> float:
    """Memory that can still be had; unlimited where the system does not say."""
    import os

    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")
