"""A public road map as a prior for the density, for routes, and for the positions of points.

    prior = prepare_roads(roadmap, grid, scope)         # cached after the first call
    estimates = estimate(release, prior.features)
    graph = prior.graph(estimates.passage)
    x_m, y_m = prior.points.draw_in_cells(cells, random)

Privacy: free (the map is public; densities are post-processing of the release).
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid
from wayveil.core.pyramid import Field
from wayveil.core.roads import RoadMap, roads_digest
from wayveil.core.scope import Scope
from wayveil.synthesis.routes.graph import RouteGraph
from wayveil.synthesis.routes.road_cache import cache_folder, cache_name, load_arrays, store_arrays
from wayveil.synthesis.routes.road_features import (
    CLASS_GROUPS,
    RoadPoints,
    RoadSamples,
    features_of,
    road_features,
    road_samples,
)
from wayveil.synthesis.routes.road_graph import network_graph
from wayveil.synthesis.routes.road_network import RoadNetwork, road_network

__all__ = ["RoadPoints", "RoadPrior", "prepare_roads", "road_features"]

_FORMAT = 1
"""Version of the cache format; increase it whenever the same map would give different arrays."""


@dataclass(frozen=True, eq=False)
class RoadPrior:
    """What depends only on the map and the grid."""

    features: tuple[Field, ...]
    """The result of `road_features`; empty if no road lies inside the scope, in which case the map has no effect."""
    points: RoadPoints
    network: RoadNetwork

    def graph(self, density: Field) -> RouteGraph:
        """The graph for routes, with low costs where `density` is high."""
        return network_graph(self.network, self.points.grid, density)

    def __len__(self) -> int:
        return len(self.network)


def prepare_roads(
    roadmap: RoadMap, grid: Grid, scope: Scope, folder: Path | None = None, cached: bool = True
) -> RoadPrior:
    """The prior of a map on a grid, read from the cache if this map was prepared before.

    Parameters
    ----------
    folder
        The folder of the cache; by default the user's cache folder.
    cached
        False: neither read nor write the cache.

    Privacy: free (the map is public).
    """
    folder = (folder or cache_folder()) if cached else None
    box = (scope.south, scope.west, scope.north, scope.east)
    name = cache_name("wayveil roads", _FORMAT, roads_digest(roadmap), grid, box)
    stored = load_arrays(folder, name)
    prior = None if stored is None else _from_arrays(stored, grid)
    if prior is None:
        samples = road_samples(roadmap, grid, scope)
        features = features_of(samples, grid) if len(samples.x_m) else ()
        prior = RoadPrior(features, RoadPoints(grid, samples), road_network(roadmap, grid, scope))
        store_arrays(folder, name, _to_arrays(prior))
    return prior


def _to_arrays(prior: RoadPrior) -> dict[str, NDArray[np.generic]]:
    arrays: dict[str, NDArray[np.generic]] = {"features": np.array(prior.features)}
    for label, value in (("samples", prior.points.samples), ("network", prior.network)):
        arrays |= {f"{label}.{field.name}": getattr(value, field.name) for field in fields(value)}
    return arrays


def _from_arrays(arrays: dict[str, NDArray[np.generic]], grid: Grid) -> RoadPrior | None:
    """The stored prior, or None if its parts do not fit together."""
    try:
        samples = RoadSamples(**_part(arrays, "samples", RoadSamples))
        network = RoadNetwork(**_part(arrays, "network", RoadNetwork))
        features = tuple(arrays["features"])
    except (KeyError, TypeError):
        return None
    if not (_samples_fit(samples, grid) and _network_fits(network)):
        return None
    wanted = (len(CLASS_GROUPS) + 1 if len(samples.x_m) else 0, grid.rows, grid.columns)
    if len(features) != wanted[0] or any(feature.shape != wanted[1:] for feature in features):
        return None
    return RoadPrior(features, RoadPoints(grid, samples), network)


def _part(
    arrays: dict[str, NDArray[np.generic]], label: str, kind: type[RoadSamples] | type[RoadNetwork]
) -> dict[str, Any]:
    return {field.name: arrays[f"{label}.{field.name}"] for field in fields(kind)}


def _samples_fit(samples: RoadSamples, grid: Grid) -> bool:
    columns = (samples.x_m, samples.y_m, samples.length_m, samples.group)
    return (
        len({column.shape for column in columns}) == 1
        and samples.first.shape == (grid.cells + 1,)
        and _offsets_fit(samples.first, len(samples.x_m))
    )


def _network_fits(network: RoadNetwork) -> bool:
    edges = (network.tail, network.head, network.oneway, network.road_class)
    ends = np.r_[network.tail, network.head]
    return (
        network.x_m.shape == network.y_m.shape
        and network.vertex_x_m.shape == network.vertex_y_m.shape
        and all(edge.shape == (len(network.offsets) - 1,) for edge in edges)
        and _offsets_fit(network.offsets, len(network.vertex_x_m))
        and bool((np.diff(network.offsets) >= 2).all())
        and (len(ends) == 0 or bool(ends.min() >= 0 and ends.max() < len(network.x_m)))
    )


def _offsets_fit(offsets: NDArray[np.int64], size: int) -> bool:
    return len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == size and bool((np.diff(offsets) >= 0).all())
