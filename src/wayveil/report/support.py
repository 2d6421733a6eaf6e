"""Where the density is based on data and where on the prior: a small map for the internal report.

Privacy: free (post-processing of the release); shown to the owner, who must judge what the density can be used for.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.density import NoisyLevel, estimate_field
from wayveil.core.grid import base_grid
from wayveil.core.pyramid import pool
from wayveil.questions.levels import noisy_levels
from wayveil.questions.occupancy import Occupancy, OccupancyDetail
from wayveil.release import Release
from wayveil.release.number import estimate_number
from wayveil.synthesis.estimate.fields import cell_area
from wayveil.synthesis.estimate.learned.support import data_share

_MOST_CELLS = 14_000
"""Cells of the map."""
_MOST_BASE_CELLS = 400_000
"""Above this, the estimate uses the cells of the finest level instead of base cells, so that the page takes only
seconds."""
_EDGES = (0.0, 0.1, 0.3, 0.6, 0.9)
"""The colour of the map changes at these shares of data in the estimate."""


@dataclass(frozen=True)
class Support:
    """The map as SVG, its legend from prior to data, and the mean share of data."""

    figure: str
    legend: tuple[str, ...]
    cell_m: float
    percent: float
    """Mean of the data's share over the map, weighted by the estimated density."""


def make_support(release: Release) -> Support | None:
    """λ² / (λ² + 2·noise²) on a map, where λ is the estimated count; None if the release does not count places.

    λ is estimated from the noisy counts alone: a road map or the neural network would add prior knowledge, which must
    not count as data.

    Privacy: free (post-processing).
    """
    names = (Occupancy.name, OccupancyDetail.name)
    if "count" not in release or not all(name in release for name in names):
        return None
    grid = base_grid(release.scope)
    levels, area = noisy_levels([release[name] for name in names]), cell_area(grid)
    unit = levels[-1].side if area.size > _MOST_BASE_CELLS else 1
    levels = [NoisyLevel(level.counts, level.side // unit, level.noise, level.gaussian) for level in levels]
    area = pool(area, unit)
    estimate = estimate_field(levels, max(estimate_number(release).value, 1.0), area)
    share = data_share(levels, estimate)
    block = max(1, int(np.ceil(np.sqrt(area.size / _MOST_CELLS))))
    weight = pool(estimate, block)
    shown = np.divide(pool(share * estimate, block), weight, out=np.zeros_like(weight), where=weight > 0)
    return Support(
        figure=_drawing(shown),
        legend=tuple(_percent_range(step) for step in range(len(_EDGES))),
        cell_m=levels[-1].side * unit * grid.cell_m,
        percent=100 * float((share * estimate).sum() / max(estimate.sum(), 1e-300)),
    )


def _drawing(share: NDArray[np.float64]) -> str:
    """One path for each step of the legend, made of runs along the rows; north is up."""
    rows, columns = share.shape
    step = np.searchsorted(_EDGES, share, side="right") - 1
    paths: list[list[str]] = [[] for _ in _EDGES]
    for row in range(rows):
        line = step[row]
        starts = np.r_[0, np.flatnonzero(np.diff(line)) + 1]
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), columns]):
            paths[line[start]].append(f"M{start} {rows - 1 - row}h{end - start}v1h-{end - start}z")
    drawn = "".join(
        f'<path class="rests-{k}" d="{"".join(path)}"><title>{_percent_range(k)}</title></path>'
        for k, path in enumerate(paths)
        if path
    )
    label = "Map of how much of the density is based on data: faint for the prior, strong for counts above the noise"
    return (
        f'<svg class="rests" viewBox="0 0 {columns} {rows}" role="img" aria-label="{label}" '
        f'shape-rendering="crispEdges">{drawn}</svg>'
    )


def _percent_range(step: int) -> str:
    low, high = 100 * _EDGES[step], 100 * (*_EDGES, 1.0)[step + 1]
    return f"{low:.0f}–{high:.0f} %"
