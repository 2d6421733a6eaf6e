"""place_hours: at which hours trips start and end in each region, and departures dealt out accordingly.

Trips into the centre in the morning and out of it in the evening: each region has hours of its own, of its starts and
of its ends. How much more a region is used at an hour than all are, minus one, is a smooth random field: regions that
are siblings in the tree of cuts are alike, so are hours that are close, and to a lesser degree working days and the
weekend. How strong it is, is averaged over by evidence; that it is nothing at all is one of the choices.

Departures are then exchanged between trips, two by two: their hours stay exactly what they were, and who departs when
follows from where the trip starts and where it ends, by factors of both that give each region its hours.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.pyramid import Field
from wayveil.questions.answer import Answer
from wayveil.questions.flow import Flow
from wayveil.scope import Scope
from wayveil.week import PARTS_OF_WEEK, SATURDAY, hour_of_day_or_weekend, part_of_week

Table = NDArray[np.float64]

_ALIKE_H = 3.5
"""Hours as far apart as this are still much alike."""
_OWN = 0.5
"""Of what a region does at an hour, so much differs between working days and the weekend."""
_STRENGTHS = (0.0, 0.15, 0.3, 0.6, 1.2)
_CHANCES = (0.3, 0.2, 0.2, 0.2, 0.1)
_LEAST, _MOST = 0.05, 20.0
_SWEEPS = 60
"""Exchanges that each trip takes part in."""
_FITTINGS = 15


@dataclass(frozen=True, eq=False)
class PlaceHours:
    """Logarithms of how much more each region is used at each hour than all are together."""

    region_of_cell: NDArray[np.int64]
    start: Table
    end: Table


def estimate_place_hours(answer: Answer, starts: Field, ends: Field, departure: Table, count: float) -> PlaceHours:
    """From the noisy answer; `departure` are the shares of the 7 × 24 hours of all trips."""
    assert isinstance(answer.question, Flow)
    regions = answer.question.region_of_cell
    hours = np.concatenate([departure[:SATURDAY].sum(axis=0), departure[SATURDAY:].sum(axis=0)])
    hours = np.maximum(hours / hours.sum(), 1e-6)
    hours /= hours.sum()
    found = []
    for noisy, field in zip(answer.counts, (starts, ends), strict=True):
        mass = np.bincount(regions.ravel(), field.ravel(), minlength=len(noisy)) + 1e-9 * field.sum()
        ratio = region_ratios(noisy, answer.noise, mass / mass.sum(), hours, count / 2)  # half a trip at each end
        found.append(np.log(np.clip(ratio, _LEAST, _MOST)))
    return PlaceHours(regions.ravel(), *found)


def region_ratios(noisy: Table, noise: float, mass: Table, hours: Table, count: float) -> Table:
    """(regions, 48): how much more each region is used at each hour; 1 where nothing was heard.

    With the mean count·mass ⊗ parts and the covariance strength²·K_regions ⊗ K_hours of what is beyond it, everything
    is a product of a matrix of the regions and one of the parts of the week: their eigenvectors give the posterior
    mean and the evidence of each strength.

    Parameters
    ----------
    noisy
        (regions, parts of the week) noisy counts, and the scale of their noise.
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
    for strength in _STRENGTHS:
        variance = strength**2 * spread + 2 * noise**2
        evidence.append(-0.5 * float((turned**2 / variance + np.log(variance)).sum()))
        pulls.append(strength**2 * turned / variance)
    weight = np.exp(np.array(evidence) - max(evidence)) * _CHANCES
    pull = region_axes @ np.tensordot(weight / weight.sum(), pulls, 1) @ part_axes.T
    return 1.0 + count * tree @ (mass[:, None] * pull * share) @ parts @ alike


def exchanged_departures(
    found: PlaceHours,
    departure_utc: NDArray[np.float64],
    origin: NDArray[np.int64],
    destination: NDArray[np.int64],
    scope: Scope,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """The same departures, each at a trip that starts and ends where one at that hour does.

    Two trips at a time exchange theirs or not, as likely as each is (Gibbs' sampler of permutations).
    """
    hour = hour_of_day_or_weekend(scope.local_seconds(departure_utc))
    start, end = found.region_of_cell[origin], found.region_of_cell[destination]
    tables = _factors(found, start, end, hour)
    has = np.arange(len(departure_utc))  # whose departure each trip has
    for _ in range(_SWEEPS):
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
    """Logarithms of a(start, hour) and b(end, hour): trips weighed by both use each region at its hours, at both ends.

    The ratios themselves would count twice what both ends of a trip say, such as of a short one.
    """
    regions = len(found.start)
    trips = np.bincount(start * regions + end, minlength=regions * regions).reshape(regions, regions).astype(float)
    hours = np.bincount(hour, minlength=found.start.shape[1]) / max(len(hour), 1)
    wanted = [hours * np.exp(table) for table in (found.start, found.end)]
    wanted = [table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300) for table in wanted]
    a: Table = np.exp(found.start)
    b: Table = np.exp(found.end)
    for _ in range(_FITTINGS):
        for mine, other, flows, share in ((a, b, trips, wanted[0]), (b, a, trips.T, wanted[1])):
            whole = (mine * hours) @ other.T  # of each pair of regions, over the hours
            seen = mine * hours * ((flows / np.maximum(whole, 1e-300)) @ other)
            target = flows.sum(axis=1, keepdims=True) * share
            mine *= np.clip(np.divide(target, seen, out=np.ones_like(seen), where=seen > 0), 0.2, 5.0)
    return np.log(np.clip(a, 1e-6, 1e6)), np.log(np.clip(b, 1e-6, 1e6))


def _part_of_hour() -> NDArray[np.int64]:
    first = np.r_[np.arange(24), SATURDAY * 24 + np.arange(24)]
    return part_of_week(first * 3600.0)


def _averaging(hours: Table) -> Table:
    """(parts, 48): what a part of the week sees of the hours in it."""
    inside = np.arange(PARTS_OF_WEEK)[:, None] == _part_of_hour()
    weight = inside * hours
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _alike_hours() -> Table:
    """(48, 48) covariance."""
    # A Gaussian around the clock; of the shorter way round it would be no covariance.
    turn = np.cos(2 * np.pi * np.subtract.outer(np.arange(24), np.arange(24)) / 24)
    near = np.exp((24 / (2 * np.pi * _ALIKE_H)) ** 2 * (turn - 1))
    return np.asarray(np.kron(np.full((2, 2), 1 - _OWN) + _OWN * np.eye(2), near), np.float64)


def _alike_regions(regions: int) -> Table:
    """(regions, regions) covariance: the share of the levels of the tree of cuts at which two are still together."""
    depth = max(regions.bit_length() - 1, 1)
    label = np.arange(regions)
    together = [np.equal.outer(label >> level, label >> level) for level in range(depth)]
    return np.asarray(np.mean(together, axis=0))
