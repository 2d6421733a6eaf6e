"""Points: the rows of a file, before they are cleaned and grouped."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.tables import MAX_LABEL_BYTES
from wayveil.core.trajectories import Trajectories, user_codes
from wayveil.errors import InputError
from wayveil.io.options import ReadOptions
from wayveil.io.readers.labels import MISSING, TOO_LONG, UNREADABLE, Labels

MALFORMED = "malformed row"
DAMAGED = "damaged file"
UNTIMED = "line without positions, or without a time for each"
EXCHANGED = "latitude and longitude swapped"


@dataclass(frozen=True, eq=False)
class Points:
    """One row per point, in the file's order; NaN where a number is missing.

    Privacy: not private (trusted side only).
    """

    label: Labels
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    t_utc: NDArray[np.float64]
    user: Labels | None
    zoneless: NDArray[np.bool_] | None = None
    """Rows whose time has no time zone, if none was given; None if there are no such rows."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """What could not be read as rows at all: counts of MALFORMED rows, UNTIMED lines and DAMAGED files."""

    def __len__(self) -> int:
        return len(self.lon)

    def take(self, rows: NDArray[np.generic]) -> "Points":
        """Some of the rows (indices or a mask)."""
        user = None if self.user is None else self.user.take(rows)
        zoneless = None if self.zoneless is None else self.zoneless[rows]
        lon, lat, t_utc = self.lon[rows], self.lat[rows], self.t_utc[rows]
        return Points(self.label.take(rows), lon, lat, t_utc, user, zoneless, self.lost)


def bad_rows(points: Points, *, users: bool = True) -> dict[str, NDArray[np.bool_]]:
    """Masks of rows that cannot be used, by kind; kinds that do not occur may be missing.

    A row is judged by its own values alone. `users` says whether a row needs a user.
    """
    lon, lat = points.lon, points.lat
    finite = np.isfinite(lon) & np.isfinite(lat)
    with np.errstate(invalid="ignore"):
        outside = finite & ((np.abs(lat) > 90) | (np.abs(lon) > 180))
        exchanged = outside & (np.abs(lon) <= 90) & (np.abs(lat) <= 180)
    kinds = {"missing coordinate": ~finite, EXCHANGED: exchanged, "coordinate out of range": outside & ~exchanged}
    if points.zoneless is not None:
        kinds["time without a time zone"] = points.zoneless
    kinds["missing or unreadable time"] = ~np.isfinite(points.t_utc)
    kinds |= _label_faults(points.label, "trajectory id")
    return kinds | (_label_faults(points.user, "user") if users else {})


def _label_faults(labels: Labels | None, what: str) -> dict[str, NDArray[np.bool_]]:
    if labels is None or labels.fault is None:
        return {}
    return {kind: labels.fault == fault for fault, kind in label_problems(what).items()}


def label_problems(what: str) -> dict[int, str]:
    """What is wrong with a label, in words."""
    return {
        MISSING: f"missing {what}",
        TOO_LONG: f"{what} longer than {MAX_LABEL_BYTES} bytes",
        UNREADABLE: f"unreadable {what}",
    }


def usable(points: Points, options: ReadOptions, origin: str) -> Points:
    """The points without bad rows; InputError if there are any and the options do not leave them out.

    A measurement leaves bad rows out whatever `on_bad_rows` says: an error would reveal that there was one.
    """
    kinds = bad_rows(points, users=options.measured_unit != "trajectory")
    bad = np.logical_or.reduce(list(kinds.values()))
    if options.leaves_out:
        return points.take(~bad) if bad.any() else points
    # "Some", not how many: messages end up in logs, and an exact count is private.
    if kinds[EXCHANGED].any():
        raise InputError(
            f"Some latitudes of '{origin}' are beyond 90 degrees, so latitude and longitude seem to be swapped; "
            "name the columns with lat= and lon=, or run `wayveil check`."
        )
    if points.zoneless is not None and points.zoneless.any():
        raise InputError(f"Some times of '{origin}' have no time zone; set it with timezone=.")
    found = [name for name, mask in kinds.items() if mask.any()]
    found += [name for name, count in points.lost.items() if count]
    if found:
        what = "files" if found[0] == DAMAGED else "rows"
        raise InputError(
            f"Some {what} of '{origin}' cannot be used ({found[0]}); run `wayveil check`, or leave them out with "
            'on_bad_rows="drop".'
        )
    return points


def points_of(trajectories: Trajectories) -> Points:
    """Turn trajectories back into rows, with labels from 0 on."""
    index = ragged.owners(np.diff(trajectories.offsets))
    user = None
    if trajectories.user is not None:
        known: dict[int | str, int] = {}
        code = user_codes(trajectories.user, known)
        fault = np.where(code < 0, MISSING, 0).astype(np.uint8)
        names = np.empty(max(len(known), 1), object)
        names[:] = list(known) or [0]
        user = Labels(np.maximum(code, 0), names, fault if fault.any() else None).take(index)
    return Points(Labels(index), trajectories.lon, trajectories.lat, trajectories.t_utc, user)
