"""Which column plays which part, and how rows are read: the choices that every reader shares."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from wayveil.errors import InputError

OnBadRows = Literal["error", "drop"]
FORMATS = ("csv", "parquet", "geoparquet", "gpx", "geolife", "tdrive", "cabspotting")
WRITABLE = ("csv", "parquet", "geoparquet", "gpx")


def notes_beside(path: Path) -> Path:
    """Where the notes about a CSV file are kept, for which CSV itself has no place."""
    return path.with_name(path.name + ".meta.json")


def files_written(path: Path, kind: str) -> tuple[Path, ...]:
    """Every file that writing `path` in the format `kind` makes or replaces."""
    return (path, notes_beside(path)) if kind == "csv" else (path,)


MAX_COLUMNS = 10_000
KNOWN_NAMES = {
    "traj_id": ("traj_id", "tid", "trajectory_id"),
    "user": ("user", "uid", "user_id"),
    "lon": ("lon", "lng", "longitude"),
    "lat": ("lat", "latitude"),
    "time": ("t", "time", "timestamp", "datetime"),
}
SECOND_NAMES = {
    "traj_id": ("trip_id", "tripid", "trip", "ride_id", "journey_id", "track_id", "trajectory", "traj"),
    "user": ("userid",),
    "lon": ("long",),
    "lat": (),
    "time": ("ts", "date_time", "time_utc", "t_utc"),
}
"""Names that are understood where no column has one of `KNOWN_NAMES`."""
OPTION = {
    "traj_id": "--traj-column",
    "user": "--user-column",
    "lon": "--lon-column",
    "lat": "--lat-column",
    "time": "--time-column",
}
MEANING = {"traj_id": "trajectory", "user": "user", "lon": "longitude", "lat": "latitude", "time": "time"}
NO_USERS = (
    "--unit user needs a user column; name it with --user-column (in Python user=), or use --unit trajectory "
    '(in Python unit="trajectory").'
)


@dataclass(frozen=True)
class ReadOptions:
    """How a table is to be understood; a column name that is None is recognised by itself.

    `measured_unit` is set by `measure`. It makes reading total: whatever concerns single rows, trajectories or users
    contributes nothing, and only the structure of the file can be refused.
    """

    format: str | None = None
    traj_id: str | None = None
    user: str | None = None
    lon: str | None = None
    lat: str | None = None
    time: str | None = None
    timezone: str | None = None
    on_bad_rows: OnBadRows = "error"
    measured_unit: Literal["trajectory", "user"] | None = None

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise InputError(f"Unknown format '{self.format}'; choose one of {', '.join(FORMATS)}.")
        if self.on_bad_rows not in ("error", "drop"):
            raise InputError("on_bad_rows must be 'error' or 'drop'.")
        if self.timezone is not None:
            zone_named(self.timezone)

    @property
    def leaves_out(self) -> bool:
        """Whether bad rows and trajectories are left out; otherwise they are refused."""
        return self.measured_unit is not None or self.on_bad_rows == "drop"


@dataclass(frozen=True)
class Roles:
    """Positions of the columns in a table; `geometry` stands in for lon and lat in a GeoParquet file."""

    traj_id: int
    time: int
    lon: int | None
    lat: int | None
    user: int | None
    geometry: int | None = None

    @property
    def positions(self) -> list[int]:
        """The positions that must be read, in the file's order."""
        every = (self.traj_id, self.time, self.lon, self.lat, self.user, self.geometry)
        return sorted({position for position in every if position is not None})


def zone_named(name: str) -> ZoneInfo:
    """The time zone of that name."""
    try:
        return ZoneInfo(name)
    except Exception:
        raise InputError("--timezone must be a name like 'Europe/Paris' or 'UTC' (timezone= in Python).") from None


