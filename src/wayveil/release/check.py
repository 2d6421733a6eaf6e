"""Whether a release fits together: its noise with its costs, and all answers that synthesis needs.

That each answer fits its question is checked where it is read, by the question itself.
"""

import math

from wayveil.errors import ReleaseError
from wayveil.privacy.unit import Unit
from wayveil.questions.catalogue import QUESTIONS
from wayveil.release.release import Release

_TOLERANCE = 1e-6
_WRONG_NOISE = "The noise of '{}' is not the one that was paid for; the release was altered."


def check_release(release: Release) -> None:
    """ReleaseError unless every answer's noise is the one that its cost needs.

    Privacy: free (post-processing).
    """
    # With a cap of one the noise is that of a trajectory: only the words tell which of the two was promised.
    if release.neighbours != Unit(release.unit, release.max_per_user).describe():
        raise ReleaseError("The unit and its neighbouring relation do not fit; the release was altered.")
    _check_noise(release)


def check_complete(release: Release) -> None:
    """ReleaseError unless every answer that synthesis needs is there."""
    for name, question in QUESTIONS.items():
        if not question.optional and name not in release:
            raise ReleaseError(f"The release has no answer '{name}'; it was made for another version of wayveil.")


def _check_noise(release: Release) -> None:
    """b = c·resolution/ε_q; with a δ, σ²·ε_q/(c·resolution)² is the same for all."""
    sensitivity = Unit(release.unit, release.max_per_user).sensitivity
    kind = "gaussian" if release.delta > 0 else "laplace"
    relative = []
    for answer in release.answers:
        if answer.mechanism != kind or answer.epsilon <= 0:
            raise ReleaseError(_WRONG_NOISE.format(answer.name))
        norm, share = answer.resolution * sensitivity, float(answer.epsilon)
        relative.append(answer.scale * share / norm if kind == "laplace" else (answer.scale / norm) ** 2 * share)
    expected = 1.0 if kind == "laplace" else relative[0]
    for answer, value in zip(release.answers, relative):
        if not math.isclose(value, expected, rel_tol=_TOLERANCE):
            raise ReleaseError(_WRONG_NOISE.format(answer.name))
