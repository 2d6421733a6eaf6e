"""`evaluate`: every metric with its interval and its floor."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError
from wayveil.evaluation import adatrace_metrics as ada
from wayveil.evaluation import metrics as m
from wayveil.evaluation.metrics import Metric, as_paths
from wayveil.evaluation.paths import Paths, as_measured, check_in_scope
from wayveil.evaluation.tally import GROUPS, Tally
from wayveil.progress import Progress, quiet
from wayveil.scope import Scope, read_scope
from wayveil.trajectories import Trajectories

METRICS: dict[str, Metric] = {
    "length": m.length,
    "density_100": m.density.at(cell_m=100.0),
    "endpoints_100": m.endpoints.at(cell_m=100.0),
    "trip_1000": m.trip.at(cell_m=1000.0),
    "relation": m.relation,
    "density_500": m.density.at(cell_m=500.0),
    "density_1000": m.density.at(cell_m=1000.0),
    "path_density_100": m.path_density.at(cell_m=100.0),
    "path_density_500": m.path_density.at(cell_m=500.0),
    "trip_100": m.trip.at(cell_m=100.0),
    "trip_500": m.trip.at(cell_m=500.0),
    "trip_2000": m.trip.at(cell_m=2000.0),
    "start_100": m.start.at(cell_m=100.0),
    "start_500": m.start.at(cell_m=500.0),
    "end_100": m.end.at(cell_m=100.0),
    "end_500": m.end.at(cell_m=500.0),
    "relation_time": m.relation_time,
    "start_hour": m.start_hour,
    "start_week": m.start_week,
    "start_place_hour": m.start_place_hour.at(cell_m=2000.0),
    "duration": m.duration,
    "speed": m.speed,
    "interval": m.interval,
    "longest_step": m.longest_step,
    "top_speed": m.top_speed,
    "query_error": ada.query_error,
    "coverage_tau": ada.coverage_tau,
    "pattern_f1": ada.pattern_f1,
    "pattern_support": ada.pattern_support,
    "trip_6x6": ada.trip_6x6,
    "diameter": ada.diameter,
    "length_20": ada.length_20,
}
HEADLINE = ("length", "density_100", "endpoints_100", "trip_1000", "relation")
_SPLITS = 8
_CLEARLY = 3.0


@dataclass(frozen=True)
class Score:
    """One metric: value, 95 % interval, the floor with the error of a value about it, and if it is clearly below."""

    value: float
    low: float
    high: float
    floor: float
    floor_error: float
    below_floor: bool
    higher_is_better: bool


@dataclass(frozen=True)
class Evaluation:
    """Scores by metric.

    Privacy: not private (trusted side only); computed from the private data.
    """

    scores: dict[str, Score]

    @property
    def values(self) -> dict[str, float]:
        """Metric -> value."""
        return {name: score.value for name, score in self.scores.items()}

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Metric -> 95 % interval."""
        return {name: (score.low, score.high) for name, score in self.scores.items()}

    @property
    def floors(self) -> dict[str, float]:
        """Metric -> floor."""
        return {name: score.floor for name, score in self.scores.items()}

    @property
    def below_floor(self) -> tuple[str, ...]:
        """Metrics that are clearly better than a fresh sample of the same population: a sign of copied records."""
        return tuple(name for name, score in self.scores.items() if score.below_floor)

    def __str__(self) -> str:
        """One line a metric: value, half of the 95 % interval, floor."""
        wide = max(map(len, self.scores), default=6)
        lines = [f"{'metric':<{wide}}    value            floor"]
        for name, score in self.scores.items():
            half = (score.high - score.low) / 2
            lines.append(f"{name:<{wide}}  {score.value:7.4f} ± {half:.4f}  {score.floor:7.4f}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"scores": {name: asdict(score) for name, score in self.scores.items()},
                "below_floor": list(self.below_floor)}  # fmt: skip


