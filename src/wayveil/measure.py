"""measure: trajectories + scope + budget → release. The only step that touches the data, and the only one that spends.

The order matters. All exact sums are added up first; nothing has been spent yet, and an interruption costs nothing.
Then the ledger refuses or commits the whole budget. Only then is noise drawn: first the count, which sets the sizes
of the other views; then the fields, whose noisy blocks set how closely each of them is looked at and whose noisy end
points set the regions of the origin–destination view.
"""

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil import plan
from wayveil.bins import Bins
from wayveil.engine.serial import Engine, Serial
from wayveil.errors import CHARGED, BudgetError, InputError, WayveilError
from wayveil.exact import Exact, exact_answers, first_views, kept_trajectories, read_exact
from wayveil.focus import PARTS, Parts, fine_parts, weigh
from wayveil.grid import Grid, base_grid
from wayveil.privacy.budget import Budget, Number, exact_delta, exact_epsilon
from wayveil.privacy.fixedpoint import LARGEST_SUM, check_overflow
from wayveil.privacy.ledger import Ledger, Spend, clean_name
from wayveil.privacy.noise import NoiseSource, OpenDPNoise
from wayveil.privacy.unit import Unit, parse_unit
from wayveil.progress import Progress, quiet
from wayveil.release import Answer, Release
from wayveil.roads import RoadMap, check_inside
from wayveil.scope import Scope, read_scope
from wayveil.source import open_source
from wayveil.synthesis.pyramid import pool
from wayveil.synthesis.regions import cut_regions, cuts_to_json, label_regions
from wayveil.views import OriginDestination, View
from wayveil.views.places import OCCUPANCY_RESOLUTION

__all__ = [
    "Cost",
    "Door",
    "SameContentWarning",
    "exact_answers",
    "first_views",
    "kept_trajectories",
    "measure",
]

_MOST_TRAJECTORIES = 1 << 40


class SameContentWarning(UserWarning):
    """The ledger knows the same content under another name."""


def measure(
    data: Any,
    scope: Scope | str | os.PathLike[str],
    *,
    epsilon: Number,
    unit: Unit | str,
    max_per_user: int | None = None,
    dataset: str | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    delta: Number = 0,
    roads: RoadMap | None = None,
    engine: Engine | None = None,
    noise: NoiseSource | None = None,
    progress: Progress = quiet,
    **read_options: Any,
) -> Release:
    """Σ φ(T) + Lap(c/ε_v) for every view of the plan, Σ ε_v = ε.

    Parameters
    ----------
    data
        Trajectories, a frame, a path, or an open source; `read_options` are those of `wayveil.read`.
    scope
        The public frame, or the file or name of one; nothing else about the world is known.
    epsilon, unit
        The promise. Neither has a default, on purpose. `unit` is a `Unit`, or "trajectory", or "user" with
        `max_per_user`.
    dataset, ledger
        The account that pays. With neither, nothing is recorded, and the caller answers for composition.
    delta
        Above 0: Gaussian noise with zCDP accounting instead of pure ε.
    roads
        The public map that synthesis will use; it is only looked at, so that a wrong one is noticed before the spend.

    Privacy: spends ε (and δ) of the dataset's budget, once, for everything that is ever made from the release.
    """
    scope = scope if isinstance(scope, Scope) else read_scope(os.fspath(scope))
    unit = unit if isinstance(unit, Unit) else parse_unit(unit, max_per_user)
    cost = Cost.of(exact_epsilon(epsilon), exact_delta(delta), unit)
    account = _account(ledger, dataset)
    if roads is not None:
        check_inside(roads, scope)
    source = open_source(data, **read_options)
    # Read before the data: a ledger that is locked, lost or rolled back is known at once.
    secret = None if account is None else account.secret
    exact = read_exact(source, scope, kept_trajectories(source, unit), engine or Serial(), secret, progress)
    if exact.sums["count"][0] == 0:
        raise InputError("No trajectory has a point inside the scope; check its box, its days and the column names.")
    if account is not None:
        _pay(account, dataset or "", cost, unit, exact.digest)
    with stays_charged(account is not None):
        release = _draw(Door(scope, cost, unit, noise or OpenDPNoise()), exact, progress)
    from wayveil.report.words import warn_few

    warn_few(release)
    return release


