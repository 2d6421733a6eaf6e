"""What every experiment writes: table.json, table.csv, and plots as PNG and SVG."""

import csv
import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wayveil.dpe import NOT_PRIVATE
from wayveil.errors import InputError
from wayveil.io.atomic import atomic_path, write_text

Row = Mapping[str, Any]


def ready_folder(folder: Path) -> Path:
    """Create the folder, and check that it can be written, before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise InputError(f"Cannot write to '{folder.name}': {error.strerror}; choose another output.") from None


def write_table(folder: Path, experiment: str, settings: Row, rows: Sequence[Row], notes: Sequence[str]) -> None:
    """table.json (settings, notes, rows) and table.csv (rows), both stamped as not private.

    Privacy: not private (trusted side only).
    """
    document = {
        "experiment": experiment,
        "private": False,
        "notice": NOT_PRIVATE,
        "settings": dict(settings),
        "notes": list(notes),
        "rows": [dict(row) for row in rows],
    }
    write_text(folder / "table.json", json.dumps(document, indent=1, allow_nan=False) + "\n", private=True)
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(folder / "table.csv", text.getvalue(), private=True)


def save_figure(figure: Any, folder: Path, name: str) -> None:
    """The figure as NAME.png and NAME.svg."""
    for kind in ("png", "svg"):
        with atomic_path(folder / f"{name}.{kind}", private=True) as part:
            figure.savefig(part, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else None)


def new_figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure without a window, and its axes as a grid."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.08))
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)
