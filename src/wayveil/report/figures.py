"""Small static figures as inline SVG, made without a plotting library so that they follow the page's colours."""

import dataclasses
import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.polylines import Polylines, lengths
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, batches
from wayveil.report.chart_errors import Bars, ChartErrors

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 360, 190, 40, 34, 10
"""The chart and its margins, in units of the SVG."""
_WIDE, _HIGH = _WIDTH - _LEFT - 8, _HEIGHT - _TOP - _BOTTOM
"""The drawing inside the margins."""
_LETTER = 7.0
"""Mean width of a letter, in the same unit."""
_APART = 40.0
"""Distance between the label of the last bar and the other tick labels."""
_MOST_ROOM = 2.0
"""The axis reaches at most this multiple of the highest bar, to show error bars; longer ones are cut."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, eq=False)
class Quantities:
    """The values that the figures show, one per trajectory."""

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


@dataclass(frozen=True, eq=False)
class Axis:
    """What a histogram counts, and how its axis is labelled."""

    field: str
    """A field of `Quantities`."""
    title: str
    unit: str
    edges: NDArray[np.float64]
    name: Callable[[int], str]
    """Name of a bin, shown when the pointer is on its bar."""
    ticks: tuple[float, ...] = ()
    """Where the axis has labels; if empty, about five at equal distances."""
    tick_names: tuple[str, ...] = ()
    tail: bool = False
    """Whether the last bar includes all larger values and is labelled accordingly."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Share of the trajectories in each bin, and where known the real share and the likely range."""

    synthetic: NDArray[np.float64]
    real: NDArray[np.float64] | None
    likely: Bars | None


def figures(synthetic: Quantities, real: Quantities | None = None, errors: ChartErrors | None = None) -> list[str]:
    """Departures by hour and day, lengths, durations, speeds and points, with error bars where `errors` are given.

    Real values, if given, are drawn as a line.
    """
    hours, days = np.arange(25.0), np.arange(8.0)
    axes = [
        Axis("start_hour", "Departures by hour", "hour of the day", hours,
             lambda k: f"{int(hours[k]):02d}–{int(hours[k]) + 1:02d} h", ticks=(0, 6, 12, 18, 24)),
        Axis("start_day", "Departures by day", "", days, lambda k: DAYS[k],
             ticks=tuple(k + 0.5 for k in range(7)), tick_names=DAYS),
    ]  # fmt: skip
    for field, title, unit in (
        ("length_km", "Lengths", "km"), ("duration_min", "Durations", "minutes"), ("speed_kmh", "Mean speeds", "km/h"),
        ("points", "Points per trajectory", "points"),
    ):  # fmt: skip
        values = np.concatenate([getattr(side, field) for side in (synthetic, real) if side is not None])
        edges = _edges(values)
        tail = float(values.max(initial=0)) >= edges[-1]
        axes.append(Axis(field, title, unit, edges, _range_name(edges, unit, tail), tail=tail))
    return [histogram(axis, _shares_of(axis, synthetic, real, errors)) for axis in axes]


def _shares_of(axis: Axis, synthetic: Quantities, real: Quantities | None, errors: ChartErrors | None) -> Shares:
    values = getattr(synthetic, axis.field)
    shares = _shares(values, axis.edges)
    true = None if real is None else _shares(getattr(real, axis.field), axis.edges)
    return Shares(shares, true, None if errors is None else errors.bars(axis.field, axis.edges, shares, len(values)))


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


def histogram(axis: Axis, shares: Shares) -> str:
    """Bars of the synthetic shares and, if given, the real shares as a stepped line and the likely range of each bar.

    A chart that is noise has faint bars.
    """
    likely, place = shares.likely, _Placement.of(axis, shares)
    drawn = [*place.grid(), *_bars(axis, shares, place), *_ticks(axis, place)]
    remark = "" if likely is None else f", {likely.word}"
    label = html.escape(f"{axis.title}: histogram of shares of trajectories{remark}")
    chip = "" if likely is None else f' <span class="word {likely.word}">{likely.word}</span>'
    return (
        f"<figure><figcaption>{html.escape(axis.title)}{chip}</figcaption>"
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
        f"{''.join(drawn)}</svg></figure>"
    )


