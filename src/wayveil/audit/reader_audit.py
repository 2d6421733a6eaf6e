"""Audit of the readers: one more unit in a file may add its own sums to the answers and change nothing else.

Privacy: free (simulated data).
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.source import Source, measured_source
from wayveil.measurement.exact import exact_answers
from wayveil.progress import Progress, quiet
from wayveil.questions.catalogue import finest_questions

REFUSED = 1e6
"""The bound if one of two neighbouring files is refused: the refusal distinguishes them with certainty."""
_FAR = 6_100_000_000_000_000_000
"""An id whose difference from its negative overflows 64 bits."""
_POINTS, _TRAJECTORIES, _USERS = 8, 9, 3
"""Numbers of rows per trajectory, of trajectories and of users: small, so that all layouts are read within seconds."""
_ROW_GROUP = 7
"""Rows per Parquet row group: fewer than a trajectory has, so that each trajectory is cut."""

UnitKind = Literal["trajectory", "user"]
Reader = Callable[[Any, UnitKind], Source]


@dataclass(frozen=True)
class Reading:
    """The largest ratio of a difference to the change that one unit may cause, and the file where it occurred."""

    bound: float
    pairs: int
    """Pairs of neighbouring files that were read."""
    seen: str


@dataclass(frozen=True)
class _Rows:
    """One row per point, in the order of the file."""

    id: list[int]
    user: list[str]
    lat: list[str]
    lon: list[str]
    t: list[int]

    def where(self, keep: list[bool]) -> "_Rows":
        return _Rows(*([value for value, kept in zip(column, keep) if kept] for column in vars(self).values()))

    def owned(self) -> "_Rows":
        """Each trajectory with the user of its first row, as in a folder with one file per trajectory."""
        owner = dict(zip(reversed(self.id), reversed(self.user)))
        return _Rows(self.id, [owner[label] for label in self.id], self.lat, self.lon, self.t)

    def take(self, order: Any) -> "_Rows":
        return _Rows(*([column[k] for k in order] for column in vars(self).values()))


def read_bound(
    data: Trajectories, scope: Scope, unit: UnitKind, *, reader: Reader = measured_source, progress: Progress = quiet
) -> Reading:
    """The largest ‖exact(D) − exact(D without a unit)‖₁ over questions, formats, orders of rows and units.

    It is given as a multiple of what the unit may change: its number of trajectories times the question's resolution.
    More than 1 is a proven violation. Two other violations count as `REFUSED`: a refused file, and a smaller difference
    that is not the exact answer for the unit alone, because then the unit changed how others are read.
    """
    questions = finest_questions(scope)
    worst, pairs = Reading(0.0, 0, ""), 0
    with tempfile.TemporaryDirectory(prefix="wayveil-audit-") as name:
        for layout, given in _orders(data):
            for form, write in _FORMS.items():
                rows = given.owned() if write is _gpx else given
                unit_of_row: list[Any] = list(rows.id) if unit == "trajectory" else list(rows.user)
                progress("reading files", min(pairs / 100, 1.0))
                for one in (unit_of_row[0], unit_of_row[-1], unit_of_row[len(unit_of_row) // 2]):
                    own_ids = {k for k, in_unit in zip(rows.id, unit_of_row) if in_unit == one}
                    bound = _difference(rows, [value == one for value in unit_of_row], write, Path(name), (
                        scope, questions, unit, reader, len(own_ids)))  # fmt: skip
                    pairs += 1
                    if bound > worst.bound:
                        worst = Reading(bound, pairs, f"{form}, rows {layout}")
    return Reading(worst.bound, pairs, worst.seen)


def _difference(
    rows: _Rows, in_unit: list[bool], write: Callable[[_Rows, Path], Any], folder: Path, how: tuple[Any, ...]
) -> float:
    scope, questions, unit, reader, per_unit = how
    try:
        whole, without, alone = (
            exact_answers(reader(write(rows.where(keep), folder), unit), scope, questions)
            for keep in ([True] * len(in_unit), [not one for one in in_unit], in_unit)
        )
    except InputError:
        return REFUSED
    bound = 0.0
    for question, a, b, c in zip(questions, whole, without, alone):
        bound = max(bound, float(np.abs(a - b).sum()) / (per_unit * question.resolution))
        if not np.array_equal(a - b, c):
            bound = max(bound, REFUSED if bound <= 1 else bound)
    return bound


def _orders(data: Trajectories) -> Iterator[tuple[str, _Rows]]:
    """Three or nine trajectories with ids from the whole 64-bit range, in three row orders; the ninth has bad rows."""
    ids = [0, _FAR, -_FAR, 1, 2**63 - 1, -(2**63), 2**53, 2**53 + 1, -1]
    few, many = _rows(data, ids[:3]), _rows(data, ids)
    interleaved = np.tile(np.arange(_POINTS), 3) * 3 + np.repeat(np.arange(3), _POINTS)
    yield "in turn", few.take(np.argsort(interleaved, kind="stable"))
    unsigned = np.argsort(np.array(many.id, np.int64).view(np.uint64), kind="stable")
    yield (
        "in unsigned order, three exports one after the other",
        many.take([k for part in range(3) for k in unsigned if k % 3 == part]),
    )
    yield "shuffled", many.take(np.random.default_rng(0).permutation(len(many.id)))


def _rows(data: Trajectories, ids: list[int]) -> _Rows:
    rows = _Rows([], [], [], [], [])
    for k, label in enumerate(ids):
        first = int(data.offsets[k])
        for point in range(_POINTS):
            at = min(first + point, int(data.offsets[k + 1]) - 1)
            rows.id.append(label)
            # The last trajectory names two users, and one of its coordinates is not a number.
            rows.user.append(f"u{(k + (point == 3 and k == _TRAJECTORIES - 1)) % _USERS}")
            rows.lat.append("north" if k == _TRAJECTORIES - 1 and point == 5 else repr(float(data.lat[at])))
            rows.lon.append(repr(float(data.lon[at])))
            rows.t.append(int(data.t_utc[first]) + 30 * point)
    return rows


def _table(rows: _Rows) -> pa.Table:
    lat = [None if text == "north" else float(text) for text in rows.lat]
    lon = [float(text) for text in rows.lon]
    label = pa.array(rows.id, pa.int64())
    return pa.table({"traj_id": label, "user": pa.array(rows.user, pa.string()), "lat": pa.array(lat, pa.float64()),
                     "lon": lon, "t": pa.array(rows.t, pa.int64())})  # fmt: skip


def _csv(rows: _Rows, folder: Path) -> Path:
    lines = [",".join(map(str, row)) for row in zip(rows.id, rows.user, rows.lat, rows.lon, rows.t)]
    (folder / "x.csv").write_text("\n".join(["traj_id,user,lat,lon,t", *lines]) + "\n")
    return folder / "x.csv"


def _parquet(rows: _Rows, folder: Path) -> Path:
    pq.write_table(_table(rows), folder / "x.parquet", row_group_size=_ROW_GROUP)
    return folder / "x.parquet"


def _parts(rows: _Rows, folder: Path) -> Path:
    table, parts = _table(rows), folder / "parts"
    parts.mkdir(exist_ok=True)
    half = len(table) // 2
    pq.write_table(table[:half], parts / "b.parquet", row_group_size=_ROW_GROUP)
    pq.write_table(table[half:], parts / "a.parquet", row_group_size=_ROW_GROUP)
    return parts


def _gpx(rows: _Rows, folder: Path) -> Path:
    """Each person's files in a folder, except for one person's, which lie at the top."""
    tree = folder / "gpx"
    tree.mkdir(exist_ok=True)
    for file in tree.rglob("*.gpx"):
        file.unlink()
    (tree / "empty.gpx").write_text("<gpx></gpx>")
    for label in sorted(set(rows.id)):
        own = rows.where([other == label for other in rows.id])
        place = tree if own.user[0] == "u1" else tree / own.user[0]
        place.mkdir(exist_ok=True)
        points = "".join(f'<trkpt lat="{lat}" lon="{lon}"><time>{np.datetime64(t, "s")}Z</time></trkpt>'
                         for lat, lon, t in zip(own.lat, own.lon, own.t))  # fmt: skip
        (place / f"{label}.gpx").write_text(f"<gpx><trk><trkseg>{points}</trkseg></trk></gpx>")
    return tree


_FORMS: dict[str, Callable[[_Rows, Path], Any]] = {
    "CSV": _csv,
    "Parquet": _parquet,
    "Parquet parts": _parts,
    "a frame": lambda rows, folder: _table(rows),
    "a GPX folder": _gpx,
}
