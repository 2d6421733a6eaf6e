"""GPX 1.1: one track segment a trajectory."""

import json
import re
from decimal import Context, Decimal
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wayveil.atomic import atomic_path
from wayveil.errors import InputError
from wayveil.formats.options import ReadOptions
from wayveil.formats.points import Labels, Points, labels_of
from wayveil.formats.tables import user_column
from wayveil.formats.times import LARGEST_S, to_utc_seconds
from wayveil.inputs import open_regular
from wayveil.progress import Progress, quiet
from wayveil.trajectories import Trajectories

_GPX = "http://www.topografix.com/GPX/1/1"
_OWN = "urn:wayveil:gpx:1"
_CHUNK_BYTES = 1 << 18
_MAX_TEXT = 4_096
_MAX_DEPTH = 64
_FRACTION = re.compile(r"\s*([0-9T:\- ]+)[.,]([0-9]+)\s*(Z|[+-][0-9]{2}:?[0-9]{2})?\s*", re.ASCII)
_FIRST_YEAR_S = -62_135_596_800
_EXACT = Context(prec=_MAX_TEXT)  # the default 28 digits would round sums of seconds and fractions


class _Refused(Exception):
    """The file is XML, but not what a GPX file may hold."""


class _Tracks:
    """What the parser's events build up; a flat list a column, so that no tree is ever held."""

    def __init__(self) -> None:
        self.path: list[str] = []
        self.text: list[str] | None = None
        self.text_size = 0
        self.segment = -1
        self.track_start = 0
        self.user: Any = None
        self.label: list[int] = []
        self.lon: list[float] = []
        self.lat: list[float] = []
        self.time: list[str | None] = []
        self.users: list[Any] = []
        self.metadata: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        self.path.append(local)
        if len(self.path) > _MAX_DEPTH:
            raise _Refused
        if len(self.path) == 1 and local != "gpx":
            raise _Refused
        if local == "trk":
            self.user, self.track_start = None, len(self.label)
        elif local == "trkseg":
            self.segment += 1
        elif local == "trkpt" and self.segment >= 0:
            self.label.append(self.segment)
            self.lon.append(_number(attributes.get("lon")))
            self.lat.append(_number(attributes.get("lat")))
            self.time.append(None)
        elif (local == "time" and self.path[-2] == "trkpt") or space == _OWN:
            self.text, self.text_size = [], 0
            if local == "note":
                self.note_key = attributes.get("key", "")

    def data(self, text: str) -> None:
        if self.text is None:
            return
        self.text_size += len(text)
        if self.text_size > _MAX_TEXT:
            raise _Refused
        self.text.append(text)

    def end(self, name: str) -> None:
        space, _, local = name.rpartition(" ")
        self.path.pop()
        if local == "trk":
            self.users.extend([self.user] * (len(self.label) - self.track_start))
            self.track_start = len(self.label)
        if self.text is None:
            return
        text, self.text = "".join(self.text), None
        if space == _OWN and local == "user":
            try:
                self.user = json.loads(text)
            except (ValueError, RecursionError):
                raise _Refused from None
            if not isinstance(self.user, int | str) or isinstance(self.user, bool):
                raise _Refused
        elif space == _OWN and local == "note":
            self.metadata[self.note_key] = text
        elif local == "time" and self.time:
            self.time[-1] = text

    def doctype(self, *_: object) -> None:
        # Entities are how small XML files become enormous; GPX has no use for a document type.
        raise _Refused


def _number(text: str | None) -> float:
    try:
        return float(text) if text is not None else float("nan")
    except ValueError:
        return float("nan")


def _parse(path: Path) -> _Tracks:
    tracks = _Tracks()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = tracks.start, tracks.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = tracks.data, tracks.doctype
    parser.EntityDeclHandler = tracks.doctype
    try:
        with open_regular(path) as stream:
            if not stream.peek(1):
                raise InputError(f"'{path.name}' is empty.")
            while chunk := stream.read(_CHUNK_BYTES):
                parser.Parse(chunk, False)
            parser.Parse(b"", True)
    except OSError as error:
        raise InputError(f"Cannot read '{path.name}': {error.strerror}.") from None
    except (expat.ExpatError, _Refused, LookupError, ValueError):
        raise InputError(f"'{path.name}' is not a well-formed GPX file (or holds a document type).") from None
    return tracks


def read_points(path: Path, options: ReadOptions) -> Points:
    """The track points of a GPX file; times without a zone are UTC, as GPX says, unless a zone is given."""
    tracks, origin = _parse(path), path.name
    user = None
    if any(value is not None for value in tracks.users):
        if len(tracks.users) != len(tracks.label):  # points outside a track, or a track inside another
            raise InputError(f"'{origin}' has track points outside its tracks, whose user is unknown; repair the file.")
        if not all(isinstance(value, int) or value is None for value in tracks.users):
            tracks.users = [value if value is None else str(value) for value in tracks.users]
        try:
            user = labels_of(pa.chunked_array([pa.array(tracks.users)]), "user", origin)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError):
            raise InputError(f"Some users of '{origin}' cannot be read.") from None
    label = labels_of(pa.chunked_array([pa.array(tracks.label, pa.int64())]), "traj_id", origin)
    t_utc = _seconds(tracks.time, options.timezone or "UTC", origin)
    return Points(label, np.array(tracks.lon, float), np.array(tracks.lat, float), t_utc, user)


def gpx_files(folder: Path) -> list[Path]:
    """The GPX files of a folder, or else of the folders in it."""

    def those(pattern: str) -> list[Path]:
        return sorted(file for file in folder.glob(pattern) if file.suffix.lower() == ".gpx" and file.is_file())

    return those("*") or those("*/*")


