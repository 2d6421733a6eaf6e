"""Synthesizer: frames in, frames out, in the shape that users of other synthesizers know."""

import difflib
import os
from dataclasses import dataclass, fields
from typing import Any, Literal
from zoneinfo import ZoneInfo

from wayveil.errors import InputError
from wayveil.formats.options import ReadOptions, resolve_roles
from wayveil.formats.roads import Roads, roads_of
from wayveil.measurement import measure
from wayveil.privacy.budget import Number, decimal_text, exact_delta, exact_epsilon
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.unit import MOST_PER_USER, Unit, parse_unit
from wayveil.progress import Progress, quiet
from wayveil.release import Release
from wayveil.rules.given import Rules, as_rules
from wayveil.scope import Scope, in_short, scope_of
from wayveil.trajectories import Trajectories

_ARGUMENTS = (
    "scope", "epsilon", "unit", "max_per_user", "delta", "dataset", "ledger", "roads", "rules", "expected_trips",
    "accept_low_signal", "progress",
)  # fmt: skip


class Synthesizer:
    """`Synthesizer(scope=…, epsilon=…, unit=…).fit(frame).sample()`.

    Parameters
    ----------
    scope
        A `Scope`, a file, or the name of a shipped one.
    epsilon, unit
        The promise; neither has a default. `unit` is "trajectory", "user" (with `max_per_user`) or a `Unit`.
    dataset, ledger
        The account that pays for each `fit`. Without a dataset nothing is recorded, and each `fit` warns of it.
    roads, rules
        A public road map and traffic rules, or their files, for the synthetic trajectories.
    expected_trips, accept_low_signal
        As for `wayveil.measure`: about how many trajectories there are, and whether to measure them even where the
        noise would hide them.
    columns
        Options of `wayveil.read` (`traj_id=…, time=…, timezone=…`) where columns are not recognised by themselves.

    Privacy
    -------
    Each `fit` spends ε; `sample` is free.
    """

    release: Release

    def __init__(
        self,
        *,
        scope: Scope | str | os.PathLike[str],
        epsilon: Number,
        unit: Unit | str,
        max_per_user: int | None = None,
        delta: Number = 0,
        dataset: str | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        roads: Roads = None,
        rules: Rules = None,
        expected_trips: int | None = None,
        accept_low_signal: bool = False,
        progress: Progress = quiet,
        **columns: Any,
    ) -> None:
        self._promise: dict[str, Any] = {
            "epsilon": exact_epsilon(epsilon),
            "unit": _unit_of(unit, max_per_user),
            "delta": exact_delta(delta),
        }
        self._size: dict[str, Any] = {"expected_trips": expected_trips, "accept_low_signal": accept_low_signal}
        if dataset is not None and not (isinstance(dataset, str) and dataset.strip()):
            raise InputError("dataset= must be a name of yours for the data, such as 'rides'.")
        if ledger is not None and dataset is None:
            raise InputError("ledger= needs dataset=, the name under which the spend is booked.")
        _check_columns(columns)
        self.scope = scope_of(scope)
        self.roads = roads_of(roads)
        self.rules = as_rules(rules, self.scope, self.roads)
        self._account: dict[str, Any] = {"dataset": dataset, "ledger": ledger}
        self._columns, self._progress, self._layout = columns, progress, _Layout()

    def __repr__(self) -> str:
        unit, delta = self._promise["unit"], self._promise["delta"]
        parts = [f"scope='{self.scope.name}'", f"epsilon={decimal_text(self._promise['epsilon'])}",
                 *([f"delta={decimal_text(delta)}"] if delta else []), f"unit='{unit.kind}'",
                 *([f"max_per_user={unit.max_per_user}"] if unit.kind == "user" else [])]  # fmt: skip
        return f"Synthesizer({', '.join(parts)}, fitted={hasattr(self, 'release')})"

    def fit(self, data: Any, **columns: Any) -> "Synthesizer":
        """Measure the data, once; `columns` may also be given here.

        Privacy: spends ε.
        """
        columns = self._columns | columns
        _check_columns(columns)
        self.release = measure(
            data,
            self.scope,
            roads=self.roads,
            progress=self._progress,
            **self._promise,
            **self._account,
            **self._size,
            **columns,
        )
        self._layout = _Layout.of(data, ReadOptions(**columns))
        return self

    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        times: Literal["unix", "datetime"] = "unix",
        timezone: str | None = None,
    ) -> Any:
        """A frame of synthetic trajectories, of the kind and with the column names that `fit` was given.

        Parameters
        ----------
        n
            How many trajectories; without it, the noisy count of the release, never the exact one.
        times
            "unix" for seconds since 1970 in UTC, as in the files that wayveil writes, or "datetime" for timestamps.
            Nothing is copied from the private time column: one record could change its type or time zone.
        timezone
            The time zone of timestamps, such as "Europe/Paris"; UTC where it is not given.

        Privacy
        -------
        Free (post-processing of the release).
        """
        zone = _zone_of(times, timezone)
        if not hasattr(self, "release"):
            raise InputError("Call fit(data) before sample().")
        from wayveil.synthesis.synthesize import synthesize

        made = synthesize(self.release, roads=self.roads, rules=self.rules, n=n, seed=seed, progress=self._progress)
        return self._layout.frame(made.trajectories, zone)