def chosen(names: Iterable[str] | None, with_time: bool) -> list[str]:
    """The metrics to compute, in the order of the table."""
    wanted = list(METRICS) if names is None else list(names)
    unknown = [name for name in wanted if name not in METRICS]
    if unknown:
        raise InputError(f"No metric '{unknown[0]}'; known are {', '.join(METRICS)}.")
    return [name for name in wanted if with_time or not METRICS[name].needs_time]


def evaluate(
    real: Trajectories | Paths | Any,
    synthetic: Trajectories | Paths | Any,
    scope: Scope | str | os.PathLike[str],
    *,
    metrics: Iterable[str] | None = None,
    with_time: bool = True,
    progress: Progress = quiet,
    **columns: Any,
) -> Evaluation:
    """Compare synthetic with real trajectories: values, 95 % intervals, floors.

    Of the real data what `measure` leaves out (points outside the scope) is left out here too. The interval is value
    ± 1.96 standard errors of a delete-one-of-16-groups jackknife over repeated splits of both sides. The floor is what
    a perfect, honest release of this size would score: see `floor_of`.

    Parameters
    ----------
    real, synthetic
        Trajectories, or a file or frame as `wayveil.read` takes it; `synthetic` also as `wayveil.synthesize` gives it.
    scope
        A `Scope`, a file, or the name of a shipped one.
    columns
        Options of `wayveil.read` for frames and for the real file; a synthetic file has wayveil's own columns.
    metrics
        Names of `METRICS`; None = all of them; `HEADLINE` = the five that benchmarks need.
    with_time
        False leaves out the metrics of time, for synthetic data whose times mean nothing.

    Privacy: not private (trusted side only).
    """
    names = chosen((metrics,) if isinstance(metrics, str) else metrics, with_time)
    inside: Any = getattr(synthetic, "trajectories", None)
    synthetic = inside if isinstance(inside, Trajectories) else synthetic
    scope = scope if isinstance(scope, Scope) else read_scope(os.fspath(scope))
    made_columns = {} if isinstance(synthetic, str | os.PathLike) else columns
    a, b = as_paths(_opened(real, columns), scope), as_paths(_opened(synthetic, made_columns), scope)
    check_in_scope(a, "the real data")
    a = as_measured(a, scope)
    check_in_scope(b, "the synthetic data")
    scores = {}
    for position, name in enumerate(names):
        progress("evaluate", position / len(names))
        scores[name] = _score(METRICS[name], METRICS[name].tally(a, b), len(a), len(b))
    progress("evaluate", 1.0)
    return Evaluation(scores)


def _opened(data: Any, columns: dict[str, Any]) -> Trajectories | Paths:
    if isinstance(data, Trajectories | Paths):
        return data
    from wayveil.formats import read

    return read(data, **columns)


def headline(real: Trajectories | Paths, synthetic: Trajectories | Paths, scope: Scope) -> dict[str, float]:
    """The five headline values alone, without intervals or floors: for benchmarks that call it hundreds of times.

    Give `real` as `Paths` (see `project`) to project it once.

    Privacy: not private (trusted side only).
    """
    a, b = as_paths(real, scope), as_paths(synthetic, scope)
    return {name: METRICS[name](a, b) for name in HEADLINE}


def floors(
    real: Trajectories | Paths, scope: Scope, size: int, metrics: Iterable[str] | None = None
) -> dict[str, float]:
    """The floor of each metric for synthetic data of `size` trajectories.

    Privacy: not private (trusted side only).
    """
    a = as_paths(real, scope)
    return {name: floor_of(METRICS[name], METRICS[name].tally(a, a), len(a), size)[0] for name in chosen(metrics, True)}


