"""How a file is read: its format, the roles of its columns, and its time zone."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from wayveil.errors import InputError

OnBadRows = Literal["error", "drop"]
FORMATS = ("csv", "parquet", "geoparquet", "gpx", "geolife", "tdrive", "cabspotting")
SYNTHETIC = "synthetic trajectories"
"""The note `origin` of every synthetic file starts with this text."""
WRITABLE = ("csv", "parquet", "geoparquet", "gpx")


def notes_beside(path: Path) -> Path:
    """The path of the notes about a CSV file, because CSV has no place for metadata."""
    return path.with_name(path.name + ".meta.json")


def files_written(path: Path, kind: str) -> tuple[Path, ...]:
    """Every file that is written for `path` in the format `kind`."""
    return (path, notes_beside(path)) if kind == "csv" else (path,)


MAX_COLUMNS = 10_000
"""A trajectory table needs five; the limit bounds memory for hostile files."""
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
"""Names that are recognized if no column has one of `KNOWN_NAMES`."""
MEANING = {"traj_id": "trajectory", "user": "user", "lon": "longitude", "lat": "latitude", "time": "time"}
NO_USERS = 'unit="user" needs a user column; name it with user=, or use unit="trajectory".'


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read; a column whose name is None is detected automatically.

    `measured_unit` is set by `measure`. Reading then never fails because of single rows, trajectories or users: those
    that cannot be used contribute nothing. Only a wrong structure of the file is refused.
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
    """Positions of the columns in a table; `geometry` replaces lon and lat in a GeoParquet file."""

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
        raise InputError(f"timezone= must be a name such as 'Europe/Paris' or 'UTC', not '{str(name)[:50]}'.") from None


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
        arguments = ", ".join(f'{role}="NAME"' for role in missing)
        raise InputError(
            f"No column of '{origin}' is recognized as {what}; name it with {arguments}."
            f"{_quoted(names)}{_layout_advice(names, missing)}"
        )
    if options.measured_unit == "user" and found["user"] is None:
        raise InputError(NO_USERS)
    used = [position for position in found.values() if position is not None]
    if len(set(used)) < len(used):
        raise InputError(f"One column of '{origin}' was named for two roles; check the column names.")
    return Roles(geometry=geometry, **found)  # type: ignore[arg-type]


def _layout_advice(names: Sequence[str], missing: Sequence[str]) -> str:
    """What to do about a table that does not have one row per point of a trip."""
    if any(word in name.lower() for name in names for word in _END_POINT_WORDS):
        return (
            " If the table has one row per trip, with start and end in different columns, write the start and the end "
            "of each trip as two rows with the same trip id first."
        )
    if "traj_id" in missing:
        return (
            " If the file has no trip id but one long recording per vehicle or phone, split it into trips first: "
            "wayveil convert --split-minutes 10 (docs/how-to/trips.md)."
        )
    return ""


_END_POINT_WORDS = ("start", "pickup", "origin", "dropoff", "destination")


def _quoted(names: Sequence[str]) -> str:
    readable = all(name.strip() and name.isprintable() and not any(map(str.isdigit, name)) for name in names)
    if not readable or len(names) > 20 or sum(map(len, names)) > 400:
        return ""
    return f" Its columns are: {', '.join(names)}."


def _find(
    role: str, names: Sequence[str], wanted: str | None, origin: str, taken: Collection[int | None] = ()
) -> int | None:
    """The column with the wanted name, or the one whose name is known; columns in `taken` are skipped."""
    if wanted is not None:
        exact = [i for i, name in enumerate(names) if name == wanted]
        hits = exact or [i for i, name in enumerate(names) if name.strip().lower() == wanted.strip().lower()]
        if not hits:
            raise InputError(f"'{origin}' has no column '{wanted}' ({role}=).{_quoted(names)}")
        if len(hits) > 1:
            raise InputError(f"'{origin}' has several columns named '{wanted}'; rename all but one.")
        return hits[0]
    likely: list[int] = []
    for known in (KNOWN_NAMES[role], SECOND_NAMES[role]):
        likely = likely or [i for i, name in enumerate(names) if i not in taken and name.strip().lower() in known]
    if len(likely) > 1:
        raise InputError(
            f"'{origin}' has several columns that could be the {MEANING[role]}; choose one with {role}=\"NAME\"."
        )
    return likely[0] if likely else None


def format_of(path: Path, wanted: str | None = None, advice: str = "use one of these") -> str:
    """The format of a file: `wanted`, or by its extension; `advice` completes the error about an unknown extension."""
    if wanted is not None:
        return wanted
    name = path.name.lower()
    for ending, kind in _ENDINGS:
        if name.endswith(ending):
            return kind
    raise InputError(f"'{path.name}' has no known extension (.csv, .parquet, .geo.parquet, .gpx); {advice}.")


_ENDINGS = (
    (".geo.parquet", "geoparquet"),
    (".geoparquet", "geoparquet"),
    (".parquet", "parquet"),
    (".pq", "parquet"),
    (".csv", "csv"),
    (".tsv", "csv"),
    (".gpx", "gpx"),
)
