"""`evaluate`: every metric with its interval and its floor."""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wayveil.core.html import PRIVATE_NOTICE, card, table_of_text
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.evaluation.all_metrics import HEADLINE, METRICS, selected_metrics
from wayveil.evaluation.conclusion import (
    NO_ROUTES,
    OF_ROUTES,
    Purpose,
    conclusion_line,
    floor_warnings,
    purpose_of,
    word_of,
)
from wayveil.evaluation.file_order import check_order
from wayveil.evaluation.floor import FEWEST, Floor, floor_of, in_samples, similar_sizes
from wayveil.evaluation.metrics import Metric, as_paths
from wayveil.evaluation.paths import Paths, as_measured, check_in_scope
from wayveil.evaluation.people import PeopleReport, evaluate_people
from wayveil.evaluation.tally import GROUPS, Tally
from wayveil.evaluation.trips import TripEvaluation, evaluate_trips
from wayveil.evaluation.trips.classifier import require_sklearn
from wayveil.io.files import read
from wayveil.io.roads import Roads, roads_of
from wayveil.io.scope_files import scope_of
from wayveil.progress import Progress, quiet

_CLEARLY = 3.0
"""Standard errors below the floor that count as clearly below it."""


@dataclass(frozen=True)
class Score:
    """One metric: value, 95 % interval, floor with its standard error, and whether the value is clearly below it."""

    value: float
    low: float
    high: float
    floor: float
    floor_error: float
    below_floor: bool
    higher_is_better: bool


