"""measure: trajectories + scope + budget → release. The only step that touches the data, and the only one that spends.

The order matters. All exact sums are added up first; nothing has been spent yet, and an interruption costs nothing.
Then the ledger refuses or commits the whole budget. Only then is noise drawn, in the order of the catalogue
(`wayveil.questions.catalogue`).
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wayveil.engine.serial import Engine, Serial
from wayveil.errors import CHARGED, InputError, WayveilError
from wayveil.formats.roads import Roads, roads_of
from wayveil.measurement.draw import draw_release
from wayveil.measurement.exact import exact_answers, kept_trajectories, read_exact
from wayveil.privacy.budget import Number, exact_delta, exact_epsilon
from wayveil.privacy.ledger import Ledger, Spend, clean_name
from wayveil.privacy.mechanism import Cost, Mechanism
from wayveil.privacy.noise import NoiseSource, OpenDPNoise
from wayveil.privacy.unit import Unit, parse_unit
from wayveil.progress import Progress, quiet
from wayveil.questions.catalogue import QUESTIONS, SHARES, ledger_lines
from wayveil.questions.count import Count
from wayveil.release import Release
from wayveil.release.words import warn_few
from wayveil.roads import check_inside
from wayveil.scope import Scope, scope_of
from wayveil.source import open_source

__all__ = [
    "SameContentWarning",
    "exact_answers",
    "kept_trajectories",
    "measure",
]


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
    roads: Roads = None,
    engine: Engine | None = None,
    noise: NoiseSource | None = None,
    progress: Progress = quiet,
    **read_options: Any,
) -> Release:
    """Σ φ(T) + Lap(c/ε_q) for every question of the catalogue, Σ ε_q = ε.

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
        The public map that synthesis will use, or its file; it is only looked at, so that a wrong one is noticed
        before the spend.

    Privacy: spends ε (and δ) of the dataset's budget, once, for everything that is ever made from the release.
    """
    scope = scope_of(scope)
    unit = unit if isinstance(unit, Unit) else parse_unit(unit, max_per_user)
    finest = max(question.resolution for question in QUESTIONS.values())
    cost = Cost.of(exact_epsilon(epsilon), exact_delta(delta), unit, SHARES, finest)
    account = _account(ledger, dataset)
    streets = roads_of(roads)
    if streets is not None:
        check_inside(streets, scope)
    source = open_source(data, **read_options)
    # Read before the data: a ledger that is locked, lost or rolled back is known at once.
    secret = None if account is None else account.secret
    exact = read_exact(source, scope, kept_trajectories(source, unit), engine or Serial(), secret, progress)
    if exact.sums_of(Count())[0] == 0:
        raise InputError(
            "No trajectory has a point inside the scope; check its box, its days and the column names. "
            "`wayveil check FILE --scope SCOPE` says which of them it is."
        )
    if account is not None:
        _pay(account, dataset or "", cost, unit, exact.digest)
    with stays_charged(account is not None):
        release = draw_release(Mechanism(cost, unit, noise or OpenDPNoise()), exact, progress)
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
    lines = [
        Spend(name, share, purpose, cost.delta * share / budget.epsilon)
        for name, share in ledger_lines(budget.shares).items()
    ]
    receipt = ledger.spend(dataset, lines, total_if_new=budget.epsilon, total_delta_if_new=cost.delta, digest=digest)
    for warning in receipt.warnings:
        warnings.warn(warning, SameContentWarning, stacklevel=3)
