"""tables: figures for planners, from a release and the synthetic data made from it.

Privacy: free (post-processing); the private data is not read.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wayveil.core.html import card, table_of_text
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.files import read, read_metadata
from wayveil.io.options import SYNTHETIC
from wayveil.io.roads import Roads, roads_of
from wayveil.privacy.budget import decimal_text
from wayveil.progress import Progress, quiet
from wayveil.release import Release, read_release
from wayveil.release.origin import check_notes
from wayveil.synthesis.uncertainty.uncertainty import uncertainty
from wayveil.synthesis.uncertainty.verdict import has_routes
from wayveil.traffic.basis import Basis
from wayveil.traffic.distributions import distribution_tables
from wayveil.traffic.flows import COMPLETE_UP_TO, flow_tables
from wayveil.traffic.parts import parts_of
from wayveil.traffic.streets import street_table
from wayveil.traffic.table import Table
from wayveil.traffic.trips import Trips
from wayveil.traffic.uncertainty import Scale
from wayveil.traffic.write import write_tables
from wayveil.traffic.zones import Zones, zones_of

UNMARKED = (
    "The synthetic data is not marked as made from a release: do not publish these tables unless you made it from this "
    "release."
)


@dataclass(frozen=True, eq=False)
class TrafficTables:
    """Traffic tables, each figure with a standard deviation and a 90 % interval; the result of `wayveil.tables`.

    Examples
    --------
    >>> import wayveil
    >>> found = wayveil.tables("rides.release.json", "synthetic.parquet", zones="zones.geojson")  # doctest: +SKIP
    >>> found.od.to_pandas()  # doctest: +SKIP
    >>> found.write("tables")  # doctest: +SKIP

    Privacy
    -------
    Free (post-processing).
    """

    od: Table
    """Trips from zone to zone, by part of the day."""
    zones: Table
    """Starts and ends in each zone, by part of the day."""
    lengths: Table
    durations: Table
    hours: Table
    streets: Table | None
    """Traffic and mean speeds by link, direction and part of the day; None without a road map."""
    summary: dict[str, Any]
    """What the tables were made from, and notes on how to read them."""
    publishable: bool = True
    """False if the synthetic data is unmarked or the release is not private; then only you can read the files."""

    def __iter__(self) -> Iterator[Table]:
        every = (self.od, self.zones, self.streets, self.lengths, self.durations, self.hours)
        return (table for table in every if table is not None)

    def __repr__(self) -> str:
        return f"TrafficTables({', '.join(f'{table.name}: {len(table):,} rows' for table in self)})"

    def _repr_html_(self) -> str:
        rows = [[table.name, f"{len(table):,}", ", ".join(table.columns)] for table in self]
        facts = [("trips", f"about {self.summary['trips']:,.0f}")]
        facts += [("synthetic trips", f"{self.summary['synthetic_trips']:,}")]
        notice = "" if self.publishable else UNMARKED
        return card("Traffic tables", facts, notice=notice, table=table_of_text(("table", "rows", "columns"), rows))

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write a CSV for each table, one GeoPackage with all of them (with `wayveil[gis]`) and `tables.json`.

        Parameters
        ----------
        folder
            The folder to write to; it is created if it does not exist.
        force
            Whether existing files may be overwritten.
        """
        return write_tables(list(self), self.summary, Path(folder), private=not self.publishable, force=force)


