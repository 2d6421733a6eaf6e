"""The answers about one field as noisy grids.

Privacy: free (post-processing of noisy answers).
"""

from collections.abc import Sequence

import numpy as np

from wayveil.core.density import NoisyLevel
from wayveil.core.grid import level_shape
from wayveil.questions.answer import Answer
from wayveil.questions.detail_weights import PARTS, unweigh
from wayveil.questions.field import Blocks, Detail


def noisy_levels(answers: Sequence[Answer]) -> list[NoisyLevel]:
    """One grid for coarse blocks, and two (middle and fine) for a detail, each cell with the noise that it got."""
    levels = []
    for answer in answers:
        question = answer.question
        if isinstance(question, Detail):
            levels += _of_detail(answer, question)
        elif isinstance(question, Blocks):
            noise = answer.noises if answer.has_weights else answer.noise
            levels.append(NoisyLevel(answer.counts, question.side, noise, answer.gaussian))
    return levels


def _of_detail(answer: Answer, question: Detail) -> list[NoisyLevel]:
    grid, levels = question.grid, question.levels
    ratios = levels.coarse // levels.middle, levels.coarse // levels.fine
    shapes = level_shape(grid, levels.middle), level_shape(grid, levels.fine)
    # `counts` counts a trajectory as one; its weighted sums add up to PARTS.
    unweighted = unweigh(PARTS * answer.counts, np.asarray(question.weights), ratios, shapes)
    return [
        NoisyLevel(counts, side, answer.noise * PARTS / own, answer.gaussian)
        for side, (counts, own) in zip(question.sides, unweighted, strict=True)
    ]