@dataclass(frozen=True)
class Evaluation:
    """Scores by metric, the result of `wayveil.evaluate`.

    `print` it for a table that begins with a conclusion; a notebook displays one automatically.

    Examples
    --------
    >>> import wayveil
    >>> scores = wayveil.evaluate("rides.csv", "synthetic.parquet", "my-city.toml")  # doctest: +SKIP
    >>> print(scores)  # doctest: +SKIP
    >>> scores.values["density_500"], scores.floors["density_500"]  # doctest: +SKIP

    Privacy
    -------
    Not private (trusted side only); computed from the private data.
    """

    scores: dict[str, Score]
    too_few: bool = False
    """Whether one side has too few trajectories for intervals and floors; then no metric counts as below the floor."""
    trips: TripEvaluation | None = None
    """Scores of single trips, where they were requested."""
    purpose: Purpose | None = None
    """The use that the conclusion is about; None = all of them."""
    floor_notes: tuple[str, ...] = ()
    """Why floors may not be comparable, as the rest of a sentence about the synthetic data."""
    people: PeopleReport | None = None
    """Scores of people, where they were requested."""
    routes: bool = True
    """Whether metrics of routes count; False if hardly any real trip has points between its ends."""

    @property
    def conclusion(self) -> str:
        """One sentence: what a reader should conclude."""
        return conclusion_line(self.scores, self.too_few, self.below_floor, self.purpose, routes=self.routes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why floors may not be comparable with those of other data, one sentence each."""
        return tuple(f"The synthetic data {note}." for note in self.floor_notes)

    @property
    def words(self) -> dict[str, str]:
        """Metric -> 'good', 'rough' or 'poor', by its distance from the floor; 'no use' if the floor is too high."""
        return {} if self.too_few else {name: word_of(name, score) for name, score in self.scores.items()}

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
        """Metrics that are clearly better than for a new sample of the population: a sign of copied records."""
        return tuple(name for name, score in self.scores.items() if score.below_floor)

    def __repr__(self) -> str:
        few = ", too few trajectories for intervals" if self.too_few else ""
        below = f"{len(self.below_floor)} below the floor"
        return f"Evaluation({len(self.scores)} metrics, {below}{few}; print it for details)"

    def _repr_html_(self) -> str:
        if self.too_few:
            header = ["metric", "value"]
            rows = [[name, f"{score.value:.4f}"] for name, score in self.scores.items()]
        else:
            header = ["metric", "value", "± (95 %)", "floor", ""]
            rows = [
                [name, f"{score.value:.4f}", f"{(score.high - score.low) / 2:.4f}", f"{score.floor:.4f}",
                 "below the floor" if score.below_floor else ""]
                for name, score in self.scores.items()
            ]  # fmt: skip
        facts = [
            ("conclusion", self.conclusion),
            ("metrics", str(len(self.scores))),
            ("below the floor", ", ".join(self.below_floor) or "none"),
        ]
        facts += [("note", "too few trajectories for intervals and floors")] if self.too_few else []
        facts += [("warning", warning) for warning in self.warnings]
        return card("Evaluation", facts, notice=PRIVATE_NOTICE, table=table_of_text(header, rows))

    def __str__(self) -> str:
        """Return the conclusion, then a line per metric: value, half of the 95 % interval, floor.

        With too few trajectories there are only values.
        """
        width = max(map(len, self.scores), default=6)
        if self.too_few:
            header = f"{'metric':<{width}}    value  (too few trajectories for intervals and floors)"
            values = [f"{name:<{width}}  {score.value:7.4f}" for name, score in self.scores.items()]
            return "\n".join([self.conclusion, *self.warnings, header, *values])
        lines = [self.conclusion, *self.warnings, f"{'metric':<{width}}    value            floor"]
        for name, score in self.scores.items():
            half = (score.high - score.low) / 2
            lines.append(f"{name:<{width}}  {score.value:7.4f} ± {half:.4f}  {score.floor:7.4f}")
        more = [part for part in (self.trips, self.people) if part is not None]
        return "\n".join([*lines, *(line for part in more for line in ("", str(part)))])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        words = self.words
        return {
            "conclusion": self.conclusion,
            "purpose": self.purpose,
            "warnings": list(self.warnings),
            "scores": {
                name: {**asdict(score), **({"word": words[name]} if words else {})}
                for name, score in self.scores.items()
            },
            "below_floor": list(self.below_floor),
            "too_few": self.too_few,
            "routes": self.routes,
            **({} if self.trips is None else {"trips": self.trips.to_dict()}),
            **({} if self.people is None else {"people": self.people.to_dict()}),
        }


def evaluate(
    real: Trajectories | Paths | Any,
    synthetic: Trajectories | Paths | Any,
    scope: Scope | str | os.PathLike[str],
    *,
    metrics: Iterable[str] | None = None,
    with_time: bool = True,
    trips: bool = False,
    people: bool = False,
    roads: Roads = None,
    purpose: str | None = None,
    progress: Progress = quiet,
    **columns: Any,
) -> Evaluation:
    """Compare synthetic with real trajectories: every metric with its 95 % interval and its floor.

    Points of the real data outside the scope are ignored, as in `measure`. The interval is value ± 1.96 standard errors
    of a jackknife that leaves out one of 16 groups of trajectories, on both sides at once. The floor is the score of a
    new sample of the same population and size: see `floor_of`. With fewer than 20 trajectories on one side, intervals
    and floors are meaningless, and `too_few` is True.

    Parameters
    ----------
    real, synthetic
        Trajectories, or a file or frame that `wayveil.read` accepts; `synthetic` may be a result of
        `wayveil.synthesize`.
    scope
        A `Scope`, a file, or the name of a shipped one.
    columns
        Options of `wayveil.read` for frames and for the real file; a synthetic file has wayveil's own columns.
    metrics
        Names of `METRICS`; None = all of them; `HEADLINE` = the five that benchmarks need; both leave out
        those of routes if hardly any real trip has points between its ends.
    with_time
        False leaves out the metrics of time, for synthetic data without meaningful times.
    trips
        Also judge single trips (`Evaluation.trips`, see `evaluate_trips`); needs `pip install 'wayveil[evaluate]'`.
    people
        Also compare people (`Evaluation.people`, see `wayveil.evaluation.people`); both sides need users.
    roads
        With `trips`, a road map or its file: adds street flows and the relation of trips to roads.
    purpose
        "planning", "simulation" or "research": what the conclusion is about; None = all three.

    Examples
    --------
    >>> import wayveil
    >>> city = wayveil.simulate.simulate_city(size_km=(3, 3))
    >>> rides = wayveil.simulate.simulate_trajectories(city, 60)
    >>> others = wayveil.simulate.simulate_trajectories(city, 60, seed=1)
    >>> wayveil.evaluate(rides, others, city.scope, metrics=wayveil.evaluation.HEADLINE)
    Evaluation(5 metrics, 0 below the floor; print it for details)

    Privacy
    -------
    Not private (trusted side only).
    """
    names = selected_metrics((metrics,) if isinstance(metrics, str) else metrics, with_time)
    use = purpose_of(purpose)
    check_trips(trips, roads)
    check_order(real, [synthetic])
    inside: Any = getattr(synthetic, "trajectories", None)
    synthetic = inside if isinstance(inside, Trajectories) else synthetic
    scope = scope_of(scope)
    made_columns = {} if isinstance(synthetic, str | os.PathLike) else columns
    opened = _opened(real, columns), _opened(synthetic, made_columns)
    a, b = (as_paths(side, scope) for side in opened)
    check_in_scope(a, "the real data")
    a = as_measured(a, scope)
    check_in_scope(b, "the synthetic data")
    without_routes = (metrics is None or metrics is HEADLINE) and not a.has_routes
    names = [name for name in names if name not in OF_ROUTES] if without_routes else names
    scores, samples = {}, in_samples(a, len(b))
    for position, name in enumerate(names):
        progress("evaluate", position / len(names))
        tally = METRICS[name].tally(a, b)
        progress("evaluate", (position + 0.5) / len(names))
        scores[name] = _score(METRICS[name], tally, a, b, samples)
    progress("evaluate", 1.0)
    single = None
    if trips:
        single = evaluate_trips(a, b, scope, roads=roads_of(roads), with_time=with_time, progress=progress)
    of_people = None
    if people:
        if not all(isinstance(side, Trajectories) for side in opened):
            raise InputError("people=True needs trajectories with users on both sides.")
        of_people = evaluate_people(*opened, scope)  # type: ignore[arg-type]
    notes = (*floor_warnings(scores, len(a), len(b)), *((NO_ROUTES,) if without_routes else ()))
    return Evaluation(scores, min(len(a), len(b)) < FEWEST, single, use, notes, of_people, a.has_routes)


def check_trips(trips: bool, roads: Roads) -> None:
    """InputError, before any data is read, if single trips cannot be judged."""
    if trips:
        require_sklearn()
    elif roads is not None:
        raise InputError("roads= is used to judge single trips; add trips=True.")


def _opened(data: Any, columns: dict[str, Any]) -> Trajectories | Paths:
    if isinstance(data, Trajectories | Paths):
        return data
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
    samples = in_samples(a, size)
    return {name: _floor(METRICS[name], METRICS[name].tally(a, a), a, a, size, samples).value
            for name in selected_metrics(metrics, True)}  # fmt: skip


def _floor(metric: Metric, tally: Tally, real: Paths, synthetic: Paths, size: int, samples: Paths | None) -> Floor:
    # The floor of an unbiased metric is 0, so it needs no samples.
    sampled = None if samples is None or metric.unbiased else metric.tally(samples, synthetic)
    return floor_of(metric, tally, len(real), size, sampled)


def _score(metric: Metric, tally: Tally, real: Paths, synthetic: Paths, samples: Paths | None) -> Score:
    n_real, n_synthetic = len(real), len(synthetic)
    everything = np.arange(GROUPS)
    value = tally.score(everything, everything)
    used = min(GROUPS, n_real, n_synthetic)
    without = [np.delete(everything, g) for g in range(used)] if used > 1 else [everything]
    error = float(np.sqrt((used - 1) * np.var([tally.score(kept, kept) for kept in without])))
    floor = _floor(metric, tally, real, synthetic, n_synthetic, samples)
    better_by = (value - floor.best) if metric.higher_is_better else (floor.best - value)
    # Three standard errors, and 5 % of the floor for the uncertainty of the scaling law.
    slack = _CLEARLY * floor.error + 0.05 * abs((1.0 - floor.value) if metric.higher_is_better else floor.value)
    # A small file with evenly spread records may be closer than a random sample of its size, without any copying.
    below = min(n_real, n_synthetic) >= FEWEST and similar_sizes(n_real, n_synthetic) and bool(better_by > slack)
    low, high = value - 1.96 * error, value + 1.96 * error
    return Score(value, low, high, floor.value, floor.error, below, metric.higher_is_better)