def tables(
    release: Release | str | os.PathLike[str],
    synthetic: Any,
    *,
    zones: Any = None,
    roads: Roads = None,
    parts: Sequence[int] | None = None,
    allow_unmarked: bool = False,
    progress: Progress = quiet,
) -> TrafficTables:
    """Make tables of trips between zones, streets, lengths, durations and hours, each figure with its uncertainty.

    Counts are scaled to the number of trips that the release estimates. Intervals contain the figure of the private
    data with a probability of about 90 %; with a noisy release they are wide.

    Parameters
    ----------
    release
        The result of `wayveil.measure`, or its file.
    synthetic
        The result of `wayveil.synthesize`, or the synthetic file; it must be marked as made from this release.
    zones
        Polygons: a .geojson file, a GeoPackage, FlatGeobuf or Shapefile, or a GeoDataFrame. By default the regions
        between which the release counts trips.
    roads
        A public road map, or its file, for the table of streets; preferably the one that the trips were made with.
    parts
        First hours of the parts of the day; by default 0, 6, 10, 16 and 20.
    allow_unmarked
        Accept synthetic data that lost its mark, for example in another program. Never give private data: the tables
        would be exact. The files are then readable by their owner alone.

    Examples
    --------
    >>> import wayveil
    >>> found = wayveil.tables("rides.release.json", "synthetic.parquet", roads="roads.parquet")  # doctest: +SKIP
    >>> found.streets.to_geopandas().plot()  # doctest: +SKIP

    Privacy
    -------
    Free (post-processing).
    """
    released = release if isinstance(release, Release) else read_release(Path(release))
    progress("reading", 0.0)
    periods, areas, roadmap = parts_of(parts), zones_of(zones, released), roads_of(roads)
    trajectories, notes, what = _synthetic(synthetic)
    marked = _check_mark(notes, what, released, allow_unmarked)
    trips = Trips.of(trajectories, released.scope)
    basis = Basis(trips, Scale.of(released, len(trips)), periods, uncertainty(released, progress=progress))
    progress("counting", 0.0)
    by_zone, by_pair = flow_tables(basis, areas)
    lengths, durations, hours = distribution_tables(basis)
    progress("counting", 1.0)
    streets, matched = (None, None) if roadmap is None else street_table(basis, roadmap, progress)
    summary = _summary(basis, notes, marked, areas, matched)
    return TrafficTables(by_pair, by_zone, lengths, durations, hours, streets, summary, marked and released.private)


def _synthetic(given: Any) -> tuple[Trajectories, dict[str, str], str]:
    """Synthetic trajectories, the notes stored with them, and their name in messages."""
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        return read(path), {} if path.is_dir() else read_metadata(path), f"'{path.name}'"
    inside = getattr(given, "trajectories", None)
    if isinstance(inside, Trajectories):
        return inside, dict(given.notes), "The synthetic data"
    return given if isinstance(given, Trajectories) else read(given), {}, "The synthetic data"


def _check_mark(notes: dict[str, str], what: str, release: Release, allow_unmarked: bool) -> bool:
    """Whether the data is marked as made from this release; InputError if it is not, unless `allow_unmarked`.

    Data of another release is always refused: its counts and its uncertainty would be wrong.
    """
    if notes.get("origin", "").startswith(SYNTHETIC):
        check_notes(notes, what, release)
        return True
    if allow_unmarked:
        return False
    raise InputError(
        f"{what} is not marked as synthetic, and tables of private data would be exact; give the unchanged file that "
        "`wayveil synthesize` wrote, or, if you are sure that it was made from this release, allow_unmarked=True."
    )


def _summary(basis: Basis, notes: dict[str, str], marked: bool, zones: Zones, matched: float | None) -> dict[str, Any]:
    scope, release, scale = basis.trips.scope, basis.uncertainty.release, basis.scale
    days = None if scope.first_day is None else [str(scope.first_day), str(scope.last_day)]
    remarks = [
        "Counts are trips of the whole period, scaled to the estimated number of trips; dates are made up.",
        "sd is the standard error; the true figure lies between low_90 and high_90 with a probability of about 90 %.",
        "Errors of different rows are not independent: do not add variances.",
    ]
    if release.unit == "user":
        remarks.append(
            f"Counts include at most {release.max_per_user} trips of each person; further trips are missing."
        )
    if zones.overlaps:
        remarks.append(
            f"{zones.overlaps} zones overlap: a place in several zones counts for the first of them in the file, so "
            "the later ones have too few trips."
        )
    if len(zones) > COMPLETE_UP_TO:
        remarks.append("Pairs of zones without a synthetic trip are not listed.")
    if matched is not None:
        remarks.append(
            f"{1 - matched:.1%} of the distance could not be matched to a street and is in no street's traffic; "
            "between distant points the shortest path was taken."
        )
        if not has_routes(basis.uncertainty):
            remarks.append(
                "The trips were recorded at their ends only, so the traffic and speeds of streets are guesses."
            )
        if notes.get("roads") == "false":
            remarks.append("The trips were made without a road map, so the traffic of single streets is a guess.")
    remarks += [] if marked else [UNMARKED]
    remarks += [] if release.private else ["Not private: the noise of the release came from a seed."]
    return {
        "scope": scope.name, "timezone": scope.timezone, "days": days, "parts_of_day": list(basis.parts.names),
        "epsilon": decimal_text(release.epsilon), "unit": release.unit, "differentially_private": release.private,
        "marked": marked, "release": notes.get("release"), "trips": round(scale.number, 1),
        "trips_sd": round(scale.number_sd, 1), "synthetic_trips": len(basis.trips), "zones": len(zones),
        "matched_share": None if matched is None else round(matched, 4), "notes": remarks,
    }  # fmt: skip
