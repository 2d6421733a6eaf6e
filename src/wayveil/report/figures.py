"""Small static figures as inline SVG, drawn by hand so that they follow the page's colours."""

import dataclasses
import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.polylines import Polylines, lengths
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, batches
from wayveil.report.chart_errors import Bars, ChartErrors

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 360, 190, 40, 34, 10
"""The chart and its margins, in units of the SVG."""
_LETTER = 7.0
"""Mean width of a letter, in the same unit."""
_APART = 40.0
"""Distance between the label of the last bar and the other tick labels."""
_MOST_ROOM = 2.0
"""Times the highest bar that the axis may reach, for error bars; longer ones are cut."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, eq=False)
class Quantities:
    """The values that the figures show, one per trajectory (or step)."""

    start_hour: NDArray[np.float64]
    start_day: NDArray[np.int64]
    length_km: NDArray[np.float64]
    duration_min: NDArray[np.float64]
    speed_kmh: NDArray[np.float64]
    points: NDArray[np.float64]


def quantities(trajectories: Trajectories, scope: Scope) -> Quantities:
    """Departure, length, duration, speed and number of points of each trajectory; the speed is 0 if it stands still."""
    pieces = [_quantities(piece, scope) for piece in batches(trajectories)]
    names = [field.name for field in dataclasses.fields(Quantities)]
    return Quantities(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in names))


def _quantities(trajectories: Trajectories, scope: Scope) -> Quantities:
    x, y = scope.to_metres(trajectories.lon, trajectories.lat)
    first, last = trajectories.offsets[:-1], trajectories.offsets[1:] - 1
    length_m = lengths(Polylines(trajectories.offsets, x, y))
    duration_s = trajectories.t_utc[last] - trajectories.t_utc[first]
    week_s = scope.local_seconds(trajectories.t_utc[first])
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.where(duration_s > 0, length_m / duration_s * 3.6, 0.0)
    return Quantities(
        week_s / 3600 % 24, (week_s // 86_400).astype(np.int64), length_m / 1000, duration_s / 60, speed,
        np.diff(trajectories.offsets).astype(float),
    )  # fmt: skip


def figures(synthetic: Quantities, real: Quantities | None = None, errors: ChartErrors | None = None) -> list[str]:
    """Departures by hour and day, lengths, durations, speeds and points, with error bars where `errors` are given.

    Real values, if given, are a line.
    """
    hours, days = np.arange(25.0), np.arange(8.0)
    result = [
        _chart(synthetic, real, errors, "start_hour", hours, "Departures by hour", "hour of the day",
               name=lambda k: f"{int(hours[k]):02d}–{int(hours[k]) + 1:02d} h", ticks=[0, 6, 12, 18, 24]),
        _chart(synthetic, real, errors, "start_day", days, "Departures by day", "", name=lambda k: DAYS[k],
               ticks=[k + 0.5 for k in range(7)], tick_names=list(DAYS)),
    ]  # fmt: skip
    for field, title, unit in (
        ("length_km", "Lengths", "km"), ("duration_min", "Durations", "minutes"), ("speed_kmh", "Mean speeds", "km/h"),
        ("points", "Points per trajectory", "points"),
    ):  # fmt: skip
        sides = [getattr(side, field) for side in (synthetic, real) if side is not None]
        values = np.concatenate(sides)
        edges = _edges(values)
        tail = float(values.max(initial=0)) >= edges[-1]
        name = _range_name(edges, unit, tail)
        result.append(_chart(synthetic, real, errors, field, edges, title, unit, name=name, tail=tail))
    return result


def _chart(
    synthetic: Quantities,
    real: Quantities | None,
    errors: ChartErrors | None,
    field: str,
    edges: NDArray[np.float64],
    title: str,
    unit: str,
    **how: Any,
) -> str:
    """The histogram of one field of `Quantities`."""
    values = getattr(synthetic, field)
    shares = _shares(values, edges)
    true = None if real is None else _shares(getattr(real, field), edges)
    bars = None if errors is None else errors.bars(field, edges, shares, len(values))
    return histogram(title, unit, edges, shares, true, bars, **how)


def _range_name(edges: NDArray[np.float64], unit: str, tail: bool) -> Callable[[int], str]:
    def name(k: int) -> str:
        if tail and k == len(edges) - 2:
            return f"{edges[k]:g} {unit} and more"
        return f"{edges[k]:g}–{edges[k + 1]:g} {unit}"

    return name


def _edges(values: NDArray[np.float64], bins: int = 24) -> NDArray[np.float64]:
    """Round edges from 0 to about the 99th percentile."""
    top = float(np.quantile(values, 0.99)) if len(values) else 1.0
    raw = max(top, 1e-3) / bins
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    edges: NDArray[np.float64] = np.round(np.arange(int(np.ceil(max(top, 1e-3) / step)) + 1) * step, 10)
    return edges


def _shares(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the values in each bin; larger values are in the last bin."""
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(place, minlength=len(edges) - 1) / max(len(values), 1)


