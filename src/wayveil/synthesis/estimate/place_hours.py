"""Hours at which trips start and end in each region, and an exchange of departures that reproduces them.

Trips go into the centre in the morning and out of it in the evening, so each region has its own distribution of hours
for starts and for ends. The ratio of a region's share at an hour to that of all regions, minus one, has a Gaussian
process prior: values are correlated between regions that are close in the tree of cuts, between close hours, and less
between working days and the weekend. The standard deviation of the process is averaged over with evidence as weights;
one of its values is zero.

Departures are then exchanged between pairs of trips, so the distribution of departures stays exactly the same. The
probability of an exchange depends on a factor of (start region, hour) and a factor of (end region, hour), fitted so
that each region has its distribution of hours.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.pyramid import Field
from wayveil.core.scope import Scope
from wayveil.core.week import PARTS_OF_WEEK, SATURDAY, hour_of_day_or_weekend, part_of_week
from wayveil.questions.answer import Answer
from wayveil.questions.flow import Flow
from wayveil.synthesis.estimate.settings import PLACE_HOURS

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlaceHours:
    """Log ratios of each region's share at each hour to the share of all regions together, for starts and ends."""

    region_of_cell: NDArray[np.int64]
    start: Table
    end: Table


def estimate_place_hours(answer: Answer, starts: Field, ends: Field, departure: Table, count: float) -> PlaceHours:
    """Estimate from the noisy answer; `departure` has the shares of the 7 × 24 hours for all trips."""
    assert isinstance(answer.question, Flow)
    regions = answer.question.region_of_cell
    hours = np.concatenate([departure[:SATURDAY].sum(axis=0), departure[SATURDAY:].sum(axis=0)])
    hours = np.maximum(hours / hours.sum(), 1e-6)
    hours /= hours.sum()
    found = []
    for noisy, field in zip(answer.counts, (starts, ends), strict=True):
        mass = np.bincount(regions.ravel(), field.ravel(), minlength=len(noisy)) + 1e-9 * field.sum()
        ratio = region_ratios(noisy, answer.noise, mass / mass.sum(), hours, count / 2)  # each end counts ½
        found.append(np.log(np.clip(ratio, *PLACE_HOURS.ratio_bounds)))
    return PlaceHours(regions.ravel(), *found)


def region_ratios(noisy: Table, noise: float, mass: Table, hours: Table, count: float) -> Table:
    """(regions, 48): posterior mean of the ratio of each region's share at each hour to that of all; 1 if all is noise.

    The prior mean is count·mass ⊗ parts, and the covariance of the deviations is strength²·K_regions ⊗ K_hours. Both
    are Kronecker products, so the eigenvectors of the two factors give the posterior mean and the evidence of each
    strength.

    Parameters
    ----------
    noisy
        (regions, parts of the week) noisy counts; `noise` is their scale.
    mass, hours
        Shares of the regions, and of the 48 hours.
    """
    parts, alike = _averaging(hours), _alike_hours()
    share = np.bincount(_part_of_hour(), hours, minlength=PARTS_OF_WEEK)
    tree = _alike_regions(len(mass))
    rest = noisy - count * np.outer(mass, share)
    by_region, region_axes = np.linalg.eigh(mass[:, None] * tree * mass)
    by_part, part_axes = np.linalg.eigh(share[:, None] * (parts @ alike @ parts.T) * share)
    turned = region_axes.T @ rest @ part_axes
    spread = count**2 * np.outer(np.maximum(by_region, 0.0), np.maximum(by_part, 0.0))
    evidence, pulls = [], []
    for strength in PLACE_HOURS.strengths:
        variance = strength**2 * spread + 2 * noise**2
        evidence.append(-0.5 * float((turned**2 / variance + np.log(variance)).sum()))
        pulls.append(strength**2 * turned / variance)
    weight = np.exp(np.array(evidence) - max(evidence)) * PLACE_HOURS.chances
    pull = region_axes @ np.tensordot(weight / weight.sum(), pulls, 1) @ part_axes.T
    result: Table = 1.0 + count * tree @ (mass[:, None] * pull * share) @ parts @ alike
    return result


