"""One table of results: columns of equal length, and shapes if its rows are places."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.html import card, table_of_text
from wayveil.core.optional import import_optional
from wayveil.traffic.uncertainty import Figures


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns; `geometry` has a shape in degrees for each row, or is None.

    Examples
    --------
    >>> table = Table("hours", {"hour": np.array([7, 8]), "trips": np.array([120.0, 340.0])})
    >>> len(table), list(table.columns)
    (2, ['hour', 'trips'])
    >>> table["trips"].sum()
    460.0
    """

    name: str
    columns: dict[str, NDArray[Any]]
    geometry: NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.columns[column]

    def __repr__(self) -> str:
        return f"Table('{self.name}', {len(self):,} rows: {', '.join(self.columns)})"

    def to_pandas(self) -> Any:
        """A pandas frame without the shapes."""
        return import_optional("pandas").DataFrame(self.columns)

    def to_geopandas(self) -> Any:
        """A GeoDataFrame in degrees (WGS 84); rows without a place have no shape."""
        shapes = np.full(len(self), None, object) if self.geometry is None else self.geometry
        return import_optional("geopandas").GeoDataFrame(self.columns, geometry=shapes, crs="EPSG:4326")

    def _repr_html_(self) -> str:
        shown = min(len(self), 10)
        rows = [[_text(column[k]) for column in self.columns.values()] for k in range(shown)]
        more = [("rows", f"{len(self):,}, the first {shown} shown")]
        return card(f"Table {self.name}", more, table=table_of_text(self.columns, rows))


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def figure_columns(figures: Figures, name: str = "trips") -> dict[str, NDArray[Any]]:
    """The estimate, its standard deviation and the ends of its 90 % interval, rounded to two decimals."""
    prefix = "" if name == "trips" else f"{name}_"
    found = {name: figures.value, f"{prefix}sd": figures.sd, f"{prefix}low_90": figures.low,
             f"{prefix}high_90": figures.high}  # fmt: skip
    return {column: np.round(values, 2) for column, values in found.items()}
