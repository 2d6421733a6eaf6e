"""How a file is read: its format, the roles of its columns, and its time zone."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo

from wayveil.errors import InputError, in_short

OnBadRows = Literal["error", "drop"]
Notes = Mapping[str, str] | None
"""What a file says about itself, by key."""
FORMATS = (
    "csv", "parquet", "geoparquet", "gpx", "geojson", "jsonl", "arrow", "gpkg", "fgb", "shp", "geolife", "tdrive",
    "cabspotting",
)  # fmt: skip
SYNTHETIC = "synthetic trajectories"
"""The note `origin` of every synthetic file starts with this text."""
SIMULATED = "simulated trajectories"
"""The note `origin` of every file of simulated trajectories."""
SPLIT_NOTE = "split_minutes"
"""The note of a file that `convert` split into trips."""
WRITABLE = (
    "csv", "parquet", "geoparquet", "gpx", "geojson", "kepler", "gpkg", "fgb", "trips", "sumo", "matsim",
)  # fmt: skip


def notes_path(path: Path) -> Path:
    """The path of the notes about a CSV file, because CSV has no place for metadata."""
    return path.with_name(path.name + ".meta.json")


def files_written(path: Path, kind: str) -> tuple[Path, ...]:
    """Every file that is written for `path` in the format `kind`."""
    return (path, notes_path(path)) if kind in ("csv", "trips") else (path,)


LONGEST_INTERVAL_S = 86_400
"""Longest time between two points of a line that has only a start time: a day."""
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
    line: str | None = None
    """The column with the whole line of a trajectory, where a table has one row per trajectory."""
    interval_s: float | None = None
    """Seconds between the points of a line that has only a start time."""
    trip_columns: str | Mapping[str, str] | None = None
    """Columns of a trip table by role, or as `start_lon=A,start_lat=B,...`; see `layouts.TRIP_ROLES`."""
    decimal: str = "."
    """The decimal mark of numbers written as text, "." or ","."""
    dayfirst: bool | None = None
    """Whether 03/04/2024 is the 3rd of April (True) or the 4th of March (False); None: it cannot be read."""

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise InputError(f"Unknown format '{self.format}'; choose one of {', '.join(FORMATS)}.")
        if self.on_bad_rows not in ("error", "drop"):
            raise InputError("on_bad_rows must be 'error' or 'drop'.")
        if self.timezone is not None:
            zone_named(self.timezone)
        if not isinstance(self.trip_columns, str | Mapping | None):
            raise InputError("trip_columns= must be a dictionary of role and name, or pairs ROLE=NAME with commas.")
        if self.decimal not in (".", ","):
            raise InputError("decimal= must be '.' or ','.")
        if self.interval_s is not None and not 0 < self.interval_s <= LONGEST_INTERVAL_S:
            raise InputError(f"interval_s= must be above 0 and at most {LONGEST_INTERVAL_S} seconds (a day).")

    @property
    def leaves_out(self) -> bool:
        """Whether bad rows and trajectories are left out; otherwise they are refused."""
        return self.measured_unit is not None or self.on_bad_rows == "drop"


DEFAULT = ReadOptions()


def read_options(given: Mapping[str, Any], function: str, others: Sequence[str] = ()) -> ReadOptions:
    """The options of `read` that `function` was given; InputError for one that is unknown.

    `others` are the other arguments of the function, one of which may have been meant.
    """
    known = [option.name for option in fields(ReadOptions) if option.name != "measured_unit"]
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name[:50], [*known, *others], n=1)
            perhaps = f"; did you mean {close[0]}=?" if close else ""
            raise InputError(f"{function} has no argument {in_short(name)}={perhaps}; see help(wayveil.{function}).")
    return ReadOptions(**given)


@dataclass(frozen=True)
class WriteOptions:
    """How trajectories are written to a file."""

    private: bool
    """Whether the file is readable by its owner alone."""
    format: str | None = None
    """One of `WRITABLE`; None: by the file's extension."""
    notes: Notes = None
    """Kept in the file, or next to it for CSV."""
    times: str | None = None
    """"iso" or "unix"; None: the default of the format."""
    timezone: str | None = None
    """The time zone in which simulators count time; None: that of the note `timezone`, else UTC."""
    mode: str | None = None
    """The mode of travel in MATSim plans; None: "car"."""


@dataclass(frozen=True)
class Columns:
    """Positions of the columns of a table that are read, by role."""

    @property
    def positions(self) -> list[int]:
        """The positions that must be read, in the file's order."""
        return sorted({position for position in vars(self).values() if isinstance(position, int)})

    def moved(self, place_of: Mapping[int, int]) -> Self:
        """The same roles in a table with other positions."""
        places = {role: place_of[at] if isinstance(at, int) else at for role, at in vars(self).items()}
        return replace(self, **places)