def read_folder(folder: Path, options: ReadOptions, progress: Progress = quiet) -> Points:
    """The track points of all GPX files of a folder; where each person has a folder in it, its name is the user.

    Messages name no file inside, for file names may say who drove when.
    """
    files, parts = gpx_files(folder), []
    for i, file in enumerate(files):
        try:
            parts.append(read_points(file, options))
        except InputError:
            raise InputError(
                f"A GPX file in '{folder.name}' is damaged or empty; move the one that `wayveil check FILE` refuses."
            ) from None
        progress("reading", (i + 1) / len(files))
    if not sum(map(len, parts)):
        raise InputError(f"The folder '{folder.name}' holds no track points.")
    sizes = [len(part) for part in parts]
    after = np.cumsum([0, *(int(part.label.code.max()) + 1 if len(part) else 0 for part in parts)])
    label = np.concatenate([part.label.code + first for part, first in zip(parts, after)])
    lon, lat, t_utc = (np.concatenate([getattr(part, name) for part in parts]) for name in ("lon", "lat", "t_utc"))
    user = None
    if files[0].parent != folder:
        try:
            owner = pa.array(np.repeat(np.arange(len(files)), sizes))
            column = pa.array([file.parent.name for file in files]).take(owner)
            user = labels_of(pa.chunked_array([column]), "user", folder.name)
        except UnicodeEncodeError:
            raise InputError(f"Some folder names in '{folder.name}' are not UTF-8.") from None
    elif all(part.user is not None for part in parts):
        names = [np.asarray(part.user.values()).astype(np.str_) for part in parts if part.user is not None]
        user = labels_of(pa.chunked_array([pa.array(np.concatenate(names).tolist())]), "user", folder.name)
    return Points(Labels(label), lon, lat, t_utc, user)


def _seconds(texts: list[str | None], timezone: str, origin: str) -> NDArray[np.float64]:
    fractions: dict[int, Decimal] = {}
    whole: list[str | None] = list(texts)
    for i, text in enumerate(texts):
        if text is not None and ("." in text or "," in text) and (match := _FRACTION.fullmatch(text)):
            whole[i] = match[1].strip() + (match[3] or "")
            fractions[i] = Decimal("0." + match[2])
    seconds = _whole_seconds(whole, timezone, origin)
    for i, fraction in fractions.items():
        if np.isfinite(seconds[i]):
            # Decimal keeps the written digits exact until the one rounding at the end.
            seconds[i] = float(_EXACT.add(Decimal(int(seconds[i])), fraction))
    return seconds


def _whole_seconds(texts: list[str | None], timezone: str, origin: str) -> NDArray[np.float64]:
    try:
        column = pa.chunked_array([pa.array(texts, pa.string())])
        return pc.cast(pc.cast(column, pa.timestamp("s", "UTC")), pa.int64()).cast(pa.float64()).to_numpy().copy()
    except (pa.ArrowException, UnicodeEncodeError):
        pass
    try:
        return to_utc_seconds(column, timezone, origin).copy()
    except (InputError, pa.ArrowException):
        raise InputError(f"Some times of '{origin}' are not ISO 8601 (2024-03-04T07:30:00Z).") from None


def metadata(path: Path) -> dict[str, str]:
    """The notes that `write` left in the file."""
    return _parse(path).metadata


def _stamp(t_utc: float) -> str:
    whole = int(np.floor(t_utc))
    text = str(np.datetime64(whole, "s"))
    if whole == t_utc:
        return text + "Z"
    fraction = _EXACT.subtract(Decimal(repr(float(t_utc))), Decimal(whole))
    return text + "." + f"{fraction:f}".partition(".")[2] + "Z"


def write(trajectories: Trajectories, path: Path, extra_metadata: dict[str, str] | None, *, private: bool) -> None:
    """One track with one segment a trajectory; coordinates and times with every digit that they have."""
    t_utc = trajectories.t_utc
    if not (np.isfinite(t_utc).all() and ((t_utc >= _FIRST_YEAR_S) & (t_utc <= LARGEST_S)).all()):
        raise InputError("Some times are missing or outside the years 1 to 5138; GPX cannot hold them.")
    users = None if trajectories.user is None else user_column(trajectories.user).to_pylist()
    with atomic_path(path, private=private) as part, open(part, "w", encoding="utf-8") as out:
        out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        out.write(f'<gpx version="1.1" creator="wayveil" xmlns="{_GPX}" xmlns:wayveil="{_OWN}">\n')
        if extra_metadata:
            out.write("<metadata><extensions>\n")
            for key, value in extra_metadata.items():
                out.write(f"<wayveil:note key={quoteattr(key)}>{escape(value)}</wayveil:note>\n")
            out.write("</extensions></metadata>\n")
        for i in range(len(trajectories)):
            out.write("<trk>")
            if users is not None:
                label = escape(json.dumps(users[i]))
                out.write(f"<extensions><wayveil:user>{label}</wayveil:user></extensions>")
            out.write("<trkseg>\n")
            for k in range(trajectories.offsets[i], trajectories.offsets[i + 1]):
                lat, lon = _digits(trajectories.lat[k]), _digits(trajectories.lon[k])
                out.write(f'<trkpt lat="{lat}" lon="{lon}"><time>{_stamp(t_utc[k])}</time></trkpt>\n')
            out.write("</trkseg></trk>\n")
        out.write("</gpx>\n")


def _digits(degrees: float) -> str:
    # The shortest text that reads back the same, without an exponent: GPX's numbers are xsd:decimal.
    return np.format_float_positional(degrees, unique=True, trim="-")
