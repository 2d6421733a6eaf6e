"""`one_way`: no step may run against the direction of a line, or of the map's one-way streets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import NamedTuple, final

import numpy as np

from wayveil.core import ragged
from wayveil.core.polylines import Polylines, take
from wayveil.core.polylines import step_lengths as line_steps
from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.errors import RuleError
from wayveil.rules.motion import Array, Motion, at_later_point, module_of, step_lengths
from wayveil.rules.nearby_roads import NearbyRoads, near_pieces
from wayveil.rules.route_metres import in_even_steps, lines_near
from wayveil.rules.rule import Rule
from wayveil.rules.segments import FAR_M, RoadPieces, Segments, check_width, first_in_lists, segments_of_roads
from wayveil.rules.tolerances import POSITION_RESERVE_M

SHORTEST_STEP_M = 10.0
"""Metres. Shorter steps have no reliable heading: the vehicle stands still, or it is GPS noise."""
PARALLEL = 0.5
"""Cosine of 60°: the heading is against a road where it is within 60° of the reverse of its direction."""
DEFAULT_WIDTH_M = 10.0
"""Metres: half a street and GPS noise. A larger width finds fewer violations, because more nearby streets allow the
heading."""
ROUTE_STEP_M = 20.0
"""Metres between the points of a route that is checked: twice the shortest step that has a heading."""
_ROUTE_VERTICES = 1 << 14
"""Vertices of routes that are cut into steps at a time; bounds the memory."""


class Headings(NamedTuple):
    """Positions, and the unit vectors of the headings there."""

    x_m: Array
    y_m: Array
    east: Array
    north: Array


@final
@dataclass(frozen=True, eq=False)
class OneWay(Rule):
    """A step breaks the rule if it is longer than 10 m and runs against the road at both of its ends.

    At a position p with heading h, with the pieces k of roads (distance d_k, direction u_k) and
    c_k = width · (−h·u_k − cos 60°), positive for a one-way piece that h runs against; −∞ for a two-way one:

        wrong(p) = min( max_k min(width − d_k, c_k),  min_k max(d_k − width, c_k) )

    that is: some piece within the width is run against, and (for a map) all others within the width are as well, so
    that a two-way street nearby excuses the step. penalty = ReLU(margin + min(length − 10 m, wrong at the ends)); for a
    map the middle of the step counts as a third position, because a step may go round a block between two points.
    Every part is continuous, so the penalty is too; it is about the distance in metres to the nearest legal step.
    """

    segments: Segments
    oneway: np.ndarray
    """(pieces,) whether each piece is one-way, along its direction."""
    width_m: float
    of_map: bool = False
    """Whether the pieces are all streets of a road map, and not a line that a user drew."""
    name: str = "one_way"
    margin: float = 2.0
    """Margin of the penalty in metres."""
    slack: float = 0.0
    """A step that is closer to a violation than this (metres) already counts as one; see `stricter`."""

    def describe(self) -> str:
        """Return the rule in plain words."""
        where = "a street that the map says is one-way" if self.of_map else "the line"
        excuse = "; another street within that distance that allows the heading excuses it" if self.of_map else ""
        return (
            f"Within {self.width_m:g} m of {where}, no step longer than {SHORTEST_STEP_M:g} m may run against its "
            f"direction (within 60° of the reverse){excuse}."
        )

    def penalty(self, motion: Motion) -> Array:
        """Return the metres from the nearest legal step, at the step's later point."""
        if module_of(motion) is not np:
            return self.penalty_among(self.segments, self.oneway, motion)
        dx, dy, length, _ = step_lengths(motion, np)
        return at_later_point(np.maximum(self._wrong_numpy(motion, dx, dy, length, self.margin), 0.0), motion, np)

    def penalty_among(self, pieces: RoadPieces, oneway: Array, motion: Motion) -> Array:
        """Return `penalty` in jax, among these pieces; `oneway` marks those that are one-way."""
        xp = module_of(motion)
        dx, dy, length, _ = step_lengths(motion, xp)
        x, y = motion.x_m[:-1], motion.y_m[:-1]
        # All positions in one array, so that jax compiles a third of the code.
        share = xp.asarray(self._positions, dtype=x.dtype)[:, None]
        heading = (part / xp.maximum(length, 1.0) + 0.0 * share for part in (dx, dy))
        headings = Headings(*(part.reshape(-1) for part in (x + share * dx, y + share * dy, *heading)))
        found = self._wrong_among(pieces, oneway, headings, pieces.most(), xp).reshape(share.shape[0], -1)
        wrong = xp.minimum(length - SHORTEST_STEP_M, xp.min(found, axis=0))
        return at_later_point(xp.maximum(wrong + self.margin, 0.0), motion, xp)

    def violations(self, motion: Motion) -> np.ndarray:
        """Return the later points of steps against the direction."""
        dx, dy, length, _ = step_lengths(motion, np)
        result: np.ndarray = at_later_point(self._wrong_numpy(motion, dx, dy, length, self.slack) > 0, motion, np)
        return result

    def binds_routes(self) -> bool:
        """Return whether a user drew the line; routes know the directions of the map's own streets already."""
        return not self.of_map

    def metres_against(self, lines: Polylines) -> np.ndarray:
        """Return the metres of the steps that break the rule, on lines that are cut into short steps."""
        metres = np.zeros(len(lines))
        ax, ay, bx, by = self.segments.ends.T
        west, south = (float(np.minimum(*both).min()) - self.width_m for both in ((ax, bx), (ay, by)))
        east, north = (float(np.maximum(*both).max()) + self.width_m for both in ((ax, bx), (ay, by)))
        near = lines_near(lines, (west, south, east, north))
        if len(near) == 0:
            return metres
        chosen = take(lines, near)
        for first, last in ragged.runs(chosen.offsets, _ROUTE_VERTICES):
            part = in_even_steps(take(chosen, np.arange(first, last)), ROUTE_STEP_M)
            unused = np.zeros(len(part.x_m))
            joins = np.ones(max(len(part.x_m) - 1, 0), bool)
            joins[part.offsets[1:-1] - 1] = False
            wrong = self.violations(Motion(part.x_m, part.y_m, unused, unused, joins, part.offsets, unused))
            step_m = np.where(wrong, line_steps(part.offsets, part.x_m, part.y_m), 0.0)
            metres[near[first:last]] = ragged.sums(step_m, part.offsets)
        return metres

    def about_steps(self) -> bool:
        """Return True: either end of a wrong step may move."""
        return True

    def prepare(self, motion: Motion) -> tuple[np.ndarray, ...]:
        """Return the pieces of road near each step: a search that gradient descent need not repeat."""
        return (*near_pieces(self.segments, self._positions, motion), np.asarray(self.oneway))

    def place_penalty(self, motion: Motion, prepared: tuple[Array, ...]) -> Array:
        """Return the penalty among the pieces that `prepare` found."""
        piece, ends, directions, oneway = prepared
        return self.penalty_among(NearbyRoads(piece, ends, directions), oneway, motion)

    def stricter(self) -> OneWay:
        """Return the rule with a few centimetres of reserve."""
        return replace(self, slack=POSITION_RESERVE_M)

    def _wrong_numpy(
        self, motion: Motion, dx: np.ndarray, dy: np.ndarray, length: np.ndarray, margin: float
    ) -> np.ndarray:
        """Return wrong + margin where that is positive, and some value that is not positive elsewhere.

        Positions along a step are looked up only while the step can still be wrong.
        """
        wrong = np.where(motion.joins, length - SHORTEST_STEP_M, -FAR_M) + margin
        for share in self._positions:
            steps = np.flatnonzero(wrong > 0)
            x, y = motion.x_m[steps] + share * dx[steps], motion.y_m[steps] + share * dy[steps]
            for group, most in self.segments.blocks(x, y):
                part = steps[group]
                headings = Headings(x[group], y[group], dx[part] / length[part], dy[part] / length[part])
                wrong[part] = np.minimum(wrong[part], margin + self.wrong_at(headings, most, np))
        return wrong

    @property
    def _positions(self) -> tuple[float, ...]:
        """Shares of the way along a step at which the street is looked up."""
        return (0.0, 1.0, 0.5) if self.of_map else (0.0, 1.0)

    def wrong_at(self, headings: Headings, most: int, xp: ModuleType) -> Array:
        """Return wrong(p) at positions with headings, in metres; see the class."""
        return self._wrong_among(self.segments, self.oneway, headings, most, xp)

    def _wrong_among(
        self, pieces: RoadPieces, oneway: Array, headings: Headings, most: int, xp: ModuleType
    ) -> Array:
        x, y, hx, hy = headings
        piece, distance = pieces.near(x, y, most, xp)
        along = xp.asarray(pieces.directions, dtype=x.dtype)[piece]
        against = self.width_m * (-(hx[:, None] * along[..., 0] + hy[:, None] * along[..., 1]) - PARALLEL)
        against = xp.where(xp.asarray(oneway)[piece] & (piece >= 0), against, -FAR_M)
        wrong = xp.max(xp.minimum(self.width_m - distance, against), axis=1)
        if not self.of_map:
            return wrong
        return xp.minimum(wrong, xp.min(xp.maximum(distance - self.width_m, against), axis=1))


def map_one_ways(
    roadmap: RoadMap, scope: Scope, width_m: float = DEFAULT_WIDTH_M, name: str = "map one-ways"
) -> OneWay:
    """Return a rule for the map's own one-way streets; a street of unknown direction counts as two-way."""
    check_width(width_m)
    segments = segments_of_roads(roadmap, scope, width_m + 5.0)
    oneway = np.asarray(roadmap.oneway)[segments.road] == 1
    if not oneway.any():
        raise RuleError("The road map has no one-way street in the scope; remove the one_way rule.")
    return OneWay(first_in_lists(segments, oneway), oneway, width_m, of_map=True, name=name)