@dataclass(frozen=True)
class Roles(Columns):
    """A table with one row per point; `geometry` replaces lon and lat in a GeoParquet file."""

    traj_id: int
    time: int
    lon: int | None
    lat: int | None
    user: int | None
    geometry: int | None = None


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
    found |= {role: find_column(role, names, name, origin) for role, name in named.items()}
    taken = {found[role] for role in named}
    for role in (*needed, "user"):
        if role not in named:
            found[role] = find_column(role, names, None, origin, taken)
    missing = [role for role in needed if found[role] is None]
    if missing:
        what = ", ".join(MEANING[role] for role in missing)
        arguments = ", ".join(f'{role}="NAME"' for role in missing)
        raise InputError(
            f"No column of '{origin}' is recognized as {what}; name it with {arguments}."
            f"{quoted(names)}{_layout_advice(names, missing)}"
        )
    if options.measured_unit == "user" and found["user"] is None:
        raise InputError(NO_USERS)
    used = [position for position in found.values() if position is not None]
    if len(set(used)) < len(used):
        raise InputError(f"One column of '{origin}' was named for two roles; check the column names.")
    return Roles(geometry=geometry, **found)  # type: ignore[arg-type]


def _layout_advice(names: Sequence[str], missing: Sequence[str]) -> str:
    """What to do about a table that does not have one row per point of a trip."""
    advice, ends = "", any(word in name.lower() for name in names for word in _END_POINT_WORDS)
    if ends or {"lon", "lat"} <= set(missing):
        advice += (
            " If the table has one row per trip, name its columns with trip_columns="
            '"start_lon=A,start_lat=B,start_time=C,end_lon=D,end_lat=E,end_time=F".'
        )
    if not ends and "traj_id" in missing:
        advice += (
            " If the file has no trip id but one long recording per vehicle or phone, split it into trips first: "
            "wayveil.convert(split_minutes=10) (docs/how-to/trips.md)."
        )
    return advice


_END_POINT_WORDS = ("start", "pickup", "origin", "dropoff", "destination")


def quoted(names: Sequence[str]) -> str:
    """The column names for a message, or nothing if they may be a row of the data."""
    readable = all(name.strip() and name.isprintable() and not any(map(str.isdigit, name)) for name in names)
    if not readable or len(names) > 20 or sum(map(len, names)) > 400:
        return ""
    return f" Its columns are: {', '.join(names)}."


def find_column(
    role: str, names: Sequence[str], wanted: str | None, origin: str, taken: Collection[int | None] = ()
) -> int | None:
    """The column with the wanted name, or the one whose name is known; columns in `taken` are skipped."""
    if wanted is not None:
        exact = [i for i, name in enumerate(names) if name == wanted]
        hits = exact or [i for i, name in enumerate(names) if name.strip().lower() == wanted.strip().lower()]
        if not hits:
            raise InputError(f"'{origin}' has no column '{wanted}' ({role}=).{quoted(names)}")
        if len(hits) > 1:
            raise InputError(f"'{origin}' has several columns named '{wanted}'; rename all but one.")
        return hits[0]
    if role not in KNOWN_NAMES:
        return None
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
    for ending, kind in ENDINGS:
        if name.endswith(ending):
            return kind
    raise InputError(
        f"'{path.name}' has no known extension (.csv, .parquet, .geo.parquet, .gpx, .geojson, .gpkg, ...); {advice}."
    )


def writing_format(path: Path, wanted: str | None = None, argument: str | None = None) -> str:
    """The format in which a file is written; `argument`, if there is one, chooses it where the extension does not."""
    if path.suffix.lower() in PACKED_ENDINGS:
        raise InputError(
            f"'{path.name}' would be a compressed file, which wayveil does not write; "
            f"write '{path.stem}' and compress it."
        )
    if wanted is None and not any(path.name.lower().endswith(ending) for ending, _ in ENDINGS):
        raise InputError(
            f"'{path.name}' has no extension that wayveil writes; use one of these: {WRITABLE_ENDINGS}"
            + ("." if argument is None else f", or choose the format with {argument}=.")
        )
    kind = format_of(path, wanted)
    named = next((of_ending for ending, of_ending in ENDINGS if path.name.lower().endswith(ending)), kind)
    if kind in WRITABLE and _family(named) != _family(kind):
        raise InputError(
            f"The extension of '{path.name}' means {named}, not {kind}; choose another extension, or leave "
            f"{argument}= out."
        )
    return kind


def _family(kind: str) -> str:
    """Formats that share an extension."""
    return "parquet" if kind == "geoparquet" else READ_AS.get(kind, kind)


PACKED_ENDINGS = (".gz", ".zip", ".bz2", ".xz", ".zst")
ENDINGS = (
    (".geo.parquet", "geoparquet"),
    (".geoparquet", "geoparquet"),
    (".parquet", "parquet"),
    (".pq", "parquet"),
    (".trips.csv", "trips"),
    (".csv", "csv"),
    (".tsv", "csv"),
    (".gpx", "gpx"),
    (".rou.xml", "sumo"),
    (".plans.xml", "matsim"),
    (".kepler.json", "kepler"),
    (".geojson", "geojson"),
    (".geojsonl", "jsonl"),
    (".geojsons", "jsonl"),
    (".jsonl", "jsonl"),
    (".ndjson", "jsonl"),
    (".feather", "arrow"),
    (".arrow", "arrow"),
    (".ipc", "arrow"),
    (".gpkg", "gpkg"),
    (".fgb", "fgb"),
    (".shp", "shp"),
)
"""Endings of file names and their formats; the first that fits."""
WRITABLE_ENDINGS = ", ".join(
    next(ending for ending, kind in ENDINGS if kind == wanted) for wanted in WRITABLE
)
"""The usual ending of each format that is written."""
READ_AS = {"trips": "csv", "kepler": "geojson"}
"""Formats that are written with a content of their own, and read as another format."""
