"""The estimator of questions about regions: trips between regions, and the hours of each region.

Privacy: free (post-processing).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid
from wayveil.core.posterior import posterior_mean
from wayveil.core.pyramid import Field, pool, spread
from wayveil.core.raking import rake
from wayveil.questions import priors
from wayveil.questions.answer import Answer
from wayveil.questions.flow import Flow
from wayveil.questions.origin_destination import OriginDestination
from wayveil.synthesis.estimate.estimates import Distribution, RegionFlows
from wayveil.synthesis.estimate.estimators.estimation import Estimation
from wayveil.synthesis.estimate.place_hours import estimate_place_hours
from wayveil.synthesis.estimate.settings import FLOWS
from wayveil.synthesis.trips.draw import stratified
from wayveil.synthesis.trips.one_point import moving_flows, with_one_point


def estimate_flows(known: Estimation, quantity: str) -> dict[str, Any]:
    """Shares of trips by region, or the hours of each region."""
    answers = known.answers[quantity]
    question = answers[-1].question
    assert isinstance(question, Flow)
    return {quantity: _BY_PRIOR[type(question.prior)](answers, question.prior, known)}


def _regional_hours(answers: list[Answer], prior: priors.RegionalHours, known: Estimation) -> Any:
    (answer,) = answers
    starts, ends = known["start_minus_end"]
    flows, departure = known[OriginDestination.quantity], known["departure_week"].shares
    return estimate_place_hours(answer, starts, ends, flows, departure, known.everyone.count)


def _flows(answers: list[Answer], prior: priors.Gravity, known: Estimation) -> RegionFlows:
    """Trips between regions: start × end × a factor of distance, scaled to the margins; posterior at both levels."""
    coarse, fine = answers
    assert isinstance(fine.question, Flow)
    regions, size = fine.question.region_of_cell, fine.question.regions
    starts, ends = known["start_minus_end"]
    out, into = (
        np.bincount(regions.ravel(), field.ravel(), minlength=size).astype(np.float64) for field in (starts, ends)
    )
    displacement: Distribution = known["displacement"]
    all_trips = Distribution(displacement.bins, with_one_point(displacement.shares, known.one_point))
    mean = gravity(known.grid, regions, size, (starts, ends), all_trips)
    mean = mean / mean.sum() + FLOWS.independent_share * np.outer(out, into) / (out.sum() * into.sum())
    mean = rake(mean, ((0, out), (1, into)), FLOWS.mean_rounds)
    merged = size // coarse.shape[0]
    mean_coarse = pool(mean, merged)
    better = posterior_mean(coarse, mean_coarse, groups=3)
    mean = mean * spread(better / np.maximum(mean_coarse, 1e-9), merged, mean.shape)
    flows = posterior_mean(fine, mean)
    margins = (0, out + FLOWS.least), (1, into + FLOWS.least)
    flows = rake(flows, margins, FLOWS.posterior_rounds, power=FLOWS.posterior_power)
    flows /= flows.sum()
    if known.one_point:
        flows = moving_flows(flows, known.one_point, regions, known["end_points"])
    return RegionFlows(regions, flows)


_BY_PRIOR: dict[type, Callable[[list[Answer], Any, Estimation], Any]] = {
    priors.Gravity: _flows,
    priors.RegionalHours: _regional_hours,
}


def gravity(
    grid: Grid,
    regions: NDArray[np.int64],
    size: int,
    ends: tuple[Field, Field],
    displacement: Distribution,
) -> NDArray[np.float64]:
    """Expected flows in a gravity model: independent starts and ends, weighted to the distribution of displacements.

    `ends` are the densities of starts and of ends.
    """
    random = np.random.default_rng(0)  # a fixed seed for numerical integration; any seed gives nearly the same result
    pairs = FLOWS.gravity_pairs
    origin = _stratified_cells(ends[0], pairs, random)
    destination = random.permutation(_stratified_cells(ends[1], pairs, random))
    dx = (origin % grid.columns - destination % grid.columns) * grid.cell_m
    dy = (origin // grid.columns - destination // grid.columns) * grid.cell_m
    bin_of_pair = displacement.bins.index(np.hypot(dx, dy) / 1000)
    expected = np.bincount(bin_of_pair, minlength=len(displacement.bins)) / pairs
    factor = np.divide(
        displacement.shares, expected, out=np.ones(len(displacement.bins)), where=expected > FLOWS.least_expected
    )
    weight = np.clip(factor, *FLOWS.factor_bounds)[bin_of_pair]
    labels = regions.ravel()
    flows = np.bincount(labels[origin] * size + labels[destination], weight, minlength=size * size)
    return np.asarray(flows, np.float64).reshape(size, size)


def _stratified_cells(field: Field, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    return stratified(field.ravel(), count, random)