def _score(metric: Metric, tally: Tally, n_real: int, n_synthetic: int) -> Score:
    everything = np.arange(GROUPS)
    value = tally.score(everything, everything)
    used = min(GROUPS, n_real, n_synthetic)
    left_out = [tally.score(np.delete(everything, g), np.delete(everything, g)) for g in range(used)]
    error = float(np.sqrt((used - 1) * np.var(left_out))) if used > 1 else 0.0
    floor, floor_error = floor_of(metric, tally, n_real, n_synthetic)
    better_by = (value - floor) if metric.higher_is_better else (floor - value)
    # Three standard errors, and a twentieth of it for what the scaling law leaves open.
    slack = _CLEARLY * floor_error + 0.05 * abs((1.0 - floor) if metric.higher_is_better else floor)
    return Score(value, value - 1.96 * error, value + 1.96 * error, floor, floor_error, bool(better_by > slack),
                 metric.higher_is_better)  # fmt: skip


def floor_of(metric: Metric, tally: Tally, n_real: int, n_synthetic: int) -> tuple[float, float]:
    """The metric between disjoint samples of the real data, scaled to the sizes compared; and a value's error about it.

    Disjoint samples of an eighth, a quarter and a half of the real data each are compared (repeated splits). Sampling
    error depends on h = 2 / (1/n_real + 1/n_synthetic), so the mean loss is read at h on the log-log line through
    those sizes: between them inside, by the outermost slope outside. A metric whose floor is 0 by construction
    (`unbiased`) is not scaled.
    """
    used = min(GROUPS, n_real)
    if used < 2:
        return (1.0, 0.0) if metric.higher_is_better else (0.0, 0.0)
    sizes = sorted({max(1, used // part) for part in (8, 4, 2)})
    rng = np.random.default_rng(7)
    losses = np.array([_split_losses(metric, tally, rng.permutation(used), sizes) for _ in range(_SPLITS)])
    means = losses.mean(0)
    if metric.unbiased:
        return float(means[-1]), float(np.std(losses[:, -1], ddof=1))
    at = 2.0 / (1.0 / n_real + 1.0 / n_synthetic)
    trajectories = np.array(sizes) * (n_real / used)
    loss = _on_log_line(trajectories, means, at)
    # How far one comparison strays (a half strays more than the whole), and how far the mean of the scaled splits does.
    scaled = [_on_log_line(trajectories, split, at) for split in losses]
    error = np.hypot(np.std(losses[:, -1], ddof=1), np.std(scaled, ddof=1) / np.sqrt(_SPLITS))
    return (1.0 - loss if metric.higher_is_better else loss), float(error)


def _split_losses(metric: Metric, tally: Tally, order: NDArray[np.int64], sizes: Sequence[int]) -> list[float]:
    """Mean loss between disjoint samples of each size (in groups), at most two pairs of each."""
    losses = []
    for size in sizes:
        pairs = range(0, min(len(order) - 2 * size, 2 * size) + 1, 2 * size)
        found = [tally.split(order[at : at + size], order[at + size : at + 2 * size]) for at in pairs]
        losses.append(float(np.mean(found)))
    return [1.0 - loss for loss in losses] if metric.higher_is_better else losses


def _on_log_line(size: np.ndarray, loss: np.ndarray, at: float) -> float:
    if (loss <= 0).any() or len(size) < 2:
        return float(max(loss[-1], 0.0))
    x, y, to = np.log(size), np.log(loss), np.log(at)
    if to >= x[-1]:
        # The slope itself steepens by the same amount a doubling where the loss leaves saturation (a parabola in
        # log-log), but never beyond 1/n, the law of sparse sampling error.
        slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
        bend = slope - (y[-2] - y[-3]) / (x[-2] - x[-3]) if len(size) > 2 else 0.0
        slope = float(np.clip(slope + min(bend, 0.0), -1.0, 0.0))
        return float(np.exp(y[-1] + slope * (to - x[-1])))
    if to <= x[0]:
        slope = float(np.clip((y[1] - y[0]) / (x[1] - x[0]), -1.0, 0.0))
        return float(np.exp(y[0] + slope * (to - x[0])))
    return float(np.exp(np.interp(to, x, y)))
