"""What one trajectory is expected to add to each value of an answer, from noisy answers.

At user level the second draw of a question measures the difference between contributions and this expectation; so does
the first draw, if other answers allow a guess of it. A poor expectation costs accuracy, never privacy.

Privacy: free (post-processing of noisy answers).
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from wayveil.core.density import estimate_field
from wayveil.core.grid import Grid, base_grid
from wayveil.core.posterior import Noisy, posterior_mean
from wayveil.questions.answer import Answer
from wayveil.questions.end_points import EndPoints, EndPointsDetail
from wayveil.questions.field import Blocks, Detail
from wayveil.questions.levels import noisy_levels
from wayveil.questions.occupancy import Occupancy, OccupancyDetail
from wayveil.questions.origin_destination import OriginDestination
from wayveil.questions.passage import Passage
from wayveil.questions.question import Question

Floats = NDArray[np.float64]
_END_POINTS = (EndPoints.name, EndPointsDetail.name)
_OCCUPANCY = (Occupancy.name, OccupancyDetail.name)


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


def guessed_shares(question: Question, count: float, earlier: Mapping[str, Answer]) -> Floats | None:
    """The mean of φ(T)/R over all trajectories, guessed from answers to other questions; None if they say nothing.

    The coarse blocks tell where the detail is, ends tell where points are, and points tell where routes pass. From
    region to region, trips are guessed to go in proportion to the ends in both.
    """
    if isinstance(question, OriginDestination):
        density = _density(_END_POINTS, base_grid(question.scope), count, earlier)
        region = question.region_of_cell.ravel()
        mass = np.bincount(region, weights=density.ravel(), minlength=question.regions)
        return np.asarray(np.outer(mass, mass).ravel(), np.float64)
    if isinstance(question, EndPointsDetail | Occupancy):
        density = _density(_END_POINTS[:1], question.grid, count, earlier)
    elif isinstance(question, OccupancyDetail):
        base = np.sqrt(_density(_END_POINTS, question.grid, count, earlier))
        density = _density(_OCCUPANCY[:1], question.grid, count, earlier, np.asarray(base, np.float64))
    elif isinstance(question, Passage):
        density = _density(_OCCUPANCY, question.grid, count, earlier)
    else:
        return None
    return question.of_density(density).ravel()


def _density(
    names: tuple[str, ...], grid: Grid, count: float, earlier: Mapping[str, Answer], base: Floats | None = None
) -> Floats:
    """Shares of the base cells, estimated from the named answers, as far as they exist."""
    flat = np.ones((grid.rows, grid.columns))
    levels = noisy_levels([earlier[name] for name in names if name in earlier])
    density = estimate_field(levels, count, flat, base=base)
    return np.asarray(density / density.sum())


def _of_field(first: Answer, question: Blocks | Detail, count: float, earlier: Mapping[str, Answer]) -> Floats:
    """The mean that the estimated field implies; in it, cells borrow from coarser levels and from their neighbours."""
    coarser = [earlier[question.coarse.name]] if isinstance(question, Detail) else []
    flat = np.ones((question.grid.rows, question.grid.columns))
    density = estimate_field(noisy_levels([*coarser, first]), count, flat)
    return question.of_density(density / density.sum()).ravel()
