"""Hours at which trips start and end in each place.

Trips go into the centre in the morning and out of it in the evening, so each place has its own distribution of hours
for starts and for ends. The places are the leaves of the question's tree of cuts. The ratio of a place's share at an
hour to that of all places, minus one, has a Gaussian process prior with two parts:

- *commuting*: trips start far from the centre at the hours at which they end near it, in proportion to the distance;
- *own*: each place deviates by itself, for starts and for ends, similarly to places that are close in the tree.

Both are correlated at close hours, less so between working days and the weekend. Neither changes the total shares of
hours or of places, which other answers give. The answer, including its balance of inward and outward trips, is linear
in the ratios, so the posterior mean has a closed form. The estimate is averaged over the standard deviations of both
parts, weighted by evidence; they may be zero, in which case the hours are the same in all places.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.pyramid import Field
from wayveil.core.week import SATURDAY, part_of_hour
from wayveil.questions.answer import Answer
from wayveil.questions.end_point_hours import EndPointHours
from wayveil.synthesis.estimate.estimates import RegionFlows
from wayveil.synthesis.estimate.settings import PLACE_HOURS

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlaceHours:
    """Log ratios of each place's share at each hour to the share of all places together, for starts and ends."""

    region_of_cell: NDArray[np.int64]
    start: Table
    end: Table


@dataclass(frozen=True, eq=False)
class Ends:
    """Places as starts, then the same places as ends."""

    mass: Table
    """(2, places) share of the starts, and of the ends, in each place."""
    distance: Table
    """(2, places) their mean distance from the centre, from 0 to 1."""
    gap: Table
    """(2, places) mean absolute difference between the distances of a trip's two ends, over the trips that start, or
    end, in each place."""


def estimate_place_hours(
    answer: Answer, starts: Field, ends: Field, flows: RegionFlows, departure: Table, count: float
) -> PlaceHours:
    """Estimate from the noisy answer; `departure` has the shares of the 7 × 24 hours for all trips."""
    question = answer.question
    assert isinstance(question, EndPointHours)
    hours = np.concatenate([departure[:SATURDAY].sum(axis=0), departure[SATURDAY:].sum(axis=0)])
    hours = np.maximum(hours / hours.sum(), 1e-6)
    places = ends_of(question, starts, ends, flows)
    start, end = place_ratios(question, answer.counts, answer.noise, places, hours / hours.sum(), count)
    logs = (np.log(np.clip(ratio, *PLACE_HOURS.ratio_bounds)) for ratio in (start, end))
    return PlaceHours(question.region_of_cell.ravel(), *logs)


def ends_of(question: EndPointHours, starts: Field, ends: Field, flows: RegionFlows) -> Ends:
    """Shares and distances of the places, from the densities of starts and ends and the trips between regions."""
    weights = [np.maximum(field.ravel(), 1e-9 * field.mean()) + 1e-300 for field in (starts, ends)]
    place, region = question.region_of_cell.ravel(), flows.regions.ravel()
    away = [_means(question.distance, weight, region, len(flows.shares)) for weight in weights]
    difference = np.abs(np.subtract.outer(*away))
    masses, distances, gaps = [], [], []
    for axis, weight in enumerate(weights):
        trips = np.maximum(flows.shares.sum(axis=1 - axis), 1e-300)
        gap = (flows.shares * difference).sum(axis=1 - axis) / trips
        mass = np.bincount(place, weight, minlength=question.regions)
        masses.append(mass / mass.sum())
        distances.append(_means(question.distance, weight, place, question.regions))
        gaps.append(_means(gap[region], weight, place, question.regions))
    return Ends(np.array(masses), np.array(distances), np.array(gaps))


def _means(values: Table, weight: Table, group: NDArray[np.int64], groups: int) -> Table:
    """Weighted mean of the values of each group; 0 for a group without cells."""
    total = np.bincount(group, weight, minlength=groups)
    return np.asarray(np.bincount(group, weight * values, minlength=groups) / np.maximum(total, 1e-300))


