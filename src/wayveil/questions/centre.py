"""What one trajectory is expected to add to each value of an answer, from noisy answers.

At user level the second draw of a question measures the difference between contributions and this expectation. A poor
expectation costs accuracy, never privacy.

Privacy: free (post-processing of noisy answers).
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from wayveil.core.density import estimate_field
from wayveil.core.posterior import Noisy, posterior_mean
from wayveil.questions.answer import Answer
from wayveil.questions.field import Blocks, Detail
from wayveil.questions.levels import noisy_levels

Floats = NDArray[np.float64]


def expected_shares(first: Answer, count: float, earlier: Mapping[str, Answer]) -> Floats:
    """The mean of φ(T)/R over all trajectories, estimated from the first draw and earlier answers.

    Parameters
    ----------
    first
        The first draw.
    count
        The noisy number of trajectories.
    earlier
        The noisy answers so far, by question.
    """
    question = first.question
    if isinstance(question, Blocks | Detail):
        return _of_field(first, question, count, earlier)
    counts = first.counts.ravel()
    mean = np.full(len(counts), count / len(counts))
    found = posterior_mean(Noisy(counts, first.noise, gaussian=True), mean, groups=1)
    return np.asarray(found / found.sum())


def _of_field(first: Answer, question: Blocks | Detail, count: float, earlier: Mapping[str, Answer]) -> Floats:
    """The field on its own cells, from coarse to fine: smoothed by the levels and the neighbours of each cell."""
    coarser = [earlier[question.coarse.name]] if isinstance(question, Detail) else []
    flat = np.ones((question.grid.rows, question.grid.columns))
    density = estimate_field(noisy_levels([*coarser, first]), count, flat)
    return question.of_density(density / density.sum()).ravel()
