"""GPX 1.1: one trajectory per track segment."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.errors import InputError
from wayveil.io.inputs import open_regular
from wayveil.io.options import ReadOptions
from wayveil.io.readers.labels import Labels, labels_of_values
from wayveil.io.readers.list_files import files_under
from wayveil.io.readers.points import DAMAGED, Points
from wayveil.io.readers.times import to_utc_seconds
from wayveil.io.writers.gpx import EXACT, OWN
from wayveil.progress import Progress, quiet

_CHUNK_BYTES = 1 << 18
"""Bytes parsed at a time."""
_MAX_TEXT = 4_096
"""Longest text of an element, against files made to fill memory."""
_MAX_DEPTH = 64
"""Deepest nesting of elements, for the same reason."""
_FRACTION = re.compile(r"\s*([0-9T:\- ]+)[.,]([0-9]+)\s*(Z|[+-][0-9]{2}:?[0-9]{2})?\s*", re.ASCII)


class _RefusedError(Exception):
    """The file is XML, but has content that a GPX file must not have."""


class _DamagedError(InputError):
    """The file is empty, or not a GPX file."""


class _Tracks:
    """The columns that the parser's events fill, one flat list each, so that no XML tree is held in memory."""

    def __init__(self) -> None:
        self.path: list[str] = []
        self.depth = 0
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
        self.depth += 1
        if self.depth > _MAX_DEPTH:  # GPX elements are not nested this deeply
            return
        self.path.append(local)
        if self.depth == 1 and local != "gpx":
            raise _RefusedError
        if local == "trk":
            self.user, self.track_start = None, len(self.label)
        elif local == "trkseg":
            self.segment += 1
        elif local == "trkpt" and self.segment >= 0:
            self.label.append(self.segment)
            self.lon.append(_number(attributes.get("lon")))
            self.lat.append(_number(attributes.get("lat")))
            self.time.append(None)
            self.users.append(None)
        elif (local == "time" and self.path[-2] == "trkpt") or space == OWN:
            self.text, self.text_size = [], 0
            if local == "note":
                self.note_key = attributes.get("key", "")

    def data(self, text: str) -> None:
        if self.text is None:
            return
        self.text_size += len(text)
        if self.text_size <= _MAX_TEXT:
            self.text.append(text)

    def end(self, name: str) -> None:
        space, _, local = name.rpartition(" ")
        self.depth -= 1
        if self.depth >= _MAX_DEPTH:
            return
        self.path.pop()
        if local == "trk":
            self.users[self.track_start :] = [self.user] * (len(self.label) - self.track_start)
            self.track_start = len(self.label)
        if self.text is None:
            return
        text, self.text = "".join(self.text), None
        if self.text_size > _MAX_TEXT:
            return
        if space == OWN and local == "user":
            self.user = _user(text)
        elif space == OWN and local == "note":
            self.metadata[self.note_key] = text
        elif local == "time" and self.time:
            self.time[-1] = text

    def doctype(self, *_: object) -> None:
        # Entities can expand a small XML file to an enormous one; GPX needs no document type.
        raise _RefusedError


def _user(text: str) -> Any:
    """The user of a track; an object that no label equals, if the text is not a label."""
    try:
        user = json.loads(text)
    except (ValueError, RecursionError):
        return object()
    return user if isinstance(user, int | str) else object()


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
                raise _DamagedError(f"'{path.name}' is empty.")
            while chunk := stream.read(_CHUNK_BYTES):
                parser.Parse(chunk, False)
            parser.Parse(b"", True)
    except OSError as error:
        raise InputError(f"Cannot read '{path.name}': {error.strerror}.") from None
    except (expat.ExpatError, _RefusedError, LookupError, ValueError):
        raise _DamagedError(f"'{path.name}' is not a well-formed GPX file (or declares a document type).") from None
    return tracks


def read_points(path: Path, options: ReadOptions) -> Points:
    """The track points of a GPX file; times without a zone are UTC, as GPX specifies, unless a zone is given."""
    return _points([_parse(path)], [None], options)


def read_folder(folder: Path, options: ReadOptions, progress: Progress = quiet) -> Points:
    """The track points of all GPX files of a folder, at any depth; the name of a subfolder is the user.

    A file that is not GPX contributes nothing.
    """
    files, tracks, people, damaged = files_under(folder, ".gpx"), [], [], 0
    for i, file in enumerate(files):
        try:
            tracks.append(_parse(file))
            within = file.relative_to(folder).parts
            people.append(within[0] if len(within) > 1 else None)
        except _DamagedError:
            damaged += 1
        except InputError:  # its message would name the file, and file names may reveal who drove when
            raise InputError(f"A GPX file in '{folder.name}' cannot be opened; check its permissions.") from None
        progress("reading", (i + 1) / len(files))
    return replace(_points(tracks, people, options), lost={DAMAGED: damaged})


def _points(files: list[_Tracks], people: Sequence[str | None], options: ReadOptions) -> Points:
    """The points of all files; the user is the folder's name, or else the user that the file names, if any."""
    first_labels = np.cumsum([0, *(tracks.segment + 1 for tracks in files)])
    label = [np.array(tracks.label, np.int64) + first for tracks, first in zip(files, first_labels)]
    lon, lat = (np.array([x for tracks in files for x in getattr(tracks, name)], float) for name in ("lon", "lat"))
    users = [user if person is None else person for tracks, person in zip(files, people) for user in tracks.users]
    # Whether there are users depends on the tracks, so a measurement of users always gets a user column.
    named = options.measured_unit == "user" or any(user is not None for user in users)
    t_utc = _seconds([text for tracks in files for text in tracks.time], options.timezone or "UTC")
    owner = labels_of_values(users) if named else None
    return Points(Labels(np.concatenate([np.zeros(0, np.int64), *label])), lon, lat, t_utc, owner)


def _seconds(texts: list[str | None], timezone: str) -> NDArray[np.float64]:
    fractions: dict[int, Decimal] = {}
    whole: list[str | None] = list(texts)
    for i, text in enumerate(texts):
        if text is not None and ("." in text or "," in text) and (match := _FRACTION.fullmatch(text)):
            whole[i] = match[1].strip() + (match[3] or "")
            fractions[i] = Decimal("0." + match[2])
    seconds = to_utc_seconds(pa.chunked_array([pa.array(whole, pa.string())]), timezone, "").copy()
    for i, fraction in fractions.items():
        if np.isfinite(seconds[i]):
            # Decimal keeps the written digits exact until the one rounding at the end.
            seconds[i] = float(EXACT.add(Decimal(int(seconds[i])), fraction))
    return seconds


def metadata(path: Path) -> dict[str, str]:
    """The notes that `write` left in the file."""
    return _parse(path).metadata
