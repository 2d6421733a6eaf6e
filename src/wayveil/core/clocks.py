"""UTC offsets of local clocks at each instant."""

import datetime as dt
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray


def offsets_s(t_utc: NDArray[np.float64], zone: ZoneInfo) -> NDArray[np.float64]:
    """Seconds that the clocks of `zone` are ahead of UTC at each instant.

    Offsets change only at whole quarter hours, so each distinct quarter hour is looked up once.
    """
    if len(t_utc) == 0:
        return np.zeros(0)
    quarter_of = (np.clip(t_utc, -2e9, 4e9) // 900).astype(np.int64)
    low = int(quarter_of.min())
    # A table over the span instead of a sort: there are far more instants than quarter hours.
    quarter_of -= low
    seen = np.zeros(int(quarter_of.max()) + 1, bool)
    seen[quarter_of] = True
    quarter = np.flatnonzero(seen)
    table = np.zeros(len(seen))
    if len(quarter) > 5_000:  # long spans have at most a few transitions per year, so a daily grid finds them
        table[quarter] = _offsets_between(quarter + low, zone)
    else:
        table[quarter] = [_offset_s(int(q + low) * 900, zone) for q in quarter]
    return table[quarter_of]


@lru_cache(maxsize=1 << 16)
def _offset_s(t_utc: int, zone: ZoneInfo) -> float:
    offset = dt.datetime.fromtimestamp(t_utc, zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def _offsets_between(quarter: NDArray[np.int64], zone: ZoneInfo) -> NDArray[np.float64]:
    """Offset at each quarter hour; looked up individually only on days whose two midnights have different offsets."""
    day, inverse = np.unique(quarter // 96, return_inverse=True)
    begin = np.array([_offset_s(int(d) * 86_400, zone) for d in day])
    end = np.array([_offset_s(int(d + 1) * 86_400, zone) for d in day])
    result = begin[inverse]
    for position in np.flatnonzero(begin[inverse] != end[inverse]):
        result[position] = _offset_s(int(quarter[position]) * 900, zone)
    return result
