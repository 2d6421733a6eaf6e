"""How uncertain an estimate from a release is: relative standard errors of zones, flows, hours, lengths and speeds.

Everything follows from the estimates and the scale of the noise of each answer, without a road map: a map adds prior
knowledge, which must not count as data. An error of 0.3 means that the true value is likely to be within 30 % of the
estimate. Where the answers say nothing, the error is the spread of the prior (`SPREADS`).

Privacy: free (post-processing of the release).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.density import NoisyLevel
from wayveil.core.grid import level_shape
from wayveil.core.pyramid import Field, spread
from wayveil.progress import Progress, quiet
from wayveil.questions.answer import Answer
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.departure_hour import DepartureHour
from wayveil.questions.departure_week import DepartureWeek
from wayveil.questions.duration import Duration
from wayveil.questions.end_point_hours import EndPointHours
from wayveil.questions.end_points import EndPoints, EndPointsDetail
from wayveil.questions.histogram import Histogram
from wayveil.questions.length import Length
from wayveil.questions.levels import noisy_levels
from wayveil.questions.mean_interval import MeanInterval
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.questions.occupancy import Occupancy, OccupancyDetail
from wayveil.questions.origin_destination import OriginDestination, OriginDestinationCoarse
from wayveil.questions.passage import Passage
from wayveil.release import Release
from wayveil.release.number import estimate_number
from wayveil.synthesis.estimate.estimate import Estimates, estimate
from wayveil.synthesis.people.estimate import without_people
from wayveil.synthesis.uncertainty.parts import Pieces, Ranges, moved_errors

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Spreads:
    """Standard deviation of the logarithm of a quantity around its expected value without noisy answers.

    Round numbers, chosen on simulated cities (research/benchmarks/verdicts.py).
    """

    place: float = 1.6
    """The traffic of a cell or zone, and the trips between two zones: within a factor of 5."""
    bin: float = 0.7
    """The share of an hour, or of a range of lengths, durations or speeds: within a factor of 2."""
    pace: float = 0.4
    """Time per distance in a zone."""
    tail: float = 0.4
    """Additional spread of the density of a rare range, for each nat by which it is below that of the most frequent
    range: the bulk of a distribution does not show how heavy its tail is."""
    place_hour: float = 0.5
    """The share of a zone at an hour, given the shares of the zone and of the hour."""
    flow: float = 1.0
    """The trips between two zones, given the starts in one and the ends in the other."""


SPREADS = Spreads()
SCALES = {Length: 0.25, MeanSpeed: 0.7, Duration: 0.7, MeanInterval: 0.7}
"""Standard deviation of the logarithm of each quantity's scale under the prior. The size of the scope predicts lengths;
whether people walk or drive is unknown."""
_RAREST = 1e-3
"""Least density of a range relative to the most frequent one; rarer ranges count as having this density."""
_STEP = 0.05
"""Step of the numerical derivative with respect to the logarithm of a scale."""


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Relative standard errors of the estimates from a release, for any zones, hours and bins.

    The errors are those of shares (of all trips, or of all traffic). For numbers of trips, combine them with `number`:
    `np.hypot(error, uncertainty.number)`.

    Privacy: free (post-processing).
    """

    release: Release
    estimates: Estimates

    @property
    def number(self) -> float:
        """Relative standard error of the number of trips."""
        found = estimate_number(self.release)
        return float(found.sd / max(found.value, 1e-9))

    def traffic(self, zone_of_cell: Codes) -> Floats:
        """(zones,) error of each zone's share of the traffic (time spent there).

        `zone_of_cell` has a zone for each cell of `estimates.grid`, (rows, columns), −1 for cells of no zone.
        """
        return np.sqrt(self._zones((Occupancy.name, OccupancyDetail.name), self.estimates.occupancy, zone_of_cell))

    def ends(self, zone_of_cell: Codes) -> Floats:
        """(zones,) error of each zone's share of the starts and ends of trips."""
        return np.sqrt(self._ends(zone_of_cell))

    def flows(self, zone_of_cell: Codes) -> Floats:
        """(zones, zones) error of the share of trips from one zone to another."""
        ends = self._ends(zone_of_cell)
        given = SPREADS.flow**2 + ends[:, None] + ends
        by_flows = np.full_like(given, np.inf)
        for name in (OriginDestinationCoarse.name, OriginDestination.name):
            if name in self.release:
                by_flows = np.minimum(by_flows, self._flows(self.release[name], zone_of_cell, len(ends)))
        return np.asarray(1 / np.sqrt(1 / given + 1 / by_flows))

    def paces(self, zone_of_cell: Codes) -> Floats:
        """(zones,) error of each zone's speed relative to the speed everywhere."""
        if Passage.name not in self.release:
            return np.full(_number_of(zone_of_cell), SPREADS.pace)
        # The speed is a ratio of two densities with similar noise.
        levels = [
            NoisyLevel(level.counts, level.side, np.sqrt(2.0) * level.noise)
            for level in noisy_levels([self.release[Passage.name]])
        ]
        return np.sqrt(_zone_variance(levels, self._scaled(self.estimates.passage), zone_of_cell, SPREADS.pace))

    def hours(self, first_hours: Sequence[int] = tuple(range(24))) -> Floats:
        """Error of the share of departures in each part of the day; a part begins at one of the `first_hours`."""
        edges = np.r_[np.asarray(first_hours, float), 24.0]
        return self._bins(DepartureHour, edges)

    @property
    def days(self) -> Floats:
        """(7,) error of the share of departures on each day of the week, Monday first."""
        if DepartureWeek.name not in self.release:
            return np.full(7, SPREADS.bin)
        answer = self.release[DepartureWeek.name]
        parts = answer.counts.shape[1]
        mass = self.estimates.departure.sum(axis=1) * self._total
        pieces = Pieces(np.arange(7), np.arange(7), mass, 7)
        return np.sqrt(pieces.relative_variance(np.full(7, 2 * parts * answer.noise**2), SPREADS.bin))

    def lengths(self, edges_km: Floats) -> Floats:
        """Error of the share of trips in each range of lengths."""
        return self._bins(Length, edges_km)

    def durations(self, edges_s: Floats) -> Floats:
        """Error of the share of trips in each range of durations."""
        return self._bins(Duration, edges_s)

    def speeds(self, edges_kmh: Floats) -> Floats:
        """Error of the share of trips in each range of mean speeds."""
        return self._bins(MeanSpeed, edges_kmh)

    def scale(self, question: type[Histogram]) -> float:
        """Standard error of the logarithm of the values' scale, which moves all quartiles by the same factor.

        The Fisher information of the noisy counts is Σ (∂λ/∂θ)² / noise variance, if all values are multiplied by e^θ;
        the standard deviation of θ without them is in `SCALES`.
        """
        prior = SCALES[question]
        if question.name not in self.release:
            return prior
        answer = self.release[question.name]
        assert isinstance(answer.question, Histogram)
        found, own_edges = self.ranges(question), np.asarray(answer.question.bins.edges)
        more, less = (found.between(own_edges, theta) * self._total for theta in (_STEP, -_STEP))
        slope = (more - less) / (2 * _STEP)
        return float((prior**-2 + (slope**2).sum() / (2 * answer.noise**2)) ** -0.5)

    @property
    def place_hours(self) -> float:
        """Additional error of a zone's share at an hour, beyond the errors of the zone and of the hour."""
        if EndPointHours.name not in self.release:
            return SPREADS.place_hour
        answer = self.release[EndPointHours.name]
        question = answer.question
        assert isinstance(question, EndPointHours)
        usual = self._total / (question.groups * question.parts) / 2
        return float((SPREADS.place_hour**-2 + usual**2 / (2 * answer.noise**2)) ** -0.5)

    @property
    def cells(self) -> Field:
        """(rows, columns) error of the traffic of each base cell, at the resolution of the finest measured level."""
        levels = noisy_levels([self.release[name] for name in (Occupancy.name, OccupancyDetail.name)])
        fine = levels[-1]
        rows, columns = level_shape(self.estimates.grid, fine.side)
        shape = (self.estimates.grid.rows, self.estimates.grid.columns)
        block = spread(np.arange(rows * columns, dtype=float).reshape(rows, columns), fine.side, shape)
        errors = self.traffic(block.astype(np.int64))
        return spread(errors.reshape(rows, columns), fine.side, shape)

    @property
    def _total(self) -> float:
        return max(estimate_number(self.release).value, 1.0)

    def _scaled(self, field: Field) -> Field:
        """The field in trajectories, as the answers count them."""
        return np.asarray(field * (self._total / max(float(field.sum()), 1e-300)))

    def _zones(self, names: tuple[str, ...], field: Field, zone_of_cell: Codes) -> Floats:
        levels = noisy_levels([self.release[name] for name in names if name in self.release])
        return _zone_variance(levels, self._scaled(field), zone_of_cell, SPREADS.place)

    def _ends(self, zone_of_cell: Codes) -> Floats:
        both = self.estimates.starts + self.estimates.ends
        return self._zones((EndPoints.name, EndPointsDetail.name), both, zone_of_cell)

    def trips_between(self, zone_of_cell: Codes) -> Floats:
        """(zones, zones) estimated share of trips from one zone to another."""
        flows, zones = self.estimates.flows, _number_of(zone_of_cell)
        start, end = self._shares_of_regions(zone_of_cell, zones, flows.regions.ravel(), len(flows.shares))
        return np.asarray(start @ flows.shares @ end.T)

    def _shares_of_regions(self, zone_of_cell: Codes, zones: int, region: Codes, size: int) -> list[Floats]:
        """Two (zones, regions) tables: the share of each region's starts, and of its ends, that lies in a zone."""
        inside, tables = zone_of_cell.ravel() >= 0, []
        for field in (self.estimates.starts.ravel(), self.estimates.ends.ravel()):
            code = zone_of_cell.ravel()[inside] * size + region[inside]
            table = np.bincount(code, field[inside], minlength=zones * size).reshape(zones, size)
            tables.append(table / np.maximum(np.bincount(region, field, minlength=size), 1e-300))
        return tables

    def _flows(self, answer: Answer, zone_of_cell: Codes, zones: int) -> Floats:
        """Relative variance of the trips between zones, from those between regions.

        As in `Pieces`, with the share of a pair of regions that lies in a pair of zones as the product of the shares
        of both regions: Σ over pairs are products of matrices.
        """
        flows, size = self.estimates.flows, answer.shape[0]
        region = flows.regions.ravel() // (len(flows.shares) // size)
        between = flows.shares.reshape(size, -1, size, len(flows.shares) // size).sum(axis=(1, 3)) * self._total
        start, end = self._shares_of_regions(zone_of_cell, zones, region, size)
        whole = np.maximum(start @ between @ end.T, 1e-100)
        noise = 2 * answer.noise**2 * np.outer((start**2).sum(axis=1), (end**2).sum(axis=1))
        # Σ (f·F·(1 − f))² = Σ f²·F² − 2·Σ f³·F² + Σ f⁴·F², with f the product of both shares.
        rest = sum(
            factor * (start**power @ between**2 @ (end**power).T) for power, factor in ((2, 1.0), (3, -2.0), (4, 1.0))
        )
        return np.asarray(np.maximum(noise, 1e-200) / whole**2 + SPREADS.place**2 * np.clip(rest / whole**2, 0.0, 1.0))

    def _bins(self, question: type[Histogram], edges: Floats) -> Floats:
        if question.name not in self.release:
            return np.full(len(edges) - 1, SPREADS.bin)
        answer = self.release[question.name]
        assert isinstance(answer.question, Histogram)
        found = self.estimates.distribution(question)
        pieces = _overlaps(found.bins, found.shares * self._total, answer.question.bins, np.asarray(edges, float))
        density = np.bincount(pieces.part, pieces.mass, minlength=pieces.parts) / np.diff(edges)
        rarer = np.log(density.max() / np.maximum(density, _RAREST * density.max()))
        spread = np.hypot(SPREADS.bin, SPREADS.tail * rarer)
        variance = pieces.relative_variance(np.full(answer.shape, 2 * answer.noise**2), spread, own=True)
        return np.sqrt(variance + self._by_scale(question, edges) ** 2 if question in SCALES else variance)

    def _by_scale(self, question: type[Histogram], edges: Floats) -> Floats:
        """Error of the share of each range if the values' scale is off by its standard error, which moves all ranges.

        A range counts as at least one trip, so that an empty range does not change by an infinite factor.
        """
        return moved_errors(self.ranges(question), edges, self.scale(question), 1 / self._total)

    def ranges(self, question: type[Histogram]) -> Ranges:
        """The estimated distribution of a histogram's quantity."""
        found = self.estimates.distribution(question)
        return Ranges(np.asarray(found.bins.edges), found.shares)


def can_be_judged(release: Release) -> bool:
    """Whether the release answers all questions that a verdict needs; releases of other versions may not.

    Privacy: free (post-processing).
    """
    return all(name in release for name in QUESTIONS if not QUESTIONS[name].optional)


def uncertainty(release: Release, estimates: Estimates | None = None, progress: Progress = quiet) -> Uncertainty:
    """How uncertain the estimates from a release are.

    If `estimates` is None, they are computed without a road map, which takes most of the time.

    Privacy: free (post-processing).
    """
    release = without_people(release)
    return Uncertainty(release, estimate(release, progress=progress) if estimates is None else estimates)


def _zone_variance(levels: Sequence[NoisyLevel], field: Field, zone_of_cell: Codes, prior: float) -> Floats:
    """(zones,) relative variance of each zone, from the most informative level of cells."""
    parts = _number_of(zone_of_cell)
    best = np.full(parts, prior**2)
    for level in levels:
        rows, columns = level.counts.shape
        labels = np.arange(rows * columns, dtype=float).reshape(rows, columns)
        block = spread(labels, level.side, field.shape).astype(np.int64)
        pieces = Pieces(zone_of_cell.ravel(), block.ravel(), field.ravel(), parts)
        noise = np.broadcast_to(2 * np.asarray(level.noise) ** 2, level.counts.shape).ravel()
        best = np.minimum(best, pieces.relative_variance(noise, prior))
    return best


def _number_of(zone_of_cell: Codes) -> int:
    return int(zone_of_cell.max(initial=-1)) + 1


def _overlaps(fine: Bins, mass: Floats, wanted: Bins, edges: Floats) -> Pieces:
    """Pieces of the fine bins between the edges; mass outside the edges counts in the first or last range."""
    cuts = np.unique(np.r_[fine.edges, edges[1:-1]])
    cuts = cuts[(cuts >= fine.edges[0]) & (cuts <= fine.edges[-1])]
    middle = (cuts[1:] + cuts[:-1]) / 2
    running = np.interp(cuts, np.asarray(fine.edges), np.r_[0.0, np.cumsum(mass)])
    part = np.clip(np.searchsorted(edges, middle, side="right") - 1, 0, len(edges) - 2)
    return Pieces(part, wanted.index(middle), np.diff(running), len(edges) - 1)