@contextmanager
def stays_charged(charged: bool) -> Iterator[None]:
    """Whatever goes wrong inside says that the spend stays on the ledger, unexpected errors and Ctrl-C included."""
    try:
        yield
    except WayveilError as error:
        if not charged or CHARGED in str(error):
            raise
        raise type(error)(f"{error} {CHARGED}") from None
    except BaseException as error:
        if charged and CHARGED not in getattr(error, "__notes__", []):
            error.add_note(CHARGED)
        raise


@dataclass(frozen=True)
class Cost:
    """What each view may cost: ε_v of pure privacy, or with a δ, ρ_v = ρ·ε_v/ε of zero-concentrated privacy.

    Privacy: free; it says what may be spent and spends nothing itself.
    """

    budget: Budget
    delta: Fraction
    rho: Fraction | None

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction, unit: Unit) -> "Cost":
        """ε (and δ) divided by the plan's shares; refused where the noise would not fit beside the sums."""
        from wayveil.privacy.zcdp import rho_for

        cost = cls(Budget.split(epsilon, plan.SHARES), delta, rho_for(epsilon, delta) if delta else None)
        finest = PARTS * OCCUPANCY_RESOLUTION
        check_overflow(_MOST_TRAJECTORIES, finest)
        # Sixty-four scales of noise must fit beside the sums; beyond that only noise is left anyway.
        if 64 * finest * max(cost.noise(name, unit) for name in cost.budget.shares) >= LARGEST_SUM:
            raise InputError("epsilon is too small for this --max-per-user: only noise would be left; raise it.")
        return cost

    def rho_of(self, name: str) -> Fraction:
        """ρ_v."""
        assert self.rho is not None
        return self.rho * self.budget[name] / self.budget.epsilon

    def noise(self, name: str, unit: Unit) -> float:
        """Scale of the noise in trajectories, c/ε_v; a Gaussian's as the Laplace of equal variance, c/(2·sqrt(ρ_v))."""
        if self.rho is None:
            return unit.sensitivity / float(self.budget[name])
        return unit.sensitivity / (2.0 * math.sqrt(self.rho_of(name)))


@dataclass(frozen=True)
class Door:
    """What every answer needs on its way out; exact sums become noisy answers here and nowhere else.

    The audit sends exact sums through this same door, so that what it judges is what runs.

    Privacy: spends ε_v (or ρ_v) with each `answer`.
    """

    scope: Scope
    cost: Cost
    unit: Unit
    noise: NoiseSource

    def answer(
        self, name: str, sums: NDArray[np.int64], resolution: int, shape: tuple[int, ...], **parameters: Any
    ) -> Answer:
        """Exact sums in, noisy answer out."""
        share = self.cost.budget[name]
        sensitivity = resolution * self.unit.sensitivity
        flat = np.ascontiguousarray(sums, np.int64).ravel()
        if self.cost.rho is None:
            mechanism, noisy = "laplace", self.noise.laplace(flat, sensitivity, share)
            dear = noisy.epsilon_spent > share
        else:
            # ‖x‖₂ ≤ ‖x‖₁, so the L1 bound serves as the L2 bound.
            rho = self.cost.rho_of(name)
            mechanism, noisy = "gaussian", self.noise.gaussian(flat, float(sensitivity), rho)
            dear = noisy.rho_spent > rho
        if dear:
            raise BudgetError(f"'{name}' would cost more than its share; nothing was released.")
        return Answer(name, parameters, shape, resolution, mechanism, noisy.scale, share, noisy.values)

    def signal(self, name: str, count: float) -> float:
        """m̃·ε_v / c: how many noise units one view's whole answer is worth."""
        return max(count, 1.0) / self.cost.noise(name, self.unit)


