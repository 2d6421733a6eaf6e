"""Where real and synthetic data differ: a map of the differences, and trips between zones. Trusted side only."""

import html
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, batches

_ACROSS = 48
"""Cells along the longer side of the map of differences."""
_ZONES = 4
"""Zones along each side of the scope, as in the verdicts of the data sheet."""
_STEPS = (1.25, 1.6, 2.5, 5.0)
"""Ratios of the shares at which the colour of a cell changes, from faint to strong."""
_LEAST = 0.0005
"""A cell is coloured if it has at least this share of the points of one side."""
_ROWS = 8
"""Pairs of zones in the table."""
_SIZE, _MARGIN = 340, 60
"""The chart of trips between zones, in units of the SVG."""


@dataclass(frozen=True)
class PairRow:
    """The trips from one zone to another, as text."""

    pair: str
    real: str
    synthetic: str
    difference: str


@dataclass(frozen=True)
class Differences:
    """The map of differences and the comparison of trips between zones.

    Privacy: not private (trusted side only).
    """

    map: str
    legend: tuple[tuple[str, str], ...]
    """CSS class and label of each colour."""
    cell_km: float
    wrong_percent: float
    """Share of the synthetic points that would have to be in another cell."""
    chart: str
    pairs: tuple[PairRow, ...]
    wrong_pairs_percent: float
    """Share of the synthetic trips that would have to be between other zones."""


def differences(real: Trajectories, synthetic: Trajectories, scope: Scope) -> Differences:
    """Compare where points lie, and between which of 16 zones trips go.

    Privacy: not private (trusted side only).
    """
    cell_m = max(scope.width_m, scope.height_m) / _ACROSS
    shape = (max(1, round(scope.height_m / cell_m)), max(1, round(scope.width_m / cell_m)))
    points = [_density(side, scope, shape) for side in (real, synthetic)]
    trips = [_trips(side, scope) for side in (real, synthetic)]
    return Differences(
        map=_map(*points),
        legend=tuple((f"{side}-{k}", f"{words} by a factor of {factor:g}") for side, words in (("more", "too many"),
                     ("less", "too few")) for k, factor in enumerate(_STEPS)),
        cell_km=cell_m / 1000,
        wrong_percent=50 * float(np.abs(points[0] - points[1]).sum()),
        chart=_chart(*trips),
        pairs=_pairs(*trips),
        wrong_pairs_percent=50 * float(np.abs(trips[0] - trips[1]).sum()),
    )  # fmt: skip


def _cells(
    lon: NDArray[np.float64], lat: NDArray[np.float64], scope: Scope, shape: tuple[int, int]
) -> NDArray[np.int64]:
    """The cell of each position; positions outside are put into the nearest one."""
    x, y = scope.to_metres(lon, lat)
    row = np.clip(y / scope.height_m * shape[0], 0, shape[0] - 1).astype(np.int64)
    return np.asarray(row * shape[1] + np.clip(x / scope.width_m * shape[1], 0, shape[1] - 1).astype(np.int64))


def _density(side: Trajectories, scope: Scope, shape: tuple[int, int]) -> NDArray[np.float64]:
    counts = np.zeros(shape[0] * shape[1])
    for piece in batches(side):
        counts += np.bincount(_cells(piece.lon, piece.lat, scope, shape), minlength=len(counts))
    return np.asarray((counts / max(counts.sum(), 1)).reshape(shape))


def _trips(side: Trajectories, scope: Scope) -> NDArray[np.float64]:
    """(zones, zones) share of the trips from one zone to another."""
    shape, zones = (_ZONES, _ZONES), _ZONES**2
    first, last = side.offsets[:-1], side.offsets[1:] - 1
    start, end = (_cells(side.lon[at], side.lat[at], scope, shape) for at in (first, last))
    return np.asarray(np.bincount(start * zones + end, minlength=zones**2).reshape(zones, zones) / max(len(side), 1))


