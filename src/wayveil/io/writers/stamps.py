"""Times as ISO 8601 text in UTC."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.tables import LARGEST_S
from wayveil.errors import InputError

FIRST_YEAR_S = -62_135_596_800
"""Unix time of the start of the year 1, the first that ISO 8601 writes with four digits and Python reads."""


def check_times(t_utc: NDArray[np.float64]) -> None:
    """InputError unless every time can be written as a date."""
    if not (np.isfinite(t_utc).all() and ((t_utc >= FIRST_YEAR_S) & (t_utc <= LARGEST_S)).all()):
        raise InputError("Some times are missing or outside the years 1 to 5138; this format cannot represent them.")


def iso_times(t_utc: NDArray[np.float64]) -> list[str]:
    """Times such as 2024-03-04T07:30:00Z, with microseconds where a time is not a whole second."""
    check_times(t_utc)
    micro = np.round(t_utc * 1e6).astype(np.int64)
    whole = micro % 1_000_000 == 0
    texts = np.datetime_as_string((micro // 1_000_000).astype("datetime64[s]"))
    fine = np.datetime_as_string(micro.astype("datetime64[us]"))
    return [f"{text}Z" for text in np.where(whole, texts, fine).tolist()]