def _draw(door: Door, exact: Exact, progress: Progress) -> Release:
    """Noise, in the order in which answers may depend on each other."""
    grid, views, sums = base_grid(door.scope), exact.views, exact.sums
    count = door.answer("count", sums["count"], 1, (1,))
    noisy_count = float(count.counts[0])
    signals = {name: _field_signal(door, name, noisy_count) for name in plan.FIELDS}
    # In between only the noisy count has been seen, so what it decides is post-processing; the sum stays the same.
    door = replace(door, cost=replace(door.cost, budget=plan.focused(door.cost.budget, signals, grid)))
    answers = [count]
    fields: dict[str, list[Answer]] = {}
    for name in plan.FIELDS:
        fields[name] = list(_field_answers(door, name, views[name], sums[name], grid, noisy_count))
        answers += fields[name]
        progress("drawing noise", 0.4 if name == "occupancy" else 0.8)
    answers.append(_asymmetry(door, views["start_minus_end"], sums["start_minus_end"], grid, noisy_count))
    answers += _histograms(door, views, sums, noisy_count)
    answers += _origin_destination(door, fields["end_points"], grid, noisy_count, exact, progress)
    progress("drawing noise", 1.0)
    return Release(
        scope=door.scope,
        answers=tuple(answers),
        epsilon=door.cost.budget.epsilon,
        delta=float(door.cost.delta),
        unit=door.unit.kind,
        max_per_user=door.unit.max_per_user,
        neighbours=door.unit.describe(),
        private=door.noise.private,
        software=_software(),
    )


def _field_signal(door: Door, name: str, count: float) -> float:
    return door.signal(f"{name}/coarse", count) + door.signal(f"{name}/detail", count)


