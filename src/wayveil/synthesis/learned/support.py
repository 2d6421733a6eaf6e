"""Where an estimate rests on data, and where on the prior.

Privacy: free (post-processing).
"""

from collections.abc import Sequence

from wayveil.density import NoisyLevel
from wayveil.pyramid import Field, pool, spread


def data_share(levels: Sequence[NoisyLevel], estimate: Field) -> Field:
    """λ² / (λ² + 2·noise²) of each base cell at the finest level: 1, its count was heard; 0, its detail is the prior's.

    λ is the estimate's own count of the level's cell and 2·noise² the variance of the noise on it. Fine structure
    where the share is low is what streets usually look like, not something that the data said.

    Privacy: free (post-processing).
    """
    fine = levels[-1]
    power = pool(estimate, fine.side) ** 2
    return spread(power / (power + 2 * fine.noise**2), fine.side, estimate.shape)
