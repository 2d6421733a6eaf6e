"""Optional libraries for data frames; if one is missing, one sentence says how to install it."""

import importlib
from typing import Any, Literal

from wayveil.errors import InputError


def needed(library: Literal["pandas", "geopandas"]) -> Any:
    """A library of the extra `wayveil[notebook]`."""
    try:
        return importlib.import_module(library)
    except ImportError:
        raise InputError(f"{library} is not installed; `pip install 'wayveil[notebook]'` brings it.") from None
