"""Trips recorded at equal intervals."""

import numpy as np

from wayveil.core.trajectories import Trajectories


def every(seconds, data):
    """The same trips, recorded exactly every `seconds` seconds."""
    columns, offsets = [], [0]
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        t = data.t_utc[first:last]
        seen = np.arange(np.rint(t[0]), t[-1], seconds)
        if len(seen) > 1:
            columns.append((np.interp(seen, t, data.lon[first:last]), np.interp(seen, t, data.lat[first:last]), seen))
            offsets.append(offsets[-1] + len(seen))
    return Trajectories(np.array(offsets), *(np.concatenate(column) for column in zip(*columns, strict=True)))
