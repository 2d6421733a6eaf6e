"""measure: trajectories + scope + budget → release. The only step that touches the data, and the only one that spends.

The order matters. A budget that the ledger does not allow is refused before the data is read. All exact sums are added
up next; nothing has been spent yet, and an interruption costs nothing. Then the ledger checks again and refuses or
commits the whole budget. Only then is noise drawn, in the order of the catalogue (`wayveil.questions.catalogue`).
"""

import os
import warnings
from pathlib import Path
from typing import Any

from wayveil.core.outcome import stated_in_errors
from wayveil.core.roads import check_inside
from wayveil.core.scope import Scope
from wayveil.core.warning_location import measuring_level
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Engine, Serial
from wayveil.errors import InputError, LedgerWarning, UnaccountedSpendWarning
from wayveil.io.options import read_options
from wayveil.io.outputs import remember_private
from wayveil.io.roads import Roads, roads_of
from wayveil.io.scope_files import scope_of
from wayveil.io.source import measured_source
from wayveil.measurement.draw import draw_release
from wayveil.measurement.exact import draw_kept, read_exact, read_people
from wayveil.measurement.gaussian import READ_PER_COUNTED, draw_clipped_release, read_units
from wayveil.measurement.signal_check import check_signal
from wayveil.privacy.budget import Number, exact_delta, exact_epsilon
from wayveil.privacy.ledger import Ledger, Spend, clean_name
from wayveil.privacy.mechanism import Cost, Mechanism
from wayveil.privacy.noise import NoiseSource, OpenDPNoise
from wayveil.privacy.unit import Unit, parse_unit
from wayveil.progress import Progress, quiet
from wayveil.questions.shares import count_noise_of, ledger_lines, measurement_cost
from wayveil.release import Release
from wayveil.release.statements import warn_few


