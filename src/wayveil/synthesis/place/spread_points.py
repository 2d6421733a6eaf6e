"""Small moves of sparse points, so that the counts of cells match the density: along their routes if those are streets.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, place, steps
from wayveil.core.pyramid import Field
from wayveil.synthesis.place.points import histogram
from wayveil.synthesis.place.settings import SPREAD


@dataclass(frozen=True, eq=False)
class Choices:
    """Other places for some of the fixes."""

    fix: NDArray[np.int64]
    x_m: NDArray[np.float32]
    """(places, fixes)."""
    y_m: NDArray[np.float32]

    def moved(self, before: Polylines, after: Polylines) -> "Choices":
        """The same places, each moved like its fix from `before` to `after`."""
        x_m, y_m = (a[self.fix] - b[self.fix] for a, b in ((after.x_m, before.x_m), (after.y_m, before.y_m)))
        return Choices(self.fix, self.x_m + x_m.astype(np.float32), self.y_m + y_m.astype(np.float32))


def places_along(
    route: Polylines,
    weight: NDArray[np.float64],
    moving_share: NDArray[np.float64],
    fixes: Polylines,
    reserve: NDArray[np.float64],
    random: np.random.Generator,
) -> Choices:
    """Some places on the route near each sparse fix, between the fix before and the fix after it.

    Ends and fixes before or after a rest do not move, nor do the fixes of dense tracks, whose moves would be too short
    to matter.

    Parameters
    ----------
    moving_share
        Share of the route's weight at each fix.
    reserve
        How much longer the step that ends at each fix may become, as a share of its length.
    """
    gap = np.diff(moving_share, prepend=0.0)
    step_m = steps(fixes)
    reach = np.minimum(SPREAD.reach, reserve / 2)
    forward = np.zeros(len(moving_share))
    forward[:-1] = (reach * gap)[1:]
    least_m = (reach * step_m).copy()
    np.minimum(least_m[:-1], least_m[1:], out=least_m[:-1])
    inner = _inner(fixes) & (gap > 0) & (forward > 0) & (least_m > SPREAD.sparse_m)
    fix = np.flatnonzero(inner)
    own = ragged.offsets_of(ragged.sums(inner.astype(np.int64), fixes.offsets))
    x_m, y_m = (np.empty((SPREAD.proposals, len(fix)), np.float32) for _ in range(2))
    back, forward, at = (reach * gap)[fix], forward[fix], moving_share[fix]
    for k in range(SPREAD.proposals):
        move = 2 * random.random(len(fix)) - 1
        placed = place(route, weight, own, at + np.where(move < 0, back, forward) * move)
        x_m[k], y_m[k] = placed.x_m, placed.y_m
    return Choices(fix, x_m, y_m)


def places_around(fixes: Polylines, reserve: NDArray[np.float64], random: np.random.Generator) -> Choices:
    """Some places around each sparse fix: without a map, a route is accurate to a few hundred metres only.

    `reserve` is as for `places_along`.
    """
    reach_m = np.minimum(SPREAD.reach, reserve / (2 * np.sqrt(2))) * steps(fixes)
    np.minimum(reach_m[:-1], reach_m[1:], out=reach_m[:-1])
    np.minimum(reach_m, SPREAD.furthest_m, out=reach_m)
    fix = np.flatnonzero(_inner(fixes) & (reach_m > SPREAD.sparse_m))
    move = 2 * random.random((2, SPREAD.proposals, len(fix)), dtype=np.float32) - 1
    move *= reach_m[fix].astype(np.float32)
    return Choices(fix, move[0] + fixes.x_m[fix].astype(np.float32), move[1] + fixes.y_m[fix].astype(np.float32))


def _inner(fixes: Polylines) -> NDArray[np.bool_]:
    """Which fixes are neither the first nor the last of their trip."""
    inner = np.ones(len(fixes.x_m), bool)
    inner[fixes.offsets[:-1]] = False
    inner[fixes.offsets[1:] - 1] = False
    return inner


def spread_points(
    lines: Polylines, choices: Sequence[Choices], density: Field, grid: Grid, random: np.random.Generator
) -> Polylines:
    """Move each fix to the one of its places that lowers Σ (count − target)² / target most, or leave it.

    No fix is in two entries of `choices`.
    """
    fix = np.concatenate([np.zeros(0, np.int64), *(some.fix for some in choices)])
    if len(fix) == 0:
        return lines
    at = np.concatenate([grid.index(some.x_m, some.y_m).astype(np.int32) for some in choices], axis=1)
    cell = grid.index(lines.x_m[fix], lines.y_m[fix]).astype(np.int32)
    target = (density * (len(lines.x_m) / density.sum())).ravel() + SPREAD.least_wanted
    surplus = histogram(lines, grid, np.diff(lines.offsets)).ravel() - target
    worth = 1.0 / target
    order, taken = random.permutation(len(fix)), np.full(len(fix), -1)
    size = max(SPREAD.least_block, min(SPREAD.block, grid.cells // SPREAD.cells_each))
    for first in list(range(0, len(order), size)) * SPREAD.sweeps:
        some = order[first : first + size]
        here, proposed = cell[some], at[:, some]
        # Half of the change: the square of a surplus changes by 2·surplus ± 1 if a point is added or removed.
        gain = (surplus[here] - 0.5) * worth[here] - (surplus[proposed] + 0.5) * worth[proposed]
        gain[proposed == here] = 0.0
        best = gain.argmax(axis=0)
        goes = np.flatnonzero(gain[best, np.arange(len(here))] > 0)
        best, some = best[goes], some[goes]
        np.subtract.at(surplus, here[goes], 1.0)
        cell[some], taken[some] = at[best, some], best
        np.add.at(surplus, cell[some], 1.0)
    x_m, y_m = lines.x_m.copy(), lines.y_m.copy()
    moved = taken >= 0
    for column, places in ((x_m, [c.x_m for c in choices]), (y_m, [c.y_m for c in choices])):
        column[fix[moved]] = np.concatenate(places, axis=1)[taken[moved], np.flatnonzero(moved)]
    return Polylines(lines.offsets, np.clip(x_m, 0.0, grid.width_m), np.clip(y_m, 0.0, grid.height_m))