@dataclass(frozen=True)
class _Placement:
    """Where values and shares are in the chart."""

    low: float
    span: float
    top: float
    """The largest share that must fit."""

    @classmethod
    def of(cls, axis: Axis, shares: Shares) -> "_Placement":
        real, likely = shares.real, shares.likely
        top = max(float(shares.synthetic.max(initial=0)), 0.0 if real is None else float(real.max(initial=0)), 1e-9)
        if likely is not None:  # room for the ranges, but not so much that the bars become flat
            top = max(top, min(float(likely.high.max(initial=0)), _MOST_ROOM * top))
        return cls(float(axis.edges[0]), float(axis.edges[-1] - axis.edges[0]), top)

    def x(self, value: float) -> float:
        return _LEFT + (value - self.low) / self.span * _WIDE

    def y(self, share: float) -> float:
        return _TOP + _HIGH * (1 - share / (self.top * 1.05))

    def grid(self) -> Iterator[str]:
        """Horizontal lines at round shares."""
        step = _round_step(self.top)
        for k in range(int(self.top * 1.05 / step) + 1):
            level = self.y(k * step)
            yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{level:.1f}" y2="{level:.1f}"/>'
            yield f'<text x="{_LEFT - 5}" y="{level + 3.5:.1f}" text-anchor="end">{100 * k * step:g} %</text>'


def _bars(axis: Axis, shares: Shares, place: _Placement) -> Iterator[str]:
    """The bars, the likely range of each, and the line of the real shares."""
    real, likely, edges, x, y = shares.real, shares.likely, axis.edges, place.x, place.y
    noise = likely is not None and likely.word == "noise"
    for k, share in enumerate(shares.synthetic):
        left, right, up = x(edges[k]), x(edges[k + 1]), y(float(share))
        text = f"{axis.name(k)}: {100 * share:.1f} %" + ("" if real is None else f" (real {100 * real[k]:.1f} %)")
        if likely is not None:
            text += f", likely {100 * likely.low[k]:.1f} to {100 * likely.high[k]:.1f} %"
        kind = f"bar{' tail' if axis.tail and k == len(edges) - 2 else ''}{' faint' if noise else ''}"
        yield (
            f'<rect class="{kind}" x="{left + 0.6:.1f}" y="{up:.1f}" width="{max(right - left - 1.2, 0.5):.1f}" '
            f'height="{max(_TOP + _HIGH - up, 0):.1f}"><title>{html.escape(text)}</title></rect>'
        )
    if likely is not None:
        reach = "".join(
            f"M{x((edges[k] + edges[k + 1]) / 2):.1f},{y(float(low)):.1f}V{y(min(float(high), 1.05 * place.top)):.1f}"
            for k, (low, high) in enumerate(zip(likely.low, likely.high, strict=True))
        )
        yield f'<path class="likely" d="{reach}"/>'
    if real is not None:
        path = "".join(
            f"{'M' if k == 0 else 'L'}{x(edges[k]):.1f},{y(float(share)):.1f}H{x(edges[k + 1]):.1f}"
            for k, share in enumerate(real)
        )
        yield f'<path class="real" d="{path}"/>'


def _ticks(axis: Axis, place: _Placement) -> Iterator[str]:
    """The labels below the axis."""
    edges, x = axis.edges, place.x
    ticks, names = list(axis.ticks), list(axis.tick_names)
    if not ticks:
        every = max(1, round((len(edges) - 1) / 5))
        ticks = [float(edge) for edge in edges[::every]]
    if axis.tail:
        last = float(edges[-2] + edges[-1]) / 2
        ticks = [tick for tick in ticks if x(last) - x(tick) > _APART]
        names = [*(f"{tick:g}" for tick in ticks), f"≥ {edges[-2]:g}"]
        ticks = [*ticks, last]
    for tick, text in zip(ticks, names or [f"{tick:g}" for tick in ticks]):
        yield f'<text {_inside(x(tick), text)} y="{_HEIGHT - _BOTTOM + 15}">{html.escape(text)}</text>'
    yield f'<text x="{_LEFT + _WIDE / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">{html.escape(axis.unit)}</text>'


def _inside(place: float, text: str) -> str:
    """The position of a tick label: centred below the tick, unless the edge of the figure would cut it off."""
    if place + len(text) * _LETTER / 2 > _WIDTH:
        return f'x="{_WIDTH - 1}" text-anchor="end"'
    return f'x="{place:.1f}" text-anchor="middle"'


def _round_step(top: float) -> float:
    raw = top / 4
    power = 10.0 ** np.floor(np.log10(raw))
    return float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw))
