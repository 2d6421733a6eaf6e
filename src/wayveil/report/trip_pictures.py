"""Real and synthetic trips side by side, as one inline SVG for the internal report."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.polylines import Polylines, lengths
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories

SHOWN = 12
"""Number of trips shown on each side."""
_COLUMNS, _CELL, _MARGIN, _TEXT, _GAP = 4, 96.0, 8.0, 14.0, 28.0
"""Columns of trips, and lengths in units of the SVG."""
_MOST_POINTS = 150
"""Points drawn of one trip: more cannot be told apart in a picture of this size."""

Floats = NDArray[np.float64]


def trip_pictures(real: Trajectories, synthetic: Trajectories, scope: Scope) -> str | None:
    """Twelve trips of each side, from short to long: the line, a dot for each point, and the length.

    Trips at the same place in both halves have the same rank of length, so they can be compared. None where a side has
    no trip of two points inside the scope.

    Privacy: not private (trusted side only).
    """
    sides = [_chosen(side, scope) for side in (real, synthetic)]
    if not all(sides):
        return None
    block = _COLUMNS * _CELL
    height = _TEXT + -(-SHOWN // _COLUMNS) * (_CELL + _TEXT)
    drawn = []
    for side, (name, kind) in enumerate((("Real", "real"), ("Synthetic", "made"))):
        left = side * (block + _GAP)
        drawn.append(f'<text class="side" x="{left:g}" y="11">{name}</text>')
        for place, (x_m, y_m, length_m) in enumerate(sides[side]):
            west, north = left + place % _COLUMNS * _CELL, _TEXT + place // _COLUMNS * (_CELL + _TEXT)
            drawn.append(_trip(x_m, y_m, west, north, kind))
            label = f"{length_m / 1000:.1f} km"
            drawn.append(
                f'<text x="{west + _CELL / 2:g}" y="{north + _CELL + 9:g}" text-anchor="middle">{label}</text>'
            )
    words = f"{SHOWN} real trips on the left and {SHOWN} synthetic trips on the right, from short to long"
    return (
        f'<svg class="trips" viewBox="0 0 {2 * block + _GAP:g} {height:g}" role="img" aria-label="{words}">'
        f"{''.join(drawn)}</svg>"
    )


def _chosen(trajectories: Trajectories, scope: Scope) -> list[tuple[Floats, Floats, float]]:
    """x, y and length of trips at twelve equally spaced ranks of length."""
    x_m, y_m = scope.to_metres(trajectories.lon, trajectories.lat)
    outside = (x_m < 0) | (x_m > scope.width_m) | (y_m < 0) | (y_m > scope.height_m)
    offsets = trajectories.offsets
    inside = np.logical_or.reduceat(outside, offsets[:-1]) == 0 if len(trajectories) else np.zeros(0, bool)
    usable = np.flatnonzero(inside & (np.diff(offsets) > 1))
    if len(usable) == 0:
        return []
    length_m = lengths(Polylines(offsets, x_m, y_m))
    ordered = usable[np.argsort(length_m[usable], kind="stable")]
    ranks = ((np.arange(SHOWN) + 0.5) / SHOWN * len(ordered)).astype(int)
    return [(x_m[offsets[k] : offsets[k + 1]], y_m[offsets[k] : offsets[k + 1]], float(length_m[k]))
            for k in ordered[ranks]]  # fmt: skip


def _trip(x_m: Floats, y_m: Floats, west: float, north: float, kind: str) -> str:
    """The trip fitted into its square, north up."""
    if len(x_m) > _MOST_POINTS:
        kept = np.linspace(0, len(x_m) - 1, _MOST_POINTS).astype(int)
        x_m, y_m = x_m[kept], y_m[kept]
    scale = (_CELL - 2 * _MARGIN) / max(float(np.ptp(x_m)), float(np.ptp(y_m)), 1.0)
    x = west + _CELL / 2 + (x_m - (x_m.min() + x_m.max()) / 2) * scale
    y = north + _CELL / 2 - (y_m - (y_m.min() + y_m.max()) / 2) * scale
    places = [f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist())]
    return (
        f'<path class="way {kind}" d="M{"L".join(places)}"/>'
        f'<path class="dots {kind}" d="{"".join(f"M{place}h0" for place in places)}"/>'
    )
