"""Rows that hold a whole trajectory: a line, with a time for each of its points.

The times of a row are, in this order of preference: the M value (or fourth coordinate) of each point, a list with one
time per point, or a start time and a fixed interval. A row is read by its own values alone. A row without positions, or
without a time for each of them, contributes nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.arrow import decoded
from wayveil.errors import InputError
from wayveil.io.layouts import LineRoles
from wayveil.io.options import ReadOptions
from wayveil.io.readers.crs import to_degrees
from wayveil.io.readers.labels import MISSING, Labels
from wayveil.io.readers.numbers import is_text
from wayveil.io.readers.points import UNTIMED, Points
from wayveil.io.readers.times import Times, seconds_of_numbers, text_of_value, times_of

_POINT, _LINE, _LINES = 0, 1, 5
"""Type numbers of shapely."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """The positions of each row, flat; a row that is not a point or line has none."""

    size: NDArray[np.int64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    m: NDArray[np.float64]
    """The M value or fourth coordinate; NaN where there is none."""
    is_point: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RowTimes:
    """What the time column says about each row: one time, or a list of times."""

    single_s: NDArray[np.float64]
    single_zoneless: NDArray[np.bool_]
    size: NDArray[np.int64]
    """Number of listed times; -1 where the row has no list."""
    listed_s: NDArray[np.float64]
    listed_zoneless: NDArray[np.bool_]


def shapes_of_geometries(geometries: NDArray[Any]) -> Shapes:
    """Points, lines and multi-lines (their parts joined) of an array of shapely geometries."""
    import shapely

    kind = shapely.get_type_id(geometries)
    usable = np.isin(kind, (_POINT, _LINE, _LINES))
    kept = geometries.copy()
    kept[~usable] = None
    xym, row = shapely.get_coordinates(kept, include_m=True, return_index=True)
    size = np.bincount(row, minlength=len(kept)).astype(np.int64)
    x, y, m = (np.ascontiguousarray(column) for column in xym.T)
    return Shapes(size, x, y, m, kind == _POINT)


def shapes_of_lists(rows: Sequence[Any], is_point: NDArray[np.bool_]) -> Shapes:
    """Lists of positions `[lon, lat, altitude, time]`, of which the last two may be missing."""
    parts = [vertices_of(row) for row in rows]
    size = np.array([len(part) for part in parts], np.int64)
    lon, lat, m = np.concatenate([np.empty((0, 3)), *parts]).T
    return Shapes(size, np.ascontiguousarray(lon), np.ascontiguousarray(lat), np.ascontiguousarray(m), is_point)


def vertices_of(positions: Any) -> NDArray[np.float64]:
    """(k, 3) longitude, latitude and time of a list of positions; NaN where a number is missing."""
    if not isinstance(positions, list) or not positions:
        return np.empty((0, 3))
    try:
        whole = np.asarray(positions, float)
        if whole.ndim == 2 and whole.shape[1] >= 2:
            m = whole[:, 3] if whole.shape[1] > 3 else np.full(len(whole), np.nan)
            return np.column_stack([whole[:, 0], whole[:, 1], m])
    except (TypeError, ValueError, OverflowError):
        pass  # positions of several lengths, or something other than numbers among them
    return np.array([_vertex(one) for one in positions], float).reshape(-1, 3)


def _vertex(position: Any) -> tuple[float, float, float]:
    values = position if isinstance(position, list) else []
    numbers = [_number(value) for value in values[:4]] + [np.nan] * 4
    return numbers[0], numbers[1], numbers[3]


def _number(value: Any) -> float:
    try:
        return float(value) if isinstance(value, int | float) else np.nan
    except OverflowError:
        return float("nan")


def row_times_of_values(values: Sequence[Any], options: ReadOptions, origin: str) -> RowTimes:
    """Times of Python values, one per row: a number or text, or a list of them."""
    single = [None if isinstance(value, list) else text_of_value(value) for value in values]
    listed = [text_of_value(one) for value in values if isinstance(value, list) for one in value]
    size = np.array([len(value) if isinstance(value, list) else -1 for value in values], np.int64)
    one, each = (
        times_of(pa.chunked_array([pa.array(texts, pa.large_string())]), options.timezone, origin, options.dayfirst)
        for texts in (single, listed)
    )
    return RowTimes(one.utc_s, _mask(one.zoneless, len(single)), size, each.utc_s, _mask(each.zoneless, len(listed)))


def _mask(zoneless: NDArray[np.bool_] | None, size: int) -> NDArray[np.bool_]:
    return np.zeros(size, bool) if zoneless is None else zoneless


def timed_points(
    shapes: Shapes, times: RowTimes, label: Labels, user: Labels | None, interval_s: float | None
) -> Points:
    """One point per position of each row that has a time for each of its positions."""
    size = shapes.size
    owner = ragged.owners(size)
    with_m = np.bincount(owner, np.isfinite(shapes.m), minlength=len(size)) > 0
    with_list = ~with_m & (times.size == size)
    with_start = ~with_m & (times.size < 0) & ((size == 1) | (interval_s is not None))
    t_utc = np.where(with_m[owner], seconds_of_numbers(shapes.m), np.nan)
    zoneless = np.zeros(len(owner), bool)
    in_list = ragged.owners(np.maximum(times.size, 0))
    t_utc[with_list[owner]] = times.listed_s[with_list[in_list]]
    zoneless[with_list[owner]] = times.listed_zoneless[with_list[in_list]]
    started = with_start[owner]
    t_utc[started] = (times.single_s[owner] + (interval_s or 0.0) * ragged.ranks(size))[started]
    zoneless[started] = times.single_zoneless[owner][started]
    usable = (size > 0) & (with_m | with_list | with_start)
    points = Points(
        label.take(owner), shapes.lon, shapes.lat, t_utc, None if user is None else user.take(owner),
        zoneless if zoneless.any() else None, {UNTIMED: int((~usable).sum())},
    )  # fmt: skip
    return points if usable.all() else points.take(usable[owner])


def own_labels(is_point: NDArray[np.bool_]) -> Labels:
    """Each row of a table without ids is its own trajectory; a single point without an id belongs to none."""
    fault = np.where(is_point, MISSING, 0).astype(np.uint8)
    return Labels(np.arange(len(is_point)), None, fault if is_point.any() else None)


def points_of_line_table(
    table: pa.Table,
    roles: LineRoles,
    options: ReadOptions,
    origin: str,
    labels: tuple[Labels | None, Labels | None],
    crs: Any = None,
) -> Points:
    """The points of a table with one row per trajectory (or per point, where a geometry is a point)."""
    shapes = _shapes_of_column(table.column(roles.line), origin)
    lon, lat = to_degrees(shapes.lon, shapes.lat, crs, origin)
    shapes = Shapes(shapes.size, lon, lat, shapes.m, shapes.is_point)
    label, user = labels
    label = own_labels(shapes.is_point) if label is None else label
    times = _row_times(None if roles.time is None else table.column(roles.time), len(table), options, origin)
    return timed_points(shapes, times, label, user, roles.interval_s)


def _shapes_of_column(column: pa.ChunkedArray, origin: str) -> Shapes:
    import shapely

    column = decoded(column)
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return shapes_of_geometries(shapely.from_wkb(_objects(column), on_invalid="ignore"))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return shapes_of_lists(column.to_pylist(), np.zeros(len(column), bool))
    if pa.types.is_null(kind):
        return shapes_of_lists([None] * len(column), np.zeros(len(column), bool))
    if not is_text(kind):
        raise InputError(f"The line column of '{origin}' contains no WKT, WKB or lists of positions; check line=.")
    texts = _texts(column)
    if not any(text is not None and text.startswith("[") for text in texts):
        return shapes_of_geometries(shapely.from_wkt(np.array(texts, object), on_invalid="ignore"))
    geometries = [None if text is None or text.startswith("[") else text for text in texts]
    shapes = shapes_of_geometries(shapely.from_wkt(np.array(geometries, object), on_invalid="ignore"))
    lists = shapes_of_lists([_json_list(text) for text in texts], np.zeros(len(texts), bool))
    return _joined(shapes, lists)


def _joined(a: Shapes, b: Shapes) -> Shapes:
    """For each row the positions of `a` or of `b`; at most one of them has any."""
    size = a.size + b.size
    order = np.argsort(np.r_[ragged.owners(a.size), ragged.owners(b.size)], kind="stable")
    lon, lat, m = (np.r_[getattr(a, name), getattr(b, name)][order] for name in ("lon", "lat", "m"))
    return Shapes(size, lon, lat, m, a.is_point)


def _objects(column: pa.ChunkedArray) -> NDArray[Any]:
    values = np.empty(len(column), object)
    values[:] = column.to_pylist()
    return values


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """Texts without white space around them; None where a value is missing or not UTF-8."""
    import pyarrow.compute as pc

    raw = pc.cast(column, pa.large_binary()).to_pylist()
    return [None if value is None else _decoded(value) for value in raw]


def _decoded(value: bytes) -> str | None:
    try:
        text = value.decode().strip()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _json_list(text: str | None) -> Any:
    if text is None or not text.startswith("["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _row_times(column: pa.ChunkedArray | None, rows: int, options: ReadOptions, origin: str) -> RowTimes:
    single = Times(np.full(rows, np.nan))
    if column is None:
        return _without_lists(single)
    column = decoded(column)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return row_times_of_values(column.to_pylist(), options, origin)
    if is_text(column.type):
        texts = _texts(column)
        values = [_json_list(text) if text is not None and text.startswith("[") else text for text in texts]
        return row_times_of_values(values, options, origin)
    return _without_lists(times_of(column, options.timezone, origin, options.dayfirst))


def _without_lists(single: Times) -> RowTimes:
    rows = len(single.utc_s)
    zoneless = _mask(single.zoneless, rows)
    return RowTimes(single.utc_s, zoneless, np.full(rows, -1, np.int64), np.empty(0), np.zeros(0, bool))
