"""Which links a trip uses: points are matched to the nearest link and joined by shortest paths on the network.

A step between two points is matched if both lie close to a link and the shortest path between them is not much longer
than the straight line. Other steps are gaps: they add to no link, and their share of the distance is reported.

Privacy: free (post-processing, if the trips are synthetic).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.progress import Progress, quiet
from wayveil.traffic.links import Links
from wayveil.traffic.paths import Floats, Ints, OnLinks, find_paths


@dataclass(frozen=True)
class MatchSettings:
    """How points are matched."""

    reach_m: float = 60.0
    """Points further from every link are not matched: this exceeds the error of a typical GPS receiver in a city."""
    wrong_way_m: float = 10.0
    """A link across the direction of travel counts as this much further away, one against it as twice that."""
    longest_m: float = 5_000.0
    """Longer steps are gaps: between points so far apart many paths are equally likely."""
    close_m: float = 5.0
    """Links are looked for near the point first, and up to `reach_m` only if none is within this distance."""


SETTINGS = MatchSettings()


@dataclass(frozen=True, eq=False)
class Drives:
    """Distance and time of trips on links; one row for each step and link."""

    trip: Ints
    link: Ints
    forward: NDArray[np.bool_]
    """Whether it was driven from the first to the last vertex of the link."""
    distance_m: Floats
    duration_s: Floats
    t_utc: Floats
    """Time at which the step began."""
    matched_share: float
    """Share of the straight-line distance of all steps that was matched."""


def match_trips(
    links: Links, offsets: Ints, x_m: Floats, y_m: Floats, t_utc: Floats, progress: Progress = quiet
) -> Drives:
    """The links that trips use; positions are in metres of the scope."""
    owner = ragged.owners(np.diff(offsets))
    on = _nearest(links, owner, x_m, y_m)
    begin = np.flatnonzero(owner[1:] == owner[:-1])
    straight = np.hypot(x_m[begin + 1] - x_m[begin], y_m[begin + 1] - y_m[begin])
    moving = straight > 0.0
    begin, straight = begin[moving], straight[moving]
    usable = (on.link[begin] >= 0) & (on.link[begin + 1] >= 0) & (straight <= SETTINGS.longest_m)
    steps = begin[usable]
    step, link, forward, distance = find_paths(links, on, steps, straight[usable], progress)
    path_m = np.bincount(step, distance, minlength=max(len(x_m), 1))
    duration = (t_utc[step + 1] - t_utc[step]) * distance / np.maximum(path_m[step], 1e-9)
    matched = np.zeros(len(x_m), bool)
    matched[step] = True
    share = float(straight[matched[begin]].sum() / max(float(straight.sum()), 1e-9)) if len(begin) else 0.0
    return Drives(owner[step], link, forward, distance, duration, t_utc[step], share)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """The straight pieces of all links."""

    link: Ints
    begin: Floats
    """(n, 2) first end."""
    along: Floats
    """(n, 2) from the first end to the last."""
    along_m: Floats
    """Distance of the first end along the link."""
    oneway: NDArray[np.bool_]

    @classmethod
    def of(cls, links: Links) -> "_Pieces":
        """The pieces between the vertices of each link."""
        of_vertex = ragged.owners(np.diff(links.offsets))
        first = np.flatnonzero(of_vertex[1:] == of_vertex[:-1])
        begin, end = (np.c_[links.x_m[at], links.y_m[at]] for at in (first, first + 1))
        return cls(of_vertex[first], begin, end - begin, links.along_m[first], links.oneway[of_vertex[first]])


def _nearest(links: Links, owner: Ints, x_m: Floats, y_m: Floats) -> OnLinks:
    """The link of each point: the nearest, with a penalty on links across or against the direction of travel.

    The penalty is at most 2·wrong_way_m, so the best link is at most that much further away than the nearest. Where one
    is within `close_m`, the first, narrow search has therefore found the best.
    """
    import shapely

    count = len(x_m)
    on = OnLinks(np.full(count, -1, np.int64), np.zeros(count), np.zeros((count, 2)))
    if len(links) == 0 or count == 0:
        return on
    pieces = _Pieces.of(links)
    tree = shapely.STRtree(shapely.linestrings(np.stack([pieces.begin, pieces.begin + pieces.along], 1)))
    point = np.arange(count)
    same_before = np.r_[False, owner[1:] == owner[:-1]]
    before = np.where(same_before, point - 1, point)
    after = np.where(np.r_[same_before[1:], False], point + 1, point)
    where = np.c_[x_m, y_m]
    travel = where[after] - where[before]
    rest = point
    for reach_m in (min(SETTINGS.close_m + 2 * SETTINGS.wrong_way_m, SETTINGS.reach_m), SETTINGS.reach_m):
        settled = np.zeros(count, bool)
        for start in range(0, len(rest), 1 << 15):
            part = rest[start : start + (1 << 15)]
            low, high = where[part] - reach_m, where[part] + reach_m
            row, piece = tree.query(shapely.box(*low.T, *high.T))
            near = part[row]
            settled[_choose(on, pieces, _Pairs(near, piece, where[near], travel[near]), reach_m)] = True
        rest = rest[~settled[rest]]
    return on


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Points and pieces near them; a point occurs once for each piece."""

    point: Ints
    piece: Ints
    where: Floats
    """(n, 2) position of the point."""
    travel: Floats
    """(n, 2) direction of travel there."""


def _choose(on: OnLinks, pieces: _Pieces, pairs: _Pairs, reach_m: float) -> Ints:
    """Set the link of each point to that of its cheapest piece within reach; return the points that have one nearby."""
    near, piece, where, travel = pairs.point, pairs.piece, pairs.where, pairs.travel
    along = pieces.along[piece]
    square = np.maximum((along**2).sum(axis=1), 1e-18)
    share = np.clip(((where - pieces.begin[piece]) * along).sum(axis=1) / square, 0.0, 1.0)
    distance = np.hypot(*(where - pieces.begin[piece] - share[:, None] * along).T)
    kept = distance <= reach_m
    near, piece, along, square = near[kept], piece[kept], along[kept], square[kept]
    share, distance, travel = share[kept], distance[kept], travel[kept]
    length, speed = np.sqrt(square), np.hypot(*travel.T)
    cosine = (travel * along).sum(axis=1) / np.maximum(speed * length, 1e-9)
    turned = np.where(pieces.oneway[piece], 1 - cosine, 1 - np.abs(cosine))
    cost = distance + SETTINGS.wrong_way_m * np.where(speed > 0, turned, 0.0)
    ranked = np.lexsort((pieces.link[piece], cost, near))
    chosen = ranked[np.r_[True, near[ranked][1:] != near[ranked][:-1]]] if len(ranked) else ranked
    on.link[near[chosen]] = pieces.link[piece[chosen]]
    on.along_m[near[chosen]] = pieces.along_m[piece[chosen]] + share[chosen] * length[chosen]
    on.place[near[chosen]] = pieces.begin[piece[chosen]] + share[chosen, None] * along[chosen]
    return np.unique(near[distance <= SETTINGS.close_m])