def _field_answers(
    door: Door, name: str, view: View, sums: NDArray[np.int64], grid: Grid, count: float
) -> Iterator[Answer]:
    """Coarse blocks, then middle and fine cells together. Pooling adds cells up: a trajectory's L1 norm cannot grow."""
    detail = f"{name}/detail"
    levels = plan.field_levels(grid, _field_signal(door, name, count))
    exact = sums.reshape(grid.rows, grid.columns)
    pooled = _pooled(exact, levels.coarse)
    resolution, cell_m = view.resolution, grid.cell_m
    coarse = door.answer(f"{name}/coarse", pooled, resolution, pooled.shape, side=levels.coarse, cell_m=cell_m)
    yield coarse
    # From the noisy blocks, never from the exact ones: how a block is looked at is part of the release.
    parts = fine_parts(coarse.counts, (levels.coarse // levels.fine) ** 2, door.cost.noise(detail, door.unit))
    weighed = detail_sums(exact, levels, parts)
    known = {"sides": [levels.middle, levels.fine], "cell_m": cell_m, "parts": parts.tolist()}
    yield door.answer(detail, weighed, PARTS * resolution, weighed.shape, **known)


def detail_sums(exact: NDArray[np.int64], levels: plan.Levels, parts: Parts) -> NDArray[np.int64]:
    """Middle and fine sums of a field, weighed block by block: PARTS times the norm of a trajectory, wherever it lies.

    Privacy: not private (trusted side only).
    """
    ratios = levels.coarse // levels.middle, levels.coarse // levels.fine
    return weigh(_pooled(exact, levels.middle), _pooled(exact, levels.fine), parts, ratios)


def _asymmetry(door: Door, view: View, sums: NDArray[np.int64], grid: Grid, count: float) -> Answer:
    side = plan.asymmetry_side(grid, door.signal(view.name, count))
    pooled = _pooled(sums.reshape(grid.rows, grid.columns), side)
    return door.answer(view.name, pooled, view.resolution, pooled.shape, side=side, cell_m=grid.cell_m)


def _histograms(
    door: Door, views: Mapping[str, View], sums: Mapping[str, NDArray[np.int64]], count: float
) -> list[Answer]:
    answers = []
    for name in ("length", "displacement", "duration", "mean_speed", "mean_interval", "gap_ratio"):
        view = views[name]
        bins = view.bins  # type: ignore[attr-defined]
        if name not in plan.SPIKY:
            bins = plan.histogram_bins(bins, door.signal(name, count))
        merged = _merge(sums[name], view.bins, bins)  # type: ignore[attr-defined]
        answers.append(door.answer(name, merged, view.resolution, merged.shape, edges=list(bins.edges)))
    # Once more unmerged: recordings that are all cut at the hour are one narrow spike.
    duration = views["duration"]
    edges = list(duration.bins.edges)  # type: ignore[attr-defined]
    answers.append(door.answer("duration/spikes", sums["duration"], duration.resolution, duration.shape, edges=edges))
    for name, edges in (
        ("displacement_length", ("displacement", "length")),
        ("length_duration", ("length", "duration")),
    ):
        view = views[name]
        both = {f"{edge}_edges": list(getattr(view, edge).edges) for edge in edges}
        answers.append(door.answer(name, sums[name], view.resolution, view.shape, **both))
    for name in ("departure_hour", "departure_week"):
        answers.append(door.answer(name, sums[name], 1, views[name].shape))
    return answers


def _pooled(sums: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    return pool(sums, side)  # type: ignore[arg-type, return-value]


def _merge(sums: NDArray[np.int64], fine: Bins, coarse: Bins) -> NDArray[np.int64]:
    starts = np.searchsorted(np.asarray(fine.edges), np.asarray(coarse.edges[:-1]))
    return np.add.reduceat(sums, starts)


def _origin_destination(
    door: Door, end_points: Sequence[Answer], grid: Grid, count: float, exact: Exact, progress: Progress
) -> list[Answer]:
    """Both levels of the origin–destination view, on regions cut from the noisy end points."""
    names = ("origin_destination/coarse", "origin_destination/fine")
    depth = plan.region_depth(sum(door.signal(name, count) for name in names))
    cuts = cut_regions(rough_field(*end_points, grid, max(count, 1.0)), depth)
    view = OriginDestination(grid, label_regions(grid, cuts).ravel(), 2**depth)
    fine = exact.origin_destination(view, progress).reshape(view.shape)
    coarse = _pooled(fine, 4)
    return [
        door.answer(names[0], coarse, 1, coarse.shape, merged=4),
        door.answer(names[1], fine, 1, fine.shape, cuts=cuts_to_json(cuts)),
    ]


def rough_field(coarse: Answer, detail: Answer, grid: Grid, count: float) -> NDArray[np.float64]:
    """A quick density from the two coarser noisy levels: good enough to cut regions of about equal mass."""
    from wayveil.synthesis.field import estimate_field
    from wayveil.synthesis.fields import focused_levels

    noisy = focused_levels(coarse, detail, grid)[:2]
    return estimate_field(noisy, count, np.ones((grid.rows, grid.columns)), neighbours=False)


def _account(ledger: Ledger | str | os.PathLike[str] | None, dataset: str | None) -> Ledger | None:
    if dataset is None and ledger is None:
        return None
    if dataset is None:
        raise InputError("Name the dataset whose budget pays: --dataset NAME.")
    clean_name(dataset)
    return ledger if isinstance(ledger, Ledger) else Ledger(None if ledger is None else Path(ledger))


def _pay(ledger: Ledger, dataset: str, cost: Cost, unit: Unit, digest: str | None) -> None:
    """All shares on the ledger in one go; with a δ only their sum is a guarantee, so it is divided alike."""
    budget, purpose = cost.budget, f"measure, {unit.kind} level" + (", Gaussian" if cost.rho else "")
    lines = [Spend(name, share, purpose, cost.delta * share / budget.epsilon) for name, share in _lines(budget).items()]
    receipt = ledger.spend(dataset, lines, total_if_new=budget.epsilon, total_delta_if_new=cost.delta, digest=digest)
    for warning in receipt.warnings:
        warnings.warn(warning, SameContentWarning, stacklevel=3)


def _lines(budget: Budget) -> dict[str, Fraction]:
    """Shares by view; a field's coarse blocks and their detail are one line, because they are divided later."""
    lines: dict[str, Fraction] = {}
    for name, share in budget.shares.items():
        field = name.partition("/")[0]
        line = field if field in plan.FIELDS else name
        lines[line] = lines.get(line, Fraction(0)) + share
    return lines


def _software() -> str:
    from importlib.metadata import version

    return f"wayveil {version('wayveil')}"