def _unit_of(unit: Unit | str, max_per_user: int | None) -> Unit:
    """The unit, and what is wrong with it in the words of Python instead of the command line's."""
    if isinstance(unit, Unit):
        return unit
    kind = unit.strip().lower() if isinstance(unit, str) else ""
    if kind not in ("trajectory", "user"):
        raise InputError("unit must be 'trajectory', or 'user' with max_per_user=, or a wayveil.Unit.")
    if kind == "trajectory" and max_per_user is not None:
        raise InputError("max_per_user= belongs to unit='user'; leave it out with unit='trajectory'.")
    if kind == "user" and max_per_user is None:
        raise InputError("unit='user' needs max_per_user=, how many trajectories of one user are used at most.")
    try:
        return parse_unit(kind, max_per_user)
    except InputError:
        raise InputError(f"max_per_user= must be a whole number from 1 to {MOST_PER_USER:,}.") from None


def _check_columns(columns: dict[str, Any]) -> None:
    """InputError for an argument that nobody knows, and for options of `read` that it would refuse."""
    known = [option.name for option in fields(ReadOptions)]
    for name in columns:
        if name not in known:
            close = difflib.get_close_matches(name[:50], [*known, *_ARGUMENTS], n=1)
            perhaps = f"; perhaps {close[0]}= is meant" if close else ""
            raise InputError(f"Synthesizer has no argument {in_short(name)}={perhaps}; see help(wayveil.Synthesizer).")
    ReadOptions(**columns)


@dataclass(frozen=True)
class _Layout:
    """The kind of frame that the owner passed and the names of its four columns.

    Both are structure that the owner chose. Types and time zones of the private columns are never looked at: a single
    record can change them, and a frame that copies them publishes that.
    """

    library: str = "pandas"
    names: tuple[str, str, str, str] = ("traj_id", "lat", "lon", "t")

    @classmethod
    def of(cls, data: Any, options: ReadOptions) -> "_Layout":
        library = type(data).__module__.partition(".")[0]
        if library not in ("pandas", "polars", "pyarrow"):
            return cls()
        found = [str(name) for name in (data.schema.names if library == "pyarrow" else data.columns)]
        roles = resolve_roles(found, options, "frame")
        assert roles.lat is not None and roles.lon is not None
        return cls(library, (found[roles.traj_id], found[roles.lat], found[roles.lon], found[roles.time]))

    def frame(self, trajectories: Trajectories, zone: str | None) -> Any:
        """The trajectories as a frame; times in Unix seconds, or as timestamps in a time zone."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from wayveil.formats.tables import table_of

        table = table_of(trajectories).select(["traj_id", "lat", "lon", "t"])
        if zone is not None:
            micro = pc.cast(pc.round(pc.multiply(pc.cast(table["t"], pa.float64()), 1e6)), pa.int64())
            table = table.set_column(3, "t", pc.cast(micro, pa.timestamp("us", zone)))
        table = table.rename_columns(list(self.names))
        if self.library == "pyarrow":
            return table
        if self.library == "polars":
            import polars

            return polars.from_arrow(table)
        try:
            return table.to_pandas()
        except ImportError:
            return table


def _zone_of(times: str, timezone: str | None) -> str | None:
    """The time zone of the timestamps that were asked for; None for Unix seconds."""
    if times not in ("unix", "datetime"):
        raise InputError("times= must be 'unix' or 'datetime'.")
    if timezone is None:
        return "UTC" if times == "datetime" else None
    if times == "unix":
        raise InputError("timezone= needs times='datetime'; Unix seconds have no time zone.")
    try:
        return ZoneInfo(timezone).key
    except (KeyError, ValueError, TypeError, OSError):
        raise InputError("timezone= must be the name of a time zone, such as 'Europe/Paris' or 'UTC'.") from None
