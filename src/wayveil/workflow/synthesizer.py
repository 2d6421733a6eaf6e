"""Synthesizer: data frames in, data frames out, with the usual methods `fit` and `sample`."""

import inspect
import os
from dataclasses import dataclass
from typing import Any, Literal
from zoneinfo import ZoneInfo

from wayveil.core.scope import Scope
from wayveil.core.tables import table_of
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.options import ReadOptions, read_options, resolve_roles
from wayveil.io.roads import Roads, roads_of
from wayveil.io.scope_files import scope_of
from wayveil.measurement import measure
from wayveil.privacy.budget import Number, decimal_text, exact_delta, exact_epsilon
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.unit import Unit, parse_unit
from wayveil.progress import Progress, quiet
from wayveil.release import Release
from wayveil.rules.user_input import Rules, as_rules
from wayveil.synthesis.recipe import synthesize
from wayveil.synthesis.request import Request


class Synthesizer:
    """Make synthetic trajectories from a data frame, with `fit` and `sample` as in other synthesizers.

    `fit` measures the data once; `sample` returns a frame of the same kind with the same column names.

    Parameters
    ----------
    scope
        A `Scope`, a scope file, or the name of a shipped scope.
    epsilon, unit
        The privacy guarantee; neither has a default. `unit` is "trajectory", "user" (with `max_per_user`) or a `Unit`.
    dataset, ledger
        The account that each `fit` is charged to. Without a dataset nothing is recorded, and each `fit` warns.
    roads, rules
        A public road map and traffic rules, or their files, for the synthetic trajectories.
    expected_trips, accept_low_signal
        As for `wayveil.measure`: roughly how many trajectories there are, and whether to measure them even if the noise
        would hide them.
    columns
        Options of `wayveil.read` (`traj_id=…, time=…, timezone=…`) if columns are not recognized automatically.

    Examples
    --------
    >>> import wayveil
    >>> synthesizer = wayveil.Synthesizer(scope="demo-city", epsilon=1, unit="trajectory", dataset="rides")
    >>> synthesizer
    Synthesizer(scope='demo-city', epsilon=1, unit='trajectory', fitted=False)
    >>> synthetic = synthesizer.fit(frame).sample()  # doctest: +SKIP

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
        self.epsilon, self.delta, self.unit = exact_epsilon(epsilon), exact_delta(delta), parse_unit(unit, max_per_user)
        self.max_per_user = self.unit.max_per_user if self.unit.kind == "user" else None
        self.expected_trips, self.accept_low_signal = expected_trips, accept_low_signal
        if dataset is not None and not (isinstance(dataset, str) and dataset.strip()):
            raise InputError("dataset= must be a name for the data, such as 'rides'.")
        if ledger is not None and dataset is None:
            raise InputError("ledger= needs dataset=, the name of the account on the ledger.")
        read_options(columns, "Synthesizer", _arguments())
        self.scope = scope_of(scope)
        self.roads = roads_of(roads)
        self.rules = as_rules(rules, self.scope, self.roads)
        self.dataset, self.ledger, self.progress = dataset, ledger, progress
        self._columns, self._layout = columns, _Layout()

    def get_parameters(self) -> dict[str, Any]:
        """The arguments of this synthesizer by name; `Synthesizer(**parameters)` makes an equal one.

        Privacy: free (it contains nothing about the data).
        """
        return {name: getattr(self, name) for name in _arguments()} | self._columns

    def __repr__(self) -> str:
        parts = [f"scope='{self.scope.name}'", f"epsilon={decimal_text(self.epsilon)}",
                 *([f"delta={decimal_text(self.delta)}"] if self.delta else []), f"unit='{self.unit.kind}'",
                 *([f"max_per_user={self.max_per_user}"] if self.max_per_user is not None else [])]  # fmt: skip
        return f"Synthesizer({', '.join(parts)}, fitted={hasattr(self, 'release')})"

    def fit(self, data: Any, **columns: Any) -> "Synthesizer":
        """Measure the data, once; `columns` may also be given here.

        Privacy
        -------
        Spends ε.
        """
        columns = self._columns | columns
        options = read_options(columns, "Synthesizer", _arguments())
        self.release = measure(
            data,
            self.scope,
            epsilon=self.epsilon,
            unit=self.unit,
            delta=self.delta,
            dataset=self.dataset,
            ledger=self.ledger,
            roads=self.roads,
            expected_trips=self.expected_trips,
            accept_low_signal=self.accept_low_signal,
            progress=self.progress,
            **columns,
        )
        self._layout = _Layout.of(data, options)
        return self

    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        times: Literal["unix", "datetime"] = "unix",
        timezone: str | None = None,
    ) -> Any:
        """A frame of synthetic trajectories, with the type and the column names of the frame given to `fit`.

        Parameters
        ----------
        n
            How many trajectories; without it, the noisy count of the release, never the exact one.
        times
            "unix" for seconds since 1970 in UTC, as in the files that wayveil writes, or "datetime" for timestamps.
            Nothing is copied from the private time column: one record could change its type or time zone.
        timezone
            The time zone of timestamps, such as "Europe/Paris"; UTC by default.

        Privacy
        -------
        Free (post-processing of the release).
        """
        zone = _zone_of(times, timezone)
        if not hasattr(self, "release"):
            raise InputError("Call fit(data) before sample().")
        synthesis = synthesize(Request(self.release, self.roads, self.rules, n, seed=seed), progress=self.progress)
        return self._layout.frame(synthesis.trajectories, zone)


def _arguments() -> list[str]:
    """Names of the constructor's arguments, without the options of `read`."""
    parameters = inspect.signature(Synthesizer).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


@dataclass(frozen=True)
class _Layout:
    """The type of the frame given to `fit`, and the names of its four columns.

    Both were chosen by the owner. The types and time zones of the private columns are not used: a single record can
    change them, and copying them would reveal that.
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
    """The time zone of the requested timestamps; None for Unix seconds."""
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
