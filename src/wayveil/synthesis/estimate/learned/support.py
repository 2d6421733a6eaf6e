"""How much of an estimate is determined by data, and how much by the prior.

Privacy: free (post-processing).
"""

from collections.abc import Sequence

from wayveil.core.density import NoisyLevel
from wayveil.core.pyramid import Field, pool, spread


def data_share(levels: Sequence[NoisyLevel], estimate: Field) -> Field:
    """λ² / (λ² + 2·noise²) of each base cell at the finest level: 1 = determined by its count, 0 = by the prior.

    λ is the estimated count of the level's cell, and 2·noise² is the variance of its noise. If the share is low, fine
    structure in the estimate comes from the prior about streets, not from the data.

    Privacy: free (post-processing).
    """
    fine = levels[-1]
    power = pool(estimate, fine.side) ** 2
    return spread(power / (power + 2 * fine.noise**2), fine.side, estimate.shape)