def _map(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> str:
    """One path for each colour; north is up."""
    rows, columns = real.shape
    ratio = np.log((synthetic + _LEAST / 10) / (real + _LEAST / 10))
    busy = np.maximum(real, synthetic) >= _LEAST
    step = np.searchsorted(np.log(_STEPS), np.abs(ratio), side="right") - 1
    drawn = [f'<rect class="quiet" width="{columns}" height="{rows}"/>']
    for side, sign in (("more", 1), ("less", -1)):
        for k in range(len(_STEPS)):
            found = np.argwhere(busy & (step == k) & (np.sign(ratio) == sign))
            path = "".join(f"M{column} {rows - 1 - row}h1v1h-1z" for row, column in found.tolist())
            drawn.append(f'<path class="{side}-{k}" d="{path}"/>' if path else "")
    label = "Map of the differences between the shares of points in the real and in the synthetic data"
    return (
        f'<svg class="differences" viewBox="0 0 {columns} {rows}" role="img" aria-label="{label}" '
        f'shape-rendering="crispEdges">{"".join(drawn)}</svg>'
    )


def _chart(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> str:
    """Each pair of zones as a dot, its real share to the right and its synthetic one upwards, on logarithmic axes."""
    top = max(float(real.max()), float(synthetic.max()), 1e-3)
    low = min(top / 1000, 1e-3)

    def along(share: float) -> float:
        return (_SIZE - _MARGIN - 10) * float(np.log(max(share, low) / low) / np.log(top / low))

    dots = "".join(
        f'<circle cx="{_MARGIN + along(a):.1f}" cy="{_SIZE - _MARGIN - along(b):.1f}" r="3"><title>'
        f"{html.escape(_pair(k))}: real {100 * a:.2f} %, synthetic {100 * b:.2f} %</title></circle>"
        for k, (a, b) in enumerate(zip(real.ravel().tolist(), synthetic.ravel().tolist(), strict=True))
        if max(a, b) > low
    )
    ticks = [10.0**power for power in range(-4, 0) if low <= 10.0**power <= top]
    axes = "".join(
        f'<text x="{_MARGIN + along(tick):.1f}" y="{_SIZE - _MARGIN + 16}" text-anchor="middle">{100 * tick:g} %</text>'
        f'<text x="{_MARGIN - 6}" y="{_SIZE - _MARGIN - along(tick) + 4:.1f}" text-anchor="end">{100 * tick:g} %</text>'
        for tick in ticks
    )
    far = along(top)
    line = (
        f'<path class="grid" d="M{_MARGIN} {_SIZE - _MARGIN}L{_MARGIN + far:.1f} {_SIZE - _MARGIN - far:.1f}'
        f'M{_MARGIN} 10V{_SIZE - _MARGIN}H{_SIZE - 10}"/>'
    )
    names = (
        f'<text x="{(_SIZE + _MARGIN) / 2:.0f}" y="{_SIZE - 8}" text-anchor="middle">real share of trips</text>'
        f'<text transform="translate(12 {(_SIZE - _MARGIN) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        "synthetic share</text>"
    )
    return (
        f'<svg class="chart pairs" viewBox="0 0 {_SIZE} {_SIZE}" role="img" aria-label="Trips between zones: real '
        f'against synthetic shares">{line}{dots}{axes}{names}</svg>'
    )


def _pairs(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> tuple[PairRow, ...]:
    """The pairs with the largest differences."""
    away = (synthetic - real).ravel()
    worst = np.argsort(-np.abs(away), kind="stable")[:_ROWS]
    return tuple(
        PairRow(
            _pair(int(k)),
            f"{100 * real.ravel()[k]:.2f} %",
            f"{100 * synthetic.ravel()[k]:.2f} %",
            f"{100 * away[k]:+.2f}",
        )
        for k in worst
    )


def _pair(code: int) -> str:
    return " → ".join(_zone(zone) for zone in divmod(code, _ZONES**2))


def _zone(zone: int) -> str:
    """A letter from west to east and a number from north to south."""
    row, column = divmod(zone, _ZONES)
    return f"{'ABCD'[column]}{_ZONES - row}"
