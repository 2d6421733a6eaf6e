"""Simulated road maps, as imperfect as real ones, in the form in which the product's `road_features` gives them."""

import numpy as np
from numpy.typing import NDArray
from product import pool, shifted, spread
from scipy.special import ndtr
from streets import LOCAL, MAIN, MOTORWAY, Streets

_PART_M, _BLUR_M, _BLOCK_M = 25.0, 15.0, 400.0
_CLASSES = 6


def road_map(
    streets: Streets,
    turn: NDArray,
    corner: NDArray,
    cell_m: float,
    shape: tuple[int, int],
    random: np.random.Generator,
    untidy: bool = False,
) -> list[NDArray[np.float64]]:
    """Road length a cell in cell widths for six classes, blurred as GPS sees it, then the mask of what has no map.

    Maps are imperfect: classes differ from quarter to quarter, some are missing or unknown, cover is partial.
    An `untidy` map says still less about traffic: its classes mean something else from district to district or nothing,
    any street may be missing, and it knows streets that nobody uses.
    """
    steps = np.maximum(1, np.ceil(streets.length_m / _PART_M)).astype(int)
    edge = np.repeat(np.arange(len(steps)), steps)
    along = (np.arange(len(edge)) - np.repeat(np.cumsum(steps) - steps, steps) + 0.5) / steps[edge]
    a, b = streets.xy[streets.edges[edge, 0]], streets.xy[streets.edges[edge, 1]]
    xy = ((a + along[:, None] * (b - a)) @ turn + random.normal(0, random.uniform(0, 20), 2) - corner) / cell_m
    scale = np.sqrt(abs(np.linalg.det(turn)))
    length = (streets.length_m / steps)[edge] * scale / cell_m
    known = _drawn(streets, edge, random)
    label = _labels(streets, edge, a, random)
    if untidy:
        known &= (random.random(len(steps)) >= random.uniform(0, 0.3))[edge]
        label = _muddled(label, edge, a, random)
        unused, moved = _unused(a, streets.radius_m, random)
        xy = np.r_[xy, xy[unused] + moved @ turn / cell_m]
        length, label, known = (np.r_[part, part[unused]] for part in (length, label, known))
    rows, columns = shape
    cell = np.floor(xy).astype(int)
    known &= ((cell >= 0) & (cell < [columns, rows])).all(axis=1)
    known &= ~_hidden(shape, random)[np.clip(cell[:, 1], 0, rows - 1), np.clip(cell[:, 0], 0, columns - 1)]
    fields = _blurred(xy[known], cell[known], length[known], label[known], cell_m, shape)
    return [*fields, _without_map(cell[known], cell_m, shape)]


def _labels(streets: Streets, edge: NDArray, at: NDArray, random: np.random.Generator) -> NDArray[np.int64]:
    quarter = (at[:, 0] > 0).astype(int) * 2 + (at[:, 1] > 0)
    main_as, local_as = random.choice([1, 1, 2, 2, 3], 4), random.choice([4, 4, 4, 4, 3, 5], 4)
    label = np.where(streets.road_class[edge] == MAIN, main_as[quarter], np.where(
        streets.road_class[edge] == LOCAL, local_as[quarter], 0))  # fmt: skip
    if random.random() < 0.1:
        label[:] = _CLASSES - 1
    return label


def _districts(at: NDArray, size_m: float, random: np.random.Generator) -> NDArray[np.int64]:
    """A number of 0 to 63 for each point: that of its square of `size_m` metres."""
    square = np.floor(at / size_m + random.uniform(0, 1, 2)).astype(int)
    return random.integers(0, 64, (16, 16))[square[:, 1] % 16, square[:, 0] % 16]


def _muddled(label: NDArray, edge: NDArray, at: NDArray, random: np.random.Generator) -> NDArray[np.int64]:
    """In some districts the classes are exchanged, and some streets have any class."""
    exchanged = np.tile(np.arange(_CLASSES), (64, 1))
    some = random.random(64) < random.uniform(0, 0.6)
    exchanged[some] = random.permuted(exchanged[some], axis=1)
    label = exchanged[_districts(at, random.uniform(800, 4000), random), label]
    any_class = (random.random(edge.max() + 1) < random.choice([0.0, random.uniform(0, 0.6)]))[edge]
    return np.where(any_class, random.integers(1, _CLASSES, edge.max() + 1)[edge], label)


def _unused(at: NDArray, radius_m: float, random: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Streets without traffic: those of some districts once more, moved by a part of a block or a few blocks."""
    there = (random.random(64) < random.uniform(0, 0.5))[_districts(at, radius_m * random.uniform(0.1, 0.4), random)]
    angle = random.uniform(0, 2 * np.pi)
    return there, random.uniform(0.005, 0.05) * radius_m * np.array([np.cos(angle), np.sin(angle)])


def _drawn(streets: Streets, edge: NDArray, random: np.random.Generator) -> NDArray[np.bool_]:
    """Which parts of which roads the map knows."""
    known = np.ones(len(edge), bool)
    if random.random() < 0.2:
        known &= streets.road_class[edge] != LOCAL
    if random.random() < 0.2:
        known &= streets.road_class[edge] != MOTORWAY
    if random.random() < 0.4:  # a map with holes: single roads that nobody has drawn
        lost = np.array([0.05, 0.15, 0.5])[streets.road_class] * random.random()
        known &= (random.random(len(lost)) >= lost)[edge]
    return known


def _hidden(shape: tuple[int, int], random: np.random.Generator) -> NDArray[np.bool_]:
    """Where the map is cut off."""
    if random.random() < 0.5:
        return np.zeros(shape, bool)
    y, x = np.mgrid[: shape[0], : shape[1]] / np.array(shape)[:, None, None]
    if random.random() < 0.5:
        low, high = np.sort(random.uniform(-0.3, 1.3, (2, 2)), axis=0)
        return ~((x > low[0]) & (x < high[0]) & (y > low[1]) & (y < high[1]))
    angle = random.uniform(0, 2 * np.pi)
    return (x - 0.5) * np.cos(angle) + (y - 0.5) * np.sin(angle) > random.uniform(-0.4, 0.4)


def _blurred(
    xy: NDArray, cell: NDArray, length: NDArray, label: NDArray, cell_m: float, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Each part spread over the cells where a position with a normal error of 15 m would fall."""
    rows, columns = shape
    bounds = np.arange(-1, 3)[:, None, None]
    share = np.diff(ndtr((bounds - (xy - cell)) * cell_m / _BLUR_M), axis=0)
    size = (_CLASSES, rows + 2, columns + 2)
    place = (label * size[1] + cell[:, 1]) * size[2] + cell[:, 0]
    fields = np.zeros(np.prod(size))
    for down in range(3):
        for right in range(3):
            weight = length * share[down, :, 1] * share[right, :, 0]
            fields += np.bincount(place + down * size[2] + right, weight, minlength=len(fields))
    return fields.reshape(size)[:, 1:-1, 1:-1]


def _without_map(cell: NDArray, cell_m: float, shape: tuple[int, int]) -> NDArray[np.float64]:
    """1 in blocks of 400 m without a road whose eight neighbours have none either: the product's rule."""
    side = round(_BLOCK_M / cell_m)
    count = np.bincount(cell[:, 1] * shape[1] + cell[:, 0], minlength=shape[0] * shape[1]).reshape(shape)
    covered = (pool(count.astype(float), side) > 0).astype(float)
    around = sum(shifted(covered, down, right) for down in (-1, 0, 1) for right in (-1, 0, 1))
    return spread((around == 0).astype(float), side, shape)
