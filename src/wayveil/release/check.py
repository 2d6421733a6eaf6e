"""Consistency checks of a release: its noise must match its costs, and all answers that synthesis needs must be there.

That each answer fits its question is checked where it is read, by the question itself.
"""

import math
from fractions import Fraction

from wayveil.errors import ReleaseError
from wayveil.privacy.unit import Unit
from wayveil.privacy.zcdp import LATTICE_VARIANCE
from wayveil.questions.answer import Answer, Clipping
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.norms import NormBins, can_be_centred, norms_part, public_bound, sums_part
from wayveil.release.release import Release

_TOLERANCE = 1e-6
"""Relative difference between a scale in the file and the scale that its ε implies."""
_WRONG_NOISE = "The noise of '{}' does not match its cost; the release was altered."


def check_release(release: Release) -> None:
    """ReleaseError unless the noise of every answer matches its cost.

    Privacy: free (post-processing).
    """
    # With one trajectory per user the noise is that of a trajectory: only the text states which unit was protected.
    if release.neighbours != Unit(release.unit, release.max_per_user).describe(averaged=release.delta > 0):
        raise ReleaseError("The unit does not match the neighbouring relation; the release was altered.")
    _check_noise(release)


def check_complete(release: Release) -> None:
    """ReleaseError unless every answer that synthesis needs is there."""
    for name, question in QUESTIONS.items():
        if not question.optional and name not in release:
            raise ReleaseError(f"The release has no answer to '{name}'; it was made by another version of wayveil.")


def _check_noise(release: Release) -> None:
    """b = c·resolution/ε_q; with a δ, (σ/B)²·ε_q is the same for all sums and all histograms of norms."""
    unit = Unit(release.unit, release.max_per_user)
    kind = "gaussian" if release.delta > 0 else "laplace"
    relative: list[tuple[str, float]] = []
    for answer in release.answers:
        name, share = answer.name, float(answer.epsilon)
        if answer.mechanism != kind or share <= 0 or (answer.clipping is None) != (kind == "laplace"):
            raise ReleaseError(_WRONG_NOISE.format(name))
        if answer.clipping is None:
            relative.append((name, answer.scale * share / (answer.resolution * answer.question.sensitivity(unit))))
            continue
        relative += [(name, value) for value in _gaussian_noise(answer, answer.clipping, unit)]
    expected = 1.0 if kind == "laplace" else relative[0][1]
    for name, value in relative:
        if not math.isclose(value, expected, rel_tol=_TOLERANCE):
            raise ReleaseError(_WRONG_NOISE.format(name))


def _gaussian_noise(answer: Answer, clipping: Clipping, unit: Unit) -> list[float]:
    """(σ/B)²·ε_q of each draw and, where the bound is not public, of the histogram of norms before it."""
    second = answer.centred
    found = _draw_noise(answer, answer.scale, clipping, unit, sums_part(answer.question, unit, second is not None))
    if second is None:
        return found
    if not can_be_centred(answer.question, unit) or len(second.centre.values) != len(answer.noisy):
        raise ReleaseError(_WRONG_NOISE.format(answer.name))
    part = sums_part(answer.question, unit, centred=True, second=True)
    return found + _draw_noise(answer, second.scale, second.clipping, unit, part)


def _draw_noise(answer: Answer, scale: float, clipping: Clipping, unit: Unit, part: Fraction) -> list[float]:
    name, share, of_norms = answer.name, float(answer.epsilon), float(norms_part(answer.question, unit))
    sums = (scale**2 - LATTICE_VARIANCE) / clipping.bound**2 * share * float(part)
    if clipping.norms is None or clipping.norms_scale is None:
        public = public_bound(answer.question, unit)
        if public is None or clipping.bound != round(public * clipping.resolution):
            raise ReleaseError(_WRONG_NOISE.format(name))
        return [sums]
    if (
        len(clipping.norms) != len(NormBins.of(answer.question, unit))
        or clipping.bound > unit.sensitivity * clipping.resolution
    ):
        raise ReleaseError(_WRONG_NOISE.format(name))
    return [sums, (clipping.norms_scale**2 - LATTICE_VARIANCE) * share * of_norms]
