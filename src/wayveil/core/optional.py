"""Optional libraries: a missing one is one sentence with the command that installs it."""

import importlib
from typing import Any

from wayveil.errors import InputError


def needed(name: str) -> Any:
    """The module `name` of the extra `wayveil[notebook]`."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"{name} is not installed; `pip install 'wayveil[notebook]'` brings it.") from None
