"""Private GPS trajectories in, synthetic ones that anybody may have out.

>>> import wayveil
>>> promise = {"epsilon": 1, "unit": "trajectory", "dataset": "rides"}
>>> release = wayveil.measure("rides.csv", "my-city.toml", **promise)  # doctest: +SKIP
>>> synthetic = wayveil.synthesize(release)  # doctest: +SKIP
>>> wayveil.write(synthetic, "synthetic.parquet")  # doctest: +SKIP
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wayveil import errors as errors
    from wayveil import rules as rules
    from wayveil.errors import UnaccountedSpendWarning as UnaccountedSpendWarning
    from wayveil.evaluation import evaluate as evaluate
    from wayveil.formats import read as read
    from wayveil.formats import write as write
    from wayveil.formats.roads import read_roads as read_roads
    from wayveil.making import synthesize as synthesize
    from wayveil.measurement import measure as measure
    from wayveil.privacy.ledger import Ledger as Ledger
    from wayveil.privacy.unit import Unit as Unit
    from wayveil.progress import show_progress as show_progress
    from wayveil.release import Release as Release
    from wayveil.release import read_release as read_release
    from wayveil.release import write_release as write_release
    from wayveil.release.describe import describe as describe
    from wayveil.scope import Scope as Scope
    from wayveil.scope import read_scope as read_scope
    from wayveil.signal_check import count_noise as count_noise
    from wayveil.synthesizer import Synthesizer as Synthesizer
    from wayveil.trajectories import Trajectories as Trajectories

_HOMES = {
    "Ledger": "wayveil.privacy.ledger",
    "Release": "wayveil.release",
    "Scope": "wayveil.scope",
    "Synthesizer": "wayveil.synthesizer",
    "Trajectories": "wayveil.trajectories",
    "UnaccountedSpendWarning": "wayveil.errors",
    "Unit": "wayveil.privacy.unit",
    "count_noise": "wayveil.signal_check",
    "describe": "wayveil.release.describe",
    "evaluate": "wayveil.evaluation",
    "measure": "wayveil.measurement",
    "read": "wayveil.formats",
    "read_release": "wayveil.release",
    "read_roads": "wayveil.formats.roads",
    "read_scope": "wayveil.scope",
    "show_progress": "wayveil.progress",
    "synthesize": "wayveil.making",
    "write": "wayveil.formats",
    "write_release": "wayveil.release",
}
_MODULES = ("errors", "rules")

__all__ = sorted([*_HOMES, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    # Each name is fetched when it is first used, so that `import wayveil` and `wayveil --help` stay fast.
    if name in _HOMES:
        value: Any = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"wayveil.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("wayveil")
    else:
        raise AttributeError(f"module 'wayveil' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
