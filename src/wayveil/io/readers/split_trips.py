"""Split recordings into trips at gaps in time."""

import numpy as np

from wayveil.errors import InputError
from wayveil.io.readers.labels import Labels
from wayveil.io.readers.points import Points

LONGEST_MINUTES = 7 * 24 * 60
"""A week; a larger number is probably a mistake."""


def split_points(points: Points, minutes: float) -> Points:
    """Start a new trip where t[k] - t[k-1] > minutes or the recording changes.

    Where there are no users, the recording becomes the user. The points must be usable (no missing values). Rows are
    sorted by recording and time. A cut depends on the points of one recording alone, so at user level the influence of
    one user does not change.

    Privacy: not private (trusted side only).
    """
    if not 0 < minutes <= LONGEST_MINUTES:
        raise InputError(f"split_minutes= must be above 0 and at most {LONGEST_MINUTES} (a week).")
    points = points.take(np.lexsort((points.t_utc, points.label.code)))
    if not len(points):
        return points
    silent = np.diff(points.t_utc) > 60 * minutes
    begins = np.r_[True, silent | (points.label.code[1:] != points.label.code[:-1])]
    user = points.label if points.user is None else points.user
    return Points(Labels(np.cumsum(begins) - 1), points.lon, points.lat, points.t_utc, user)
