"""The sound method under audit: each view through the door on its own, and the whole of `measure`.

Privacy: not private (trusted side only); the auditor knows both datasets and spends nothing, because nothing leaves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wayveil.door import Cost, Door
from wayveil.draw_release import detail_sums
from wayveil.engine.serial import Kept, Serial, prepared_batches
from wayveil.errors import InputError
from wayveil.exact import exact_answers, first_views
from wayveil.grid import base_grid, level_shape
from wayveil.measure import measure
from wayveil.plan import Levels
from wayveil.prepare import Prepared
from wayveil.privacy.budget import Budget
from wayveil.privacy.noise import NoiseSource, Noisy, OpenDPNoise
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.questions.detail_weights import FEWEST, MOST, PARTS
from wayveil.regions import cut_regions, label_regions
from wayveil.scope import Scope
from wayveil.source import MemorySource, Source
from wayveil.trajectories import Trajectories
from wayveil.views import EndPoints, Occupancy, OriginDestination, View, exact_sums

_DEPTH = 4
_LEVELS = Levels(coarse=16, middle=4, fine=1)
_CERTAIN = 1e6
Sums = NDArray[np.int64]


class HalfNoise:
    """Noise of half the scale that claims the full price: a mistake, for the audit to find."""

    private = False

    def __init__(self, inner: NoiseSource | None = None) -> None:
        self._inner = inner or OpenDPNoise()

    def laplace(self, sums: Sums, sensitivity: int, epsilon: Fraction) -> Noisy:
        """Laplace of scale sensitivity / (2 epsilon), entered as epsilon."""
        noisy = self._inner.laplace(sums, sensitivity, 2 * epsilon)
        return replace(noisy, epsilon_spent=epsilon, private=False)

    def gaussian(self, sums: Sums, l2_sensitivity: float, rho: Fraction) -> Noisy:
        """Gaussian of half the sigma, entered as rho."""
        noisy = self._inner.gaussian(sums, l2_sensitivity, 4 * rho)
        return replace(noisy, rho_spent=rho, private=False)


def audited_views(scope: Scope) -> list[View]:
    """Every view of the plan at its finest public size; origin–destination on sixteen equal regions.

    The plan pools cells of these before the noise. Pooling adds a trajectory's features up, so it cannot make its L1
    norm larger than what is audited here. What it weighs, the detail of a field, is audited besides.
    """
    grid = base_grid(scope)
    regions = label_regions(grid, cut_regions(np.ones((grid.rows, grid.columns)), _DEPTH))
    return [*first_views(scope).values(), OriginDestination(grid, regions.ravel(), 2**_DEPTH)]


def view_scores(
    without: Trajectories,
    with_canary: Trajectories,
    scope: Scope,
    *,
    epsilon: Fraction,
    runs: int,
    noise: NoiseSource,
    views: Sequence[View] | None = None,
    progress: Progress = quiet,
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """View -> log likelihood ratios ln P(y | with) / P(y | without) of `runs` runs on each dataset, all of ε on it.

    The exact sums come from the engine, once a dataset: they do not vary between runs. The noise is independent from
    value to value and its scale knows only the sensitivity and ε, so `runs` copies of the sums sent through the door
    together are `runs` runs of it. Values that are equal on both datasets say nothing about which one it was and are
    left out.
    """
    views = audited_views(scope) if views is None else views
    unit = Unit.trajectory()
    exact = [exact_answers(data, scope, views) for data in (without, with_canary)]
    asked = [question for view, *sums in zip(views, *exact) for question in _questions(view, *sums)]
    scores = {}
    for position, (name, resolution, zero, one) in enumerate(asked):
        progress("one view at a time", (position + 1) / len(asked))
        differs = np.flatnonzero(zero != one)
        if not len(differs):
            continue
        door = Door(scope, Cost(Budget(epsilon, {name: epsilon}), Fraction(0), None), unit, noise)
        sides = []
        for sums in (zero[differs], one[differs]):
            answer = door.answer(name, np.tile(sums, runs), resolution, (runs, len(differs)))
            noisy = answer.noisy.reshape(runs, len(differs))
            sides.append(log_ratio(noisy, zero[differs], one[differs], answer.scale))
        scores[name] = (sides[0], sides[1])
    return scores


def _questions(view: View, without: Sums, with_canary: Sums) -> Iterator[tuple[str, int, Sums, Sums]]:
    """(name, resolution, exact sums of both datasets): the view itself, and of a field also its detail.

    The detail is weighed by the plan's own function, with parts of every size: which ones, no sensitivity depends on.
    """
    yield view.name, view.resolution, without, with_canary
    if isinstance(view, Occupancy | EndPoints):
        rows, columns = (np.arange(cells) for cells in level_shape(view.grid, _LEVELS.coarse))
        parts = FEWEST + (7 * rows[:, None] + 5 * columns) % (MOST - FEWEST + 1)
        zero, one = (detail_sums(sums.reshape(view.shape), _LEVELS, parts) for sums in (without, with_canary))
        yield f"{view.name}/detail", PARTS * view.resolution, zero, one


def log_ratio(noisy: Sums, without: Sums, with_canary: Sums, scale: float) -> NDArray[np.float64]:
    """Σ (|y − s| − |y − s'|) / b: the Laplace's log likelihood ratio of s' against s."""
    moved = np.abs(noisy - without) - np.abs(noisy - with_canary)
    return np.asarray(moved.sum(axis=-1) / scale, np.float64)


@dataclass
class _Recorder:
    """Noise of `inner`, with a note of the exact sums that went in."""

    inner: NoiseSource
    sums: list[Sums] = field(default_factory=list)
    noisy: list[Noisy] = field(default_factory=list)

    @property
    def private(self) -> bool:
        return self.inner.private

    def laplace(self, sums: Sums, sensitivity: int, epsilon: Fraction) -> Noisy:
        self.sums.append(sums)
        self.noisy.append(self.inner.laplace(sums, sensitivity, epsilon))
        return self.noisy[-1]

    def gaussian(self, sums: Sums, l2_sensitivity: float, rho: Fraction) -> Noisy:
        raise InputError("The audit knows the likelihood of Laplace noise only; audit a release made without --delta.")


@dataclass
class _Replay:
    """Gives the answers of an earlier run again, and notes which exact sums they would have been answers to."""

    noisy: Sequence[Noisy]
    private: bool = False
    sums: list[Sums] = field(default_factory=list)

    def laplace(self, sums: Sums, sensitivity: int, epsilon: Fraction) -> Noisy:
        self.sums.append(sums)
        earlier = self.noisy[min(len(self.sums), len(self.noisy)) - 1]
        # Another size than last time is itself the finding; a made-up answer lets the run come to its end.
        return earlier if len(earlier.values) == len(sums) else replace(earlier, values=sums)

    def gaussian(self, sums: Sums, l2_sensitivity: float, rho: Fraction) -> Noisy:
        raise InputError("The audit knows the likelihood of Laplace noise only; audit a release made without --delta.")


class _Remembering:
    """An engine that keeps the prepared data and the first sums: runs differ in their noise only."""

    map = Serial.map

    def __init__(self, data: Trajectories, scope: Scope) -> None:
        self._batches: list[Prepared] = list(prepared_batches(MemorySource(data), scope, None))
        self._first: list[Sums] | None = None

    def sums(
        self, source: Source, scope: Scope, views: Sequence[View], kept: Kept, progress: Progress = quiet
    ) -> list[Sums]:
        """Σ φ(T) for each view; the origin–destination view comes alone and is new in every run."""
        if len(views) == 1:
            return exact_sums(views, self._batches)
        if self._first is None:
            self._first = exact_sums(views, self._batches)
        return [sums.copy() for sums in self._first]


def release_scores(
    without: Trajectories,
    with_canary: Trajectories,
    scope: Scope,
    *,
    epsilon: Fraction,
    runs: int,
    noise: NoiseSource,
    progress: Progress = quiet,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log likelihood ratios of whole releases, ln P(release | with) / P(release | without), `runs` on each dataset.

    `measure` runs on one dataset; then once more on the other with the answers already given, which says what the exact
    sums would have been there. Later views depend on earlier answers only through what was released, so the ratio is
    the sum over all answers, and ε-DP keeps it within ± ε.
    """
    datasets = (MemorySource(without), MemorySource(with_canary))
    engines = (_Remembering(without, scope), _Remembering(with_canary, scope))
    unit = Unit.trajectory()
    scores = np.zeros((2, runs))
    for run in range(runs):
        progress("whole releases", (run + 1) / runs)
        for side in (0, 1):
            recorder = _Recorder(noise)
            measure(datasets[side], scope, epsilon=epsilon, unit=unit, engine=engines[side], noise=recorder)
            replay = _Replay(recorder.noisy)
            measure(datasets[1 - side], scope, epsilon=epsilon, unit=unit, engine=engines[1 - side], noise=replay)
            zero, one = (recorder.sums, replay.sums) if side == 0 else (replay.sums, recorder.sums)
            scores[side, run] = _release_ratio(recorder.noisy, zero, one, certain=_CERTAIN if side else -_CERTAIN)
    return scores[0], scores[1]


def _release_ratio(noisy: Sequence[Noisy], without: list[Sums], with_canary: list[Sums], certain: float) -> float:
    """Σ over the answers of their log ratios; `certain` if the other dataset cannot give answers of this shape."""
    if not [len(s) for s in without] == [len(s) for s in with_canary] == [len(one.values) for one in noisy]:
        return certain
    return sum(float(log_ratio(one.values, s, s1, one.scale)) for one, s, s1 in zip(noisy, without, with_canary))
