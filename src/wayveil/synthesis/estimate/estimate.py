"""Noisy answers → smooth non-negative distributions that candidates can be drawn from.

Privacy: free (post-processing of the release).
"""

from collections.abc import Sequence

from wayveil.core.pyramid import Field
from wayveil.progress import Progress, quiet
from wayveil.release import Release
from wayveil.synthesis.estimate.estimates import Estimates
from wayveil.synthesis.estimate.estimators import estimate_all, estimator_of
from wayveil.synthesis.estimate.estimators.estimation import Estimation

__all__ = ["Estimates", "estimate"]


def estimate(
    release: Release,
    road_features: Sequence[Field] = (),
    learned: bool = False,
    progress: Progress = quiet,
) -> Estimates:
    """Posterior means of all quantities, consistent with each other where several answers share a quantity."""
    known = Estimation(release, estimator_of, road_features, learned, progress)
    noise = {answer.name: answer.noise for answer in release.answers}
    return Estimates(known.scope, known.grid, estimate_all(known), noise, known.one_point)
