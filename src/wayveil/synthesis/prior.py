"""The public prior of synthesis: a road map where there is one, the grid elsewhere.

Privacy: free (public by definition).
"""

from dataclasses import dataclass

from wayveil.grid import base_grid
from wayveil.roads import RoadMap
from wayveil.scope import Scope
from wayveil.synthesis.candidates import PlaceInCells
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.graph import RouteGraph, grid_graph
from wayveil.synthesis.pyramid import Field


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known about the city without the data."""

    features: tuple[Field, ...] = ()
    """Road length a cell by class, for the density's regression; empty without a map."""
    place_in_cells: PlaceInCells | None = None
    """Draws end points on the roads of a cell; None draws them anywhere in it."""
    roads: RoadMap | None = None

    @property
    def on_roads(self) -> bool:
        return self.roads is not None

    def graph(self, estimates: Estimates) -> RouteGraph:
        """The graph that routes are found on."""
        if self.roads is None:
            return grid_graph(estimates.grid, estimates.occupancy)
        from wayveil.synthesis.roads import road_graph

        return road_graph(self.roads, estimates.grid, estimates.scope, estimates.occupancy)


def public_prior(scope: Scope, roads: RoadMap | None) -> Prior:
    """The prior for a scope; a map without a road inside it is as good as none."""
    if roads is None:
        return Prior()
    from wayveil.roads import clip_roads
    from wayveil.synthesis.roads import RoadPoints, road_features

    inside = clip_roads(roads, scope)
    if len(inside) == 0:
        return Prior()
    grid = base_grid(scope)
    points = RoadPoints.of(inside, grid, scope)
    return Prior(road_features(inside, grid, scope), points.draw_in_cells, inside)