def histogram(
    title: str,
    unit: str,
    edges: NDArray[np.float64],
    synthetic: NDArray[np.float64],
    real: NDArray[np.float64] | None = None,
    likely: Bars | None = None,
    *,
    name: Callable[[int], str],
    ticks: list[float] | None = None,
    tick_names: list[str] | None = None,
    tail: bool = False,
) -> str:
    """Bars of the synthetic shares and, if given, the real shares as a stepped line and the likely range of each bar.

    With `tail` the last bar includes all larger values and is labelled so. A chart that is noise has faint bars.
    """
    wide, high = _WIDTH - _LEFT - 8, _HEIGHT - _TOP - _BOTTOM
    top = max(float(synthetic.max(initial=0)), 0.0 if real is None else float(real.max(initial=0)), 1e-9)
    if likely is not None:  # room for the ranges, but not so much that the bars become flat
        top = max(top, min(float(likely.high.max(initial=0)), _MOST_ROOM * top))
    noise = likely is not None and likely.word == "noise"
    low, span = float(edges[0]), float(edges[-1] - edges[0])

    def x(value: float) -> float:
        return _LEFT + (value - low) / span * wide

    def y(share: float) -> float:
        return _TOP + high * (1 - share / (top * 1.05))

    grid, step = [], _round_step(top)
    for k in range(int(top * 1.05 / step) + 1):
        level = y(k * step)
        grid.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{level:.1f}" y2="{level:.1f}"/>')
        grid.append(f'<text x="{_LEFT - 5}" y="{level + 3.5:.1f}" text-anchor="end">{100 * k * step:g} %</text>')
    bars = []
    for k, share in enumerate(synthetic):
        left, right, up = x(edges[k]), x(edges[k + 1]), y(float(share))
        label_text = f"{name(k)}: {100 * share:.1f} %" + ("" if real is None else f" (real {100 * real[k]:.1f} %)")
        if likely is not None:
            label_text += f", likely {100 * likely.low[k]:.1f} to {100 * likely.high[k]:.1f} %"
        kind = f"bar{' tail' if tail and k == len(synthetic) - 1 else ''}{' faint' if noise else ''}"
        bars.append(
            f'<rect class="{kind}" x="{left + 0.6:.1f}" y="{up:.1f}" width="{max(right - left - 1.2, 0.5):.1f}" '
            f'height="{max(_TOP + high - up, 0):.1f}"><title>{html.escape(label_text)}</title></rect>'
        )
    if likely is not None:
        reach = "".join(
            f"M{x((edges[k] + edges[k + 1]) / 2):.1f},{y(float(low)):.1f}V{y(min(float(above), 1.05 * top)):.1f}"
            for k, (low, above) in enumerate(zip(likely.low, likely.high, strict=True))
        )
        bars.append(f'<path class="likely" d="{reach}"/>')
    if real is not None:
        path = "".join(
            f"{'M' if k == 0 else 'L'}{x(edges[k]):.1f},{y(float(share)):.1f}H{x(edges[k + 1]):.1f}"
            for k, share in enumerate(real)
        )
        bars.append(f'<path class="real" d="{path}"/>')
    if ticks is None:
        every = max(1, round((len(edges) - 1) / 5))
        ticks = [float(edge) for edge in edges[::every]]
    if tail:
        last = float(edges[-2] + edges[-1]) / 2
        ticks = [tick for tick in ticks if x(last) - x(tick) > _APART]
        tick_names = [*(f"{tick:g}" for tick in ticks), f"≥ {edges[-2]:g}"]
        ticks = [*ticks, last]
    names = tick_names or [f"{tick:g}" for tick in ticks]
    axis = [
        f'<text {_inside(x(tick), text)} y="{_HEIGHT - _BOTTOM + 15}">{html.escape(text)}</text>'
        for tick, text in zip(ticks, names)
    ]
    axis.append(f'<text x="{_LEFT + wide / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">{html.escape(unit)}</text>')
    said = "" if likely is None else f", {likely.word}"
    label = html.escape(f"{title}: histogram of shares of trajectories{said}")
    chip = "" if likely is None else f' <span class="word {likely.word}">{likely.word}</span>'
    return (
        f"<figure><figcaption>{html.escape(title)}{chip}</figcaption>"
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
        f"{''.join(grid)}{''.join(bars)}{''.join(axis)}</svg></figure>"
    )


def _inside(place: float, text: str) -> str:
    """The position of a tick label: centred below the tick, unless the edge of the figure would cut it off."""
    if place + len(text) * _LETTER / 2 > _WIDTH:
        return f'x="{_WIDTH - 1}" text-anchor="end"'
    return f'x="{place:.1f}" text-anchor="middle"'


def _round_step(top: float) -> float:
    raw = top / 4
    power = 10.0 ** np.floor(np.log10(raw))
    return float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw))