def place_ratios(
    question: EndPointHours, noisy: Table, noise: float, places: Ends, hours: Table, count: float
) -> tuple[Table, Table]:
    """(places, 48) posterior means of the ratios of starts and of ends; 1 if all is noise.

    With O the matrix that sums places into the rows of the answer and P that of hours into its parts, the answer is
    O·(1 + X)·Pᵀ + noise. The covariance of X is (own²·K + commuting²·t·tᵀ) ⊗ H. The eigenvectors of O·K·Oᵀ and
    P·H·Pᵀ make the first part diagonal, and the second has rank one in them (Sherman–Morrison).

    Parameters
    ----------
    noisy
        The answer in trajectories; `noise` is its scale.
    hours
        Shares of the 48 hours.
    count
        Number of trajectories.
    """
    rows = count * _observed(question, places)
    parts = (np.arange(question.parts)[:, None] == part_of_hour(question.parts)) * hours
    similar, outward, hourly = _similar_places(places), _outward(places), _similar_hours(hours)
    rest = noisy - np.outer(rows.sum(axis=1), parts.sum(axis=1))
    by_row, row_axes = np.linalg.eigh(rows @ similar @ rows.T)
    by_part, part_axes = np.linalg.eigh(parts @ hourly @ parts.T)
    own_pull, commuting_pull = _pulls(
        row_axes.T @ rest @ part_axes,
        np.outer(np.maximum(by_row, 0.0), np.maximum(by_part, 0.0)),
        row_axes.T @ rows @ outward,
        np.maximum(by_part, 0.0),
        2 * noise**2,
    )
    moved = similar @ rows.T @ row_axes @ own_pull + np.outer(outward, commuting_pull)
    start, end = np.split(1.0 + moved @ part_axes.T @ parts @ hourly, 2)
    return start, end


def _pulls(turned: Table, spread: Table, outward: Table, by_part: Table, variance: float) -> tuple[Table, Table]:
    """own²·Σ⁻¹y and commuting²·tᵀΣ⁻¹y, averaged over the standard deviations, weighted by evidence × prior probability.

    Σ = own²·spread + commuting²·(t·tᵀ)·by_part + variance for the answer y, all in the basis of the eigenvectors.
    """
    evidence, own_pulls, commuting_pulls = [], [], []
    for own in PLACE_HOURS.own:
        for strength in PLACE_HOURS.commuting:
            diagonal = own**2 * spread + variance
            weighted = outward[:, None] / diagonal
            along, projected = (weighted * outward[:, None]).sum(axis=0), (weighted * turned).sum(axis=0)
            added = strength**2 * by_part
            solved = turned / diagonal - weighted * (added * projected / (1 + added * along))
            fit = (turned * solved).sum() + np.log(diagonal).sum() + np.log1p(added * along).sum()
            evidence.append(-0.5 * float(fit))
            own_pulls.append(own**2 * solved)
            commuting_pulls.append(strength**2 * outward @ solved)
    chances = np.outer(PLACE_HOURS.own_chances, PLACE_HOURS.commuting_chances).ravel()
    weight = np.exp(np.array(evidence) - max(evidence)) * chances
    weight /= weight.sum()
    return np.tensordot(weight, own_pulls, 1), np.tensordot(weight, commuting_pulls, 1)


def _observed(question: EndPointHours, places: Ends) -> Table:
    """(rows of the answer, 2 × places): the share of a trajectory that each place adds to each row."""
    inside = np.kron(np.eye(2), np.arange(question.groups)[:, None] == question.group_of_leaf)
    counted = places.mass * (1 - places.gap) / 2
    balance = places.mass * places.distance * [[1.0], [-1.0]]
    return np.vstack([inside * counted.ravel(), balance.ravel()])


def _outward(places: Ends) -> Table:
    """(2 × places,) distance from the centre for starts and its negative for ends, with mean 0 and variance 1 each."""
    away = places.distance - (places.mass * places.distance).sum(axis=1, keepdims=True)
    deviation = np.sqrt((places.mass * away**2).sum(axis=1, keepdims=True))
    unit = np.divide(away, deviation, out=np.zeros_like(away), where=deviation > 1e-9)
    return np.concatenate([unit[0], -unit[1]])


def _similar_places(places: Ends) -> Table:
    """(2 × places, 2 × places) covariance: the share of the levels of the tree at which two places are not separated.

    Starts and ends are independent. The mean over all places, weighted by their mass, is zero.
    """
    size = places.mass.shape[1]
    label = np.arange(size)
    levels = range(max(size.bit_length() - 1, 1))
    tree = np.mean([np.equal.outer(label >> level, label >> level) for level in levels], axis=0)
    covariance = np.zeros((2 * size, 2 * size))
    for k, mass in enumerate(places.mass):
        centred = np.eye(size) - mass
        covariance[k * size : (k + 1) * size, k * size : (k + 1) * size] = centred @ tree @ centred.T
    return covariance


def _similar_hours(hours: Table) -> Table:
    """(48, 48) covariance, with a mean of zero over all hours, weighted by their shares."""
    # A Gaussian wrapped around the clock; a Gaussian of the shorter distance would not be positive definite.
    turn = np.cos(2 * np.pi * np.subtract.outer(np.arange(24), np.arange(24)) / 24)
    near = np.exp((24 / (2 * np.pi * PLACE_HOURS.similar_h)) ** 2 * (turn - 1))
    days = np.full((2, 2), 1 - PLACE_HOURS.weekend_share) + PLACE_HOURS.weekend_share * np.eye(2)
    centred = np.eye(len(hours)) - hours
    return np.asarray(centred @ np.kron(days, near) @ centred.T)
