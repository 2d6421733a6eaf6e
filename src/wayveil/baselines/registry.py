"""The collection: every method by its name, imported when it is asked for."""

import importlib
from functools import cache

from wayveil.baselines.method import Method
from wayveil.errors import InputError

MODULES = {
    "adatrace": "adatrace",
    "privtrace": "privtrace",
    "n-gram": "n_gram",
    "prefix-tree": "prefix_tree",
    "safepath": "safepath",
    "dpt": "dpt",
    "dp-star": "dp_star",
    "ldptrace": "ldptrace",
    "dpapt": "dpapt",
    "dptraj-pm": "dptraj_pm",
    "coordinate-noise": "coordinate_noise",
    "distance-direction": "coordinate_noise",
    "nearest-candidate": "coordinate_noise",
    "generalised": "generalised",
    "rejection": "rejection",
}
"""The module in `methods` that defines each method; there, dashes in its name are underscores."""
_registered: dict[str, Method] = {}


def names() -> tuple[str, ...]:
    """Names of all methods: those of wayveil, then those that were registered."""
    return (*MODULES, *_registered)


def register(method: Method) -> Method:
    """Add a method of your own, so that `bench`, `audit` and the conformance tests know it by its name.

    Examples
    --------
    >>> from wayveil.baselines import load, register
    >>> register(load("adatrace"))
    Traceback (most recent call last):
    ...
    wayveil.errors.InputError: There is already a method 'adatrace'; choose another name.
    """
    if method.name in MODULES:
        raise InputError(f"There is already a method '{method.name}'; choose another name.")
    if not method.name or not set(method.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        raise InputError("The name of a method must consist of lowercase letters, digits and dashes.")
    _registered[method.name] = method
    return method


def load(name: str) -> Method:
    """The method of this name, or the one at 'module:attribute' of an importable module.

    Examples
    --------
    >>> from wayveil.baselines import load
    >>> load("privtrace").reference
    'Wang, Zhang, Chen, Sun, Backes, Zhang: USENIX Security 2023'
    """
    if name in _registered:
        return _registered[name]
    if name in MODULES:
        return _builtin(name)
    if ":" in name:
        return _imported(name)
    raise InputError(f"Unknown method '{name}'; choose from {', '.join(names())}.")


@cache
def _builtin(name: str) -> Method:
    module = importlib.import_module(f"wayveil.baselines.methods.{MODULES[name]}")
    method: Method = getattr(module, name.replace("-", "_"))
    return method


def _imported(name: str) -> Method:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        raise InputError(f"There is no method at '{name}'; write module:attribute of an importable module.") from None
    if not isinstance(found, Method):
        raise InputError(f"'{name}' is not a wayveil.baselines.Method.")
    return found
