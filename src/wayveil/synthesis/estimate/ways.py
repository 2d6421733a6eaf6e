"""The density of distance travelled (passage), from its noisy blocks and the estimated density of time (occupancy).

Privacy: free (post-processing of the release).
"""

import numpy as np

from wayveil.core.density import NoisyLevel
from wayveil.core.posterior import Noisy, posterior_mean
from wayveil.core.pyramid import Field, interpolate, pool
from wayveil.synthesis.estimate.settings import WAYS


def estimate_way(level: NoisyLevel, time: Field, ends: Field) -> Field:
    """Passage on the base grid, with the sum of `time`.

    The prior mean is the density of time, without the time spent standing at the ends of trips. The noisy answer
    corrects it from large blocks to small ones: each block gets its posterior mean, given the estimate so
    far, and the factor is smooth from block to block.
    """
    passage = moving_time(time, ends)
    for merged in WAYS.merged_blocks:
        side = merged * level.side
        blocks, noisy = pool(passage, side), pool(level.counts, merged)
        # A sum of independent Laplace variables is about Gaussian.
        noise = np.sqrt(pool(np.broadcast_to(level.noise, level.counts.shape) ** 2, merged))
        merged_answer = Noisy(noisy, noise, gaussian=level.gaussian or merged > 1)
        better = posterior_mean(merged_answer, blocks, groups=1, usual_spread=WAYS.usual_spread)
        factor = np.divide(better, blocks, out=np.ones_like(blocks), where=blocks > 0)
        passage = passage * interpolate(factor, side, passage.shape)
    result: Field = passage * (time.sum() / max(float(passage.sum()), 1e-300))
    return result


def moving_time(time: Field, ends: Field) -> Field:
    """The density of time without the time at ends, with the same sum."""
    standing = WAYS.standing * ends * (time.sum() / max(float(ends.sum()), 1e-300))
    moving = np.maximum(time - standing, WAYS.least_moving * time)
    result: Field = moving * (time.sum() / max(float(moving.sum()), 1e-300))
    return result
