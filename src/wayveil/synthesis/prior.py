"""The public prior of synthesis: a road map where there is one, the grid elsewhere.

Privacy: free (public by definition).
"""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.callers import callers_level
from wayveil.errors import UnusedMapWarning
from wayveil.grid import Grid, base_grid
from wayveil.polylines import Polylines
from wayveil.pyramid import Field
from wayveil.roads import RoadMap
from wayveil.scope import Scope
from wayveil.synthesis.candidates import PlaceInCells, inside_cells
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.graph import RouteGraph, grid_graph

if TYPE_CHECKING:
    from wayveil.synthesis.roads import RoadPrior


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known about the city without the data."""

    roads: "RoadPrior | None" = None

    @property
    def features(self) -> tuple[Field, ...]:
        """Road length a cell by class, for the density's regression; empty without a map."""
        return () if self.roads is None else self.roads.features

    def places(self, grid: Grid) -> PlaceInCells:
        """Draws a position in each of many cells: on their roads, or without a map anywhere in them."""
        return partial(inside_cells, grid) if self.roads is None else self.roads.points.draw_in_cells

    def graph(self, estimates: Estimates) -> RouteGraph:
        """The graph that routes are found on."""
        if self.roads is None:
            return grid_graph(estimates.grid, estimates.occupancy)
        return self.roads.graph(estimates.occupancy)

    def as_recorded(
        self, lines: Polylines, points: NDArray[np.int64], estimates: Estimates, random: np.random.Generator
    ) -> Polylines:
        """Routes as a GPS would record them with so many points each; on a grid they are vague already.

        On a map some leave its roads, where those do not lead to what the release says is there, and all get errors.
        """
        if self.roads is None:
            return lines
        from wayveil.synthesis.offroad import leave_roads
        from wayveil.synthesis.roads import jitter

        grid = estimates.grid
        return jitter(leave_roads(lines, points, estimates.occupancy, grid, random), grid, random)


def public_prior(scope: Scope, roads: RoadMap | None) -> Prior:
    """The prior for a scope; a map without a road inside it is as good as none, and a warning says so."""
    if roads is None:
        return Prior()
    from wayveil.synthesis.roads import prepare_roads

    prepared = prepare_roads(roads, base_grid(scope), scope)
    if len(prepared) and prepared.features:
        return Prior(prepared)
    said = "No road of the map lies inside the scope; the map is not used."
    warnings.warn(said, UnusedMapWarning, stacklevel=callers_level())
    return Prior()