def resolve_roles(names: Sequence[str], options: ReadOptions, origin: str, geometry: int | None = None) -> Roles:
    """Find the column of each role among `names`.

    Messages quote `names` only if none of them has a digit: in a file without a header line they would be a row of the
    data, which has coordinates.
    """
    if len(names) > MAX_COLUMNS:
        raise InputError(f"'{origin}' has more than {MAX_COLUMNS} columns; keep only the needed ones.")
    needed = ("traj_id", "time") if geometry is not None else ("traj_id", "lon", "lat", "time")
    found: dict[str, int | None] = {"lon": None, "lat": None}
    named = {role: name for role in (*needed, "user") if (name := getattr(options, role)) is not None}
    found |= {role: _find(role, names, name, origin) for role, name in named.items()}
    taken = {found[role] for role in named}
    for role in (*needed, "user"):
        if role not in named:
            found[role] = _find(role, names, None, origin, taken)
    missing = [role for role in needed if found[role] is None]
    if missing:
        what = ", ".join(MEANING[role] for role in missing)
        cure = " ".join(f"{OPTION[role]} NAME" for role in missing)
        python = ", ".join(f'{role}="NAME"' for role in missing)
        raise InputError(
            f"'{origin}' has no column that is known as {what}; name it with {cure} (in Python {python})."
            f"{_quoted(names)}{_RECORDINGS if 'traj_id' in missing else ''}"
        )
    if options.measured_unit == "user" and found["user"] is None:
        raise InputError(NO_USERS)
    used = [position for position in found.values() if position is not None]
    if len(set(used)) < len(used):
        raise InputError(f"One column of '{origin}' was named for two roles; check the --*-column options.")
    return Roles(geometry=geometry, **found)  # type: ignore[arg-type]


_RECORDINGS = (
    " If it has no trip id but one long recording a vehicle or phone, cut it into trips first: "
    "wayveil convert --split-minutes (docs/how-to/trips.md)."
)


def _quoted(names: Sequence[str]) -> str:
    readable = all(name.strip() and name.isprintable() and not any(map(str.isdigit, name)) for name in names)
    if not readable or len(names) > 20 or sum(map(len, names)) > 400:
        return ""
    return f" Its columns are: {', '.join(names)}."


def _find(
    role: str, names: Sequence[str], wanted: str | None, origin: str, taken: Collection[int | None] = ()
) -> int | None:
    """The column that was asked for, or the one whose name is known; what another option named is not looked at."""
    if wanted is not None:
        exact = [i for i, name in enumerate(names) if name == wanted]
        hits = exact or [i for i, name in enumerate(names) if name.strip().lower() == wanted.strip().lower()]
        if not hits:
            raise InputError(f"'{origin}' has no column '{wanted}', which {OPTION[role]} asks for.{_quoted(names)}")
        if len(hits) > 1:
            raise InputError(f"'{origin}' has several columns named '{wanted}'; rename all but one.")
        return hits[0]
    likely: list[int] = []
    for known in (KNOWN_NAMES[role], SECOND_NAMES[role]):
        likely = likely or [i for i, name in enumerate(names) if i not in taken and name.strip().lower() in known]
    if len(likely) > 1:
        raise InputError(
            f"'{origin}' has several columns that could be the {MEANING[role]}; choose one with {OPTION[role]} NAME."
        )
    return likely[0] if likely else None


def format_of(path: Path, wanted: str | None = None, cure: str = "give it a name that ends so") -> str:
    """The format of a file by its name, or as asked; `cure` is what the caller offers for an unknown ending."""
    if wanted is not None:
        return wanted
    name = path.name.lower()
    for ending, kind in _ENDINGS:
        if name.endswith(ending):
            return kind
    raise InputError(f"'{path.name}' has no known ending (.csv, .parquet, .geo.parquet, .gpx); {cure}.")


_ENDINGS = (
    (".geo.parquet", "geoparquet"),
    (".geoparquet", "geoparquet"),
    (".parquet", "parquet"),
    (".pq", "parquet"),
    (".csv", "csv"),
    (".tsv", "csv"),
    (".gpx", "gpx"),
)
