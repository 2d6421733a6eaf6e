"""Correction of the Bayesian estimate of a field by a network that was trained on simulated cities only.

Privacy: free (post-processing). It reads noisy counts, their scales and public maps; its weights hold no real data.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wayveil.core.density import NoisyLevel
from wayveil.core.memory import available_bytes
from wayveil.core.pyramid import Field
from wayveil.core.threads import one_thread
from wayveil.core.warning_location import callers_level
from wayveil.synthesis.estimate.learned import features, guard
from wayveil.synthesis.estimate.learned.network import log_correction
from wayveil.synthesis.estimate.learned.weights import WeightsError, load_weights

Kind = Literal["occupancy", "end_points"]
_BYTES_PER_CELL = 500
"""Peak memory per cell: 290 bytes measured in the forward pass, and a reserve for other arrays."""


class LearnedFallback(UserWarning):
    """The Bayesian estimate replaced the learned one, entirely or in part, for the given reason."""


@dataclass(frozen=True, eq=False)
class Refined:
    """An estimate, the network's share in it, and the reason if that is below 1."""

    field: Field
    share: float
    """1: the network's estimate; 0: the Bayesian one; between: their geometric mixture."""
    reason: str | None


@dataclass(frozen=True, eq=False)
class Observed:
    """What is known about a field: the arguments of `estimate_field`, and the map."""

    levels: Sequence[NoisyLevel]
    total: float
    area: Field
    road_features: Sequence[Field] | None = None
    """Road length per cell by class, from wide to narrow, and last the mask of cells that the map does not cover."""


def refine(observed: Observed, bayes: Field, *, kind: Kind, other_field: NDArray[np.float32]) -> Refined:
    """softmax(log bayes + correction(levels, bayes, map)) · Σ bayes; if the guard rejects it, `bayes` and the reason.

    Parameters
    ----------
    bayes
        The result of `estimate_field`, or with a map of `estimate_mapped_field`; for the end points that of
        `estimate_field` with the *Bayesian* occupancy^1.5 as base.
    other_field
        Channels about the other field: for the occupancy, `features.inputs_for_occupancy` with the Bayesian end points;
        for the end points, `features.inputs_for_end_points` with the refined occupancy.

    Privacy: free (post-processing).
    """
    levels, total, area = observed.levels, observed.total, observed.area
    field_signal = guard.field_signal(levels, total)
    signal = field_signal / max(area.sum(), 1.0)
    if not guard.GUARD.least_signal <= signal <= guard.GUARD.most_signal[kind] or len(levels) != 3:
        return Refined(
            bayes, 0.0, f"The {_words(kind)} are {_unlike(signal, kind)}; the plain Bayesian estimate is used."
        )
    weak = field_signal < guard.GUARD.fewest_units
    if kind == "end_points" and weak and not observed.road_features and not levels[0].gaussian:
        return Refined(
            bayes,
            0.0,
            "There are too few starts and ends for the network at this noise; the plain Bayesian estimate is used.",
        )
    if area.size * _BYTES_PER_CELL > available_bytes():
        return Refined(
            bayes, 0.0, "The grid is too large for the network in this memory; the plain Bayesian estimate is used."
        )
    try:
        weights = load_weights(kind, levels[0].gaussian)
        learned = _corrected(weights, observed, bayes, other_field)
    except WeightsError as error:
        return Refined(bayes, 0.0, f"{error} Until then the plain Bayesian estimate is used.")
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
    reason = f"The network's {_words(kind)} fit the release less well than Bayes; its weight is {share:.0%}."
    return Refined(guard.mix(bayes, learned, share) if share else bayes, share, reason)


def with_warning(refined: Refined) -> Refined:
    """The same estimate, after a warning if it is not entirely the network's."""
    if refined.reason is not None:
        warnings.warn(refined.reason, LearnedFallback, stacklevel=callers_level())
    return refined


def _corrected(weights: dict[str, Any], observed: Observed, bayes: Field, other_field: NDArray[np.float32]) -> Field:
    levels, area, road_features = observed.levels, observed.area, observed.road_features
    shape = area.shape
    log_bayes = features.log_density(bayes, area)
    fields = features.assemble(
        features.noisy_channels(levels, shape),
        log_bayes,
        area,
        features.road_channels(road_features, shape),
        features.precision_channels(levels, shape),
        other_field,
    )
    if levels[0].gaussian:
        fields = np.concatenate([fields, features.coarse_precision_channel(levels, shape)], axis=-1)
    constants = features.constants(levels, observed.total, area, bool(road_features))
    with one_thread():
        correction = log_correction(weights, fields, constants)
    logits = np.where(area > 0, log_bayes + correction, -np.inf).astype(float)
    share = np.exp(logits - logits.max())
    result: Field = share * (bayes.sum() / share.sum())
    return result


def _unlike(signal: float, kind: Kind) -> str:
    """How these answers differ from the training data of the network, as a phrase for a message."""
    if guard.GUARD.least_signal <= signal <= guard.GUARD.most_signal[kind]:
        return "counted in other cells than those in the network's training data"
    fewer = signal < guard.GUARD.least_signal
    return f"{'fewer and noisier' if fewer else 'more and clearer'} than any in the network's training data"


def _words(kind: Kind) -> str:
    return "starts and ends" if kind == "end_points" else "counts of places"
