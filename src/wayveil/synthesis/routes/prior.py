"""The public prior of synthesis: a road map where there is one, the grid elsewhere.

Privacy: free (public by definition).
"""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid, base_grid
from wayveil.core.polylines import Polylines
from wayveil.core.pyramid import Field
from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.core.warning_location import callers_level
from wayveil.errors import UnusedMapWarning
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.routes.graph import RouteGraph, grid_graph
from wayveil.synthesis.trips.candidates import PlaceInCells, inside_cells

if TYPE_CHECKING:
    from wayveil.synthesis.routes.road_prior import RoadPrior


@dataclass(frozen=True, eq=False)
class Prior:
    """Public knowledge about the city."""

    roads: "RoadPrior | None" = None

    @property
    def features(self) -> tuple[Field, ...]:
        """Road length per cell by class, for the regression of the density; empty without a map."""
        return () if self.roads is None else self.roads.features

    def places(self, grid: Grid) -> PlaceInCells:
        """A function that draws a position in each given cell: on a road if there is a map, anywhere otherwise."""
        return partial(inside_cells, grid) if self.roads is None else self.roads.points.draw_in_cells

    def graph(self, estimates: Estimates) -> RouteGraph:
        """The graph on which routes are found."""
        if self.roads is None:
            return grid_graph(estimates.grid, estimates.passage)
        return self.roads.graph(estimates.passage)

    def with_offroad_visits(
        self, lines: Polylines, points: NDArray[np.int64], estimates: Estimates, random: np.random.Generator
    ) -> Polylines:
        """The routes of trips with these numbers of points; with a map, some leave the roads (`leave_roads`)."""
        if self.roads is None:
            return lines
        from wayveil.synthesis.routes.offroad import leave_roads  # only runs with a map need it

        return leave_roads(lines, points, estimates.occupancy, estimates.grid, random)


def public_prior(scope: Scope, roads: RoadMap | None) -> Prior:
    """The prior for a scope; a map without a road inside the scope is ignored with a warning."""
    if roads is None:
        return Prior()
    from wayveil.synthesis.routes.road_prior import prepare_roads  # only runs with a map need it

    prepared = prepare_roads(roads, base_grid(scope), scope)
    if len(prepared) and prepared.features:
        return Prior(prepared)
    message = "No road of the map lies inside the scope; the map is not used."
    warnings.warn(message, UnusedMapWarning, stacklevel=callers_level())
    return Prior()
