"""What data made from a release is good for: the expected error of each kind of result, as one word.

The error has two parts: the noise of the release (`uncertainty`), and what remains without noise, because a synthetic
trip is drawn from estimated densities. The second part was measured on simulated cities
(research/benchmarks/verdicts.py), as were the spreads of the priors.

Privacy: free (post-processing of the release).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid
from wayveil.questions.duration import Duration
from wayveil.questions.length import Length
from wayveil.questions.mean_interval import MeanInterval
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.release.kinds import KINDS, Kind
from wayveil.synthesis.uncertainty.parts import LIKELY_SD, wrong_share
from wayveil.synthesis.uncertainty.uncertainty import Uncertainty

ZONES = 4
"""Zones along each side of the scope, for trips between zones."""
STREET_M = 100.0
"""Side of the cells in which streets are judged."""
WITHOUT_NOISE = {"number": 0.0, "zones": 0.06, "streets": 0.2, "hours": 0.02, "lengths": 0.04, "speeds": 0.03}
"""The error that remains without noise, on simulated cities of 4 and 12 km at N·ε of 50,000, rounded."""
_MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
"""Mean absolute value of a normal variable with the standard deviation 1."""
_STEPS = 1.5
"""Trips that usually have fewer steps than this have no routes: halfway between one step and two."""
_SHAPE = 1.5
"""Factor on the error of a scale, because the shape of a distribution is also uncertain. Chosen to
be pessimistic, after looking at the demo city and Cabspotting (research/log.md)."""


@dataclass(frozen=True)
class Verdict:
    """What one kind of result is good for, and its expected error as a share: 0 is exact."""

    kind: str
    error: float

    @property
    def about(self) -> Kind:
        """The kind of result."""
        return KINDS[self.kind]

    @property
    def word(self) -> str:
        """'good', 'rough' or 'noise'."""
        return self.about.word(self.error)


def has_routes(found: Uncertainty) -> bool:
    """Whether trips may have points between their ends; False if they probably last for one recording interval.

    Trips of a trip table have two points each, so nothing is known about the streets between.

    Privacy: free (post-processing).
    """
    needed = (Duration, MeanInterval)
    if any(question.name not in found.release for question in needed):
        return True
    duration, interval = (found.ranges(question).median for question in needed)
    error = math.hypot(*(found.scale(question) for question in needed))
    return duration * math.exp(LIKELY_SD * error) >= _STEPS * interval


def verdicts(found: Uncertainty) -> tuple[Verdict, ...]:
    """The verdict about each kind of result, in the order of `KINDS`; none about streets where trips have no routes.

    Privacy: free (post-processing).
    """
    kinds = [kind for kind in KINDS if kind != "streets" or has_routes(found)]
    grid = found.estimates.grid
    zones, streets = square_zones(grid, ZONES), square_cells(grid, STREET_M)
    traffic = np.bincount(streets.ravel(), found.estimates.passage.ravel()).astype(np.float64)
    noise = {
        "number": _MEAN_OF_NORMAL * found.number,
        "zones": wrong_share(found.flows(zones) ** 2, found.trips_between(zones)),
        "streets": wrong_share(found.traffic(streets) ** 2, traffic),
        "hours": wrong_share(found.hours() ** 2, found.estimates.departure.sum(axis=0)),
        "lengths": scale_error(found.scale(Length)),
        "speeds": scale_error(found.scale(MeanSpeed)),
    }
    return tuple(Verdict(kind, math.hypot(WITHOUT_NOISE[kind], noise[kind])) for kind in kinds)


def sentence(found: tuple[Verdict, ...]) -> str:
    """One sentence: what the data is good for, what is rough, and what is noise."""
    groups = {word: [_named(one) for one in found if one.word == word] for word in ("good", "rough", "noise")}
    if not groups["good"] and not groups["rough"]:
        return "This data is noise: do not use it for anything but testing software."
    parts = [f"good for {_list(groups['good'])}"] if groups["good"] else []
    parts += [f"rough for {_list(groups['rough'])}"] if groups["rough"] else []
    parts += [f"noise for {_list(groups['noise'])}"] if groups["noise"] else []
    advice = " Do not use it where it is noise." if groups["noise"] else ""
    return f"This data is {'; '.join(parts)}.{advice}"


def _named(one: Verdict) -> str:
    return f"the {one.about.title}" if one.kind == "number" else one.about.title


def _list(titles: list[str]) -> str:
    return titles[0] if len(titles) == 1 else f"{', '.join(titles[:-1])} and {titles[-1]}"


def scale_error(scale: float) -> float:
    """The expected relative error of quartiles that have this standard error of their logarithm."""
    return _SHAPE * _MEAN_OF_NORMAL * scale


def square_zones(grid: Grid, along: int) -> NDArray[np.int64]:
    """(rows, columns) zone of each base cell; `along` zones along each side."""
    row, column = (
        np.minimum((np.arange(count) + 0.5) * grid.cell_m / extent_m * along, along - 1).astype(np.int64)
        for count, extent_m in ((grid.rows, grid.height_m), (grid.columns, grid.width_m))
    )
    return np.asarray(row[:, None] * along + column)


def square_cells(grid: Grid, side_m: float) -> NDArray[np.int64]:
    """(rows, columns) cell of about `side_m` that each base cell lies in; base cells are not divided."""
    run = max(1, round(side_m / grid.cell_m))
    columns = -(-grid.columns // run)
    return np.asarray(np.arange(grid.rows)[:, None] // run * columns + np.arange(grid.columns) // run)
