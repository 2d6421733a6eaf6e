"""A public road map as a prior: what it says of the density, of routes, and of where points lie.

    prior = prepare_roads(roadmap, grid, scope)         # from the cache after the first time
    estimates = estimate(release, prior.features)
    graph = prior.graph(estimates.occupancy)
    x_m, y_m = prior.points.draw_in_cells(cells, random)

Privacy: free (the map is public; densities are post-processing of the release).
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.polylines import Polylines, steps
from wayveil.pyramid import Field
from wayveil.roads import RoadMap, roads_digest
from wayveil.scope import Scope
from wayveil.synthesis.graph import RouteGraph
from wayveil.synthesis.road_cache import cache_folder, cache_name, load_arrays, store_arrays
from wayveil.synthesis.road_features import (
    CLASS_GROUPS,
    RoadPoints,
    RoadSamples,
    features_of,
    road_features,
    road_samples,
)
from wayveil.synthesis.road_graph import network_graph
from wayveil.synthesis.road_network import RoadNetwork, road_network

__all__ = ["RoadPoints", "RoadPrior", "jitter", "prepare_roads", "road_features", "road_graph"]

_FORMAT = 1
"""Raise it whenever the same map would give other arrays, so that no run reads those of an older version."""
_JITTER_M = 8.0
_JITTER_SPACING_M = 100.0


@dataclass(frozen=True, eq=False)
class RoadPrior:
    """Everything that depends on the map and the grid alone."""

    features: tuple[Field, ...]
    """As `road_features`; empty where no road lies inside the scope, so that the map changes nothing."""
    points: RoadPoints
    network: RoadNetwork

    def graph(self, density: Field) -> RouteGraph:
        """The graph for routes, cheap where `density` is high."""
        return network_graph(self.network, self.points.grid, density)

    def __len__(self) -> int:
        return len(self.network)


def prepare_roads(
    roadmap: RoadMap, grid: Grid, scope: Scope, folder: Path | None = None, cached: bool = True
) -> RoadPrior:
    """The prior of a map on a grid, read from the cache where this map was prepared before.

    Parameters
    ----------
    folder
        Where the cache is; by default the user's cache folder.
    cached
        False to neither read nor write a cache.

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


def road_graph(roadmap: RoadMap, grid: Grid, scope: Scope, density: Field) -> RouteGraph:
    """The map's roads, and blocks of the grid where it has none, as one graph that is cheap where `density` is high.

    Privacy: free (built from estimates and a public map).
    """
    return prepare_roads(roadmap, grid, scope).graph(density)


def jitter(
    lines: Polylines,
    grid: Grid,
    random: np.random.Generator,
    sigma_m: float = _JITTER_M,
    spacing_m: float = _JITTER_SPACING_M,
) -> Polylines:
    """Move polylines as GPS errors would: normal errors every `spacing_m` along them, in between by interpolation.

    Errors of single vertices would make lines of many vertices longer than any road; so a knot every hundred metres
    carries one. Ends stay where they are.

    Privacy: free (post-processing).
    """
    count = np.diff(lines.offsets)
    owner = np.repeat(np.arange(len(lines)), count)
    running = np.cumsum(steps(lines))
    along = running - running[lines.offsets[:-1]][owner]
    total = along[lines.offsets[1:] - 1]
    sections = np.maximum(np.floor(total / spacing_m), 1).astype(np.int64)
    first = np.r_[0, np.cumsum(sections + 1)]
    error = random.normal(0.0, sigma_m, (2, first[-1]))
    error[:, first[:-1]] = 0.0
    error[:, first[1:] - 1] = 0.0
    position = along * (sections / np.maximum(total, 1e-9))[owner]
    section = np.minimum(position.astype(np.int64), sections[owner] - 1)
    share = position - section
    knot = first[:-1][owner] + section
    moved = (1 - share) * error[:, knot] + share * error[:, knot + 1]
    x, y = np.clip(lines.x_m + moved[0], 0.0, grid.width_m), np.clip(lines.y_m + moved[1], 0.0, grid.height_m)
    return Polylines(lines.offsets, x, y)


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
