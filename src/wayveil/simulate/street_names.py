"""Names for the streets of a simulated city, so that its map can be read like a real one."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.roads import ROAD_CLASSES

_STRAIGHT = 0.85
"""Least cosine of the bend at which a street keeps its name across a junction: about 32°."""
_FIRST = (
    "Acorn", "Alder", "Ash", "Bakers", "Barley", "Beech", "Birch", "Bishop", "Bridge", "Canal", "Castle", "Cedar",
    "Chapel", "Cherry", "Church", "Clover", "Copper", "Elm", "Field", "Fir", "Fountain", "Garden", "Harbour", "Hazel",
    "Heron", "High", "Hill", "Holly", "Ivy", "Juniper", "King", "Lark", "Laurel", "Lime", "Linden", "Maple", "Market",
    "Meadow", "Mill", "North", "Oak", "Orchard", "Park", "Pine", "Poplar", "Queen", "Quarry", "River", "Rose", "Rowan",
    "School", "South", "Spring", "Station", "Stone", "Swan", "Tower", "Victory", "Walnut", "West", "Willow", "Yew",
)  # fmt: skip
_LAST = {
    "motorway": ("Ring",), "primary": ("Avenue", "Boulevard"), "secondary": ("Road", "Parade"),
    "tertiary": ("Street", "Way"), "residential": ("Lane", "Row", "Close", "Place", "Walk", "Gardens", "Court"),
}  # fmt: skip


def street_names(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    first_step: NDArray[np.float64],
    last_step: NDArray[np.float64],
    road_class: NDArray[np.int8],
) -> NDArray[np.object_]:
    """One name for each edge; edges of a class that continue straight across a junction share it.

    Parameters
    ----------
    start, end : the nodes of each edge.
    first_step, last_step : (edges, 2) direction of each edge where it leaves `start` and where it reaches `end`.
    """
    edges = len(start)
    away = np.r_[_unit(first_step), -_unit(last_step)]  # seen from the junction, at each of the 2 · edges ends
    node, owner = np.r_[start, end], np.r_[np.arange(edges), np.arange(edges)]
    order = np.argsort(node, kind="stable")
    links = []
    for ends in np.split(order, np.flatnonzero(np.diff(node[order])) + 1):
        bend = away[ends] @ away[ends].T + 2.0 * (road_class[owner[ends]][:, None] != road_class[owner[ends]])
        best = bend.argmin(axis=1)
        for k, other in enumerate(best):
            if k < other and best[other] == k and bend[k, other] <= -_STRAIGHT:
                links.append((owner[ends[k]], owner[ends[other]]))
    street = _components(edges, np.array(links, np.int64).reshape(-1, 2))
    names, used = np.empty(edges, object), dict.fromkeys(_LAST, 0)
    for number in dict.fromkeys(street.tolist()):
        own = np.flatnonzero(street == number)
        kind = ROAD_CLASSES[road_class[own[0]]]
        names[own] = _name(kind if kind in _LAST else "residential", used)
    return names


def _name(kind: str, used: dict[str, int]) -> str:
    """The next name of a class; a number follows when all pairs of words are taken."""
    k, last = used[kind], _LAST[kind]
    used[kind] += 1
    turn, place = divmod(k, len(_FIRST) * len(last))
    # Steps of 23 run through all words, because 23 and their number have no common divisor.
    words = f"{_FIRST[23 * place % len(_FIRST)]} {last[place // len(_FIRST)]}"
    return words if turn == 0 else f"{words} {turn + 1}"


def _components(edges: int, links: NDArray[np.int64]) -> NDArray[np.int64]:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(links)), (links[:, 0], links[:, 1])), (edges, edges))
    label: NDArray[np.int64] = connected_components(graph, directed=False)[1]
    return label


def _unit(step: NDArray[np.float64]) -> NDArray[np.float64]:
    length: NDArray[np.float64] = np.hypot(step[:, 0], step[:, 1])[:, None]
    return step / np.maximum(length, 1e-9)