class SameContentWarning(LedgerWarning):
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
    expected_trips: int | None = None,
    accept_low_signal: bool = False,
    progress: Progress = quiet,
    **columns: Any,
) -> Release:
    """Measure private trajectories once, with noise, and return a release that may be published.

    Every question of the catalogue is answered by Σ φ(T) + Lap(c/ε_q), with Σ ε_q = ε.

    With a `delta`, Σ clip(Σ φ(T), B_q) + N(0, B_q²/2ρ_q): the inner sum is over the trajectories of one unit.

    Parameters
    ----------
    data
        Trajectories, a frame, a path, or an open source; `columns` are options of `wayveil.read`. Rows, trajectories
        and users that cannot be used contribute nothing, whatever `on_bad_rows` says: a refusal would reveal that there
        were some. `wayveil.check` counts them for the owner.
    scope
        The public limits of the data, or the file or name of a scope.
    epsilon, unit
        The promise. Neither has a default, on purpose. `unit` is a `Unit`, or "trajectory", or "user" with
        `max_per_user`.
    dataset, ledger
        The account that pays. Without a dataset nothing is recorded, and an `UnaccountedSpendWarning` says so.
    delta
        Above 0: what each unit adds is clipped in L2, and the sums get Gaussian noise, with zCDP accounting instead of
        pure ε. Recommended at user level, where the noise then follows the bound and not `max_per_user`.
    roads
        The public map that synthesis will use, or its file. It is only checked, so that a wrong one is noticed before
        the spend.
    expected_trips, accept_low_signal
        About how many trajectories the owner expects. Where the noise on their number would hide them, `measure`
        refuses before it reads anything (`LowSignalError`), unless `accept_low_signal` is True. `wayveil.count_noise`
        gives that noise.
    engine
        Where the work runs; `wayveil.engine.engine_named("ray")` distributes it.

    Returns
    -------
    Release
        `wayveil.write_release` stores it, `wayveil.synthesize` makes trajectories from it.

    Raises
    ------
    BudgetError
        If the dataset's total does not allow the spend; nothing was spent, and nothing was read unless another
        process spent in the meantime.
    LowSignalError
        If the noise would hide the data; nothing was read or spent.

    Examples
    --------
    >>> import wayveil
    >>> release = wayveil.measure(
    ...     "rides.csv", "my-city.toml", epsilon=1, unit="trajectory", dataset="rides"
    ... )  # doctest: +SKIP
    >>> city = wayveil.simulate.simulate_city(size_km=(3, 3))
    >>> rides = wayveil.simulate.simulate_trajectories(city, 50)
    >>> wayveil.measure(rides, city.scope, epsilon=2, unit="trajectory").unit
    'trajectory'

    Privacy
    -------
    Spends ε (and δ) of the dataset's budget, once, for everything that is ever made from the release.
    """
    scope = scope_of(scope)
    unit = parse_unit(unit, max_per_user)
    cost = measurement_cost(exact_epsilon(epsilon), exact_delta(delta), unit)
    check_signal(
        count_noise_of(cost, unit), unit, expected_trips=expected_trips, accept=accept_low_signal, delta=delta != 0
    )
    account = _account(ledger, dataset)
    lines = _lines(cost, unit)
    if account is None:
        _warn_unaccounted()
    else:
        account.check_spend(dataset or "", lines, unit=unit)
    streets = roads_of(roads)
    if streets is not None:
        check_inside(streets, scope)
    source = measured_source(data, unit.kind, read_options(columns, "measure"))
    if isinstance(data, str | os.PathLike):
        remember_private(data)
    # Read before the data: a ledger that is locked, lost or rolled back is known at once.
    secret = None if account is None else account.secret
    passes = Passes(source, engine or Serial())
    kept = draw_kept(passes, unit, 1 if cost.rho is None else READ_PER_COUNTED)
    mechanism = Mechanism(cost, unit, noise or OpenDPNoise())

    def pay(digest: str | None) -> None:
        if account is not None:
            _pay(account, dataset or "", lines, cost, unit, digest)

    if cost.rho is None:
        read = read_exact(passes, scope, kept, secret, progress)
        with read_people(read, unit, progress) as exact, stated_in_errors():
            pay(exact.digest)
            release = draw_release(mechanism, exact, progress)
    else:
        with read_units(passes, scope, kept, unit, secret, progress) as (units, first, digest), stated_in_errors():
            pay(digest)
            release = draw_clipped_release(mechanism, units, scope, first, progress)
    warn_few(release)
    return release


def _account(ledger: Ledger | str | os.PathLike[str] | None, dataset: str | None) -> Ledger | None:
    if dataset is None and ledger is None:
        return None
    if dataset is None:
        raise InputError("ledger= needs dataset=, the name under which the spend is recorded.")
    clean_name(dataset)
    return ledger if isinstance(ledger, Ledger) else Ledger(None if ledger is None else Path(ledger))


def _warn_unaccounted() -> None:
    level = measuring_level()
    if level is not None:
        warnings.warn(
            "This measurement spends privacy that no ledger records; name the data with dataset=, such as "
            'dataset="rides", to have every spend added up and limited.',
            UnaccountedSpendWarning,
            stacklevel=level,
        )


def _lines(cost: Cost, unit: Unit) -> list[Spend]:
    """The lines on the ledger; δ is divided like ε, because with a δ only the sum of the lines is a guarantee."""
    budget, purpose = cost.budget, f"measure, {unit.kind} level" + (", Gaussian" if cost.rho else "")
    return [
        Spend(name, share, purpose, cost.delta * share / budget.epsilon)
        for name, share in ledger_lines(budget.shares).items()
    ]


def _pay(ledger: Ledger, dataset: str, lines: list[Spend], cost: Cost, unit: Unit, digest: str | None) -> None:
    """Enter all lines on the ledger in one transaction, and pass its warnings on."""
    receipt = ledger.spend(
        dataset, lines, unit=unit, total_if_new=cost.budget.epsilon, total_delta_if_new=cost.delta, digest=digest
    )
    for warning in receipt.warnings:
        warnings.warn(warning, SameContentWarning, stacklevel=3)