def exchanged_departures(
    found: PlaceHours,
    departure_utc: NDArray[np.float64],
    origin: NDArray[np.int64],
    destination: NDArray[np.int64],
    scope: Scope,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """The same departures, reassigned to trips by their start and end regions.

    In each step two trips exchange their departures or not, with the probability of either state (Gibbs sampling of
    permutations).
    """
    hour = hour_of_day_or_weekend(scope.local_seconds(departure_utc))
    start, end = found.region_of_cell[origin], found.region_of_cell[destination]
    tables = _factors(found, start, end, hour)
    has = np.arange(len(departure_utc))  # index of the departure that each trip has
    for _ in range(PLACE_HOURS.sweeps):
        one, other = random.permutation(len(has))[: len(has) // 2 * 2].reshape(2, -1)
        mine, theirs = hour[has[one]], hour[has[other]]
        gain = np.zeros(len(one))
        for table, region in zip(tables, (start, end), strict=True):
            gain += table[region[one], theirs] - table[region[one], mine]
            gain += table[region[other], mine] - table[region[other], theirs]
        swap = random.random(len(one)) * (1 + np.exp(-gain)) < 1
        has[one[swap]], has[other[swap]] = has[other[swap]], has[one[swap]]
    return departure_utc[has]


def _factors(
    found: PlaceHours, start: NDArray[np.int64], end: NDArray[np.int64], hour: NDArray[np.int64]
) -> tuple[Table, Table]:
    """Logarithms of a(start, hour) and b(end, hour), such that trips weighted by a·b have the ratios of each region.

    The ratios themselves would count the same effect twice if both ends are correlated, as for short trips.
    """
    regions = len(found.start)
    trips = np.bincount(start * regions + end, minlength=regions * regions).reshape(regions, regions).astype(float)
    hours = np.bincount(hour, minlength=found.start.shape[1]) / max(len(hour), 1)
    hour_shares = [hours * np.exp(table) for table in (found.start, found.end)]
    hour_shares = [table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300) for table in hour_shares]
    # Not `rake`: the table of (start, end, hour) is never built, only its factors a and b are.
    a: Table = np.exp(found.start)
    b: Table = np.exp(found.end)
    for _ in range(PLACE_HOURS.factor_rounds):
        for mine, other, flows, share in ((a, b, trips, hour_shares[0]), (b, a, trips.T, hour_shares[1])):
            whole = (mine * hours) @ other.T  # (regions, regions): sums over the hours
            seen = mine * hours * ((flows / np.maximum(whole, 1e-300)) @ other)
            target = flows.sum(axis=1, keepdims=True) * share
            factor = np.divide(target, seen, out=np.ones_like(seen), where=seen > 0)
            mine *= np.clip(factor, 1 / PLACE_HOURS.most_factor, PLACE_HOURS.most_factor)
    return np.log(np.clip(a, 1e-6, 1e6)), np.log(np.clip(b, 1e-6, 1e6))


def _part_of_hour() -> NDArray[np.int64]:
    first = np.r_[np.arange(24), SATURDAY * 24 + np.arange(24)]
    return part_of_week(first * 3600.0)


def _averaging(hours: Table) -> Table:
    """(parts, 48): matrix that averages the hours of each part of the week."""
    inside = np.arange(PARTS_OF_WEEK)[:, None] == _part_of_hour()
    weight = inside * hours
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _alike_hours() -> Table:
    """(48, 48) covariance."""
    # A Gaussian wrapped around the clock; a Gaussian of the shorter distance would not be positive definite.
    turn = np.cos(2 * np.pi * np.subtract.outer(np.arange(24), np.arange(24)) / 24)
    near = np.exp((24 / (2 * np.pi * PLACE_HOURS.similar_h)) ** 2 * (turn - 1))
    return np.asarray(
        np.kron(np.full((2, 2), 1 - PLACE_HOURS.weekend_share) + PLACE_HOURS.weekend_share * np.eye(2), near),
        np.float64,
    )


def _alike_regions(regions: int) -> Table:
    """(regions, regions) covariance: the share of the levels of the tree of cuts at which two regions are not split."""
    depth = max(regions.bit_length() - 1, 1)
    label = np.arange(regions)
    together = [np.equal.outer(label >> level, label >> level) for level in range(depth)]
    return np.asarray(np.mean(together, axis=0))
