"""estimate: noisy answers → smooth non-negative distributions that candidates can be drawn from.

Privacy: free (post-processing of the release).
"""

from collections.abc import Callable, Sequence

from wayveil.progress import nobody
from wayveil.pyramid import Field
from wayveil.release import Release
from wayveil.synthesis.estimates import Estimates
from wayveil.synthesis.estimators import estimate_all, estimator_of
from wayveil.synthesis.estimators.estimation import Estimation

__all__ = ["Estimates", "estimate"]


def estimate(
    release: Release,
    road_features: Sequence[Field] = (),
    learned: bool = False,
    told: Callable[[float], None] = nobody,
) -> Estimates:
    """Posterior means of all quantities, consistent where they speak of the same thing; `told` hears the progress."""
    known = Estimation(release, estimator_of, road_features, learned, told)
    noise = {answer.name: answer.noise for answer in release.answers}
    return Estimates(known.scope, known.grid, estimate_all(known), noise, known.one_point)
