"""GPX 1.1 files: for each trajectory, one track of one segment."""

import json
from decimal import Context, Decimal
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from wayveil.core.tables import user_column
from wayveil.core.trajectories import Trajectories
from wayveil.io.atomic import atomic_path
from wayveil.io.options import Notes
from wayveil.io.writers.stamps import check_times

GPX = "http://www.topografix.com/GPX/1/1"
OWN = "urn:wayveil:gpx:1"
"""The namespace for users and for notes about the file, which GPX has no elements for."""
EXACT = Context(prec=4_096)
"""Decimal arithmetic without rounding; the default precision of 28 digits would round sums."""


def _stamp(t_utc: float) -> str:
    whole = int(np.floor(t_utc))
    text = str(np.datetime64(whole, "s"))
    if whole == t_utc:
        return text + "Z"
    fraction = EXACT.subtract(Decimal(repr(float(t_utc))), Decimal(whole))
    return text + "." + f"{fraction:f}".partition(".")[2] + "Z"


def write(trajectories: Trajectories, path: Path, extra_metadata: Notes, *, private: bool) -> None:
    """Write a track of one segment for each trajectory, with all digits of coordinates and times."""
    t_utc = trajectories.t_utc
    check_times(t_utc)
    users = None if trajectories.user is None else user_column(trajectories.user).to_pylist()
    with atomic_path(path, private=private) as part, open(part, "w", encoding="utf-8") as out:
        out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        out.write(f'<gpx version="1.1" creator="wayveil" xmlns="{GPX}" xmlns:wayveil="{OWN}">\n')
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
