"""Turn private GPS trajectories into synthetic ones that can be published.

>>> import wayveil
>>> promise = {"epsilon": 1, "unit": "trajectory", "dataset": "rides"}
>>> release = wayveil.measure("rides.csv", "my-city.toml", **promise)  # doctest: +SKIP
>>> synthetic = wayveil.synthesize(release)  # doctest: +SKIP
>>> wayveil.write(synthetic, "synthetic.parquet")  # doctest: +SKIP
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wayveil import audit as audit
    from wayveil import engine as engine
    from wayveil import errors as errors
    from wayveil import evaluation as evaluation
    from wayveil import rules as rules
    from wayveil import simulate as simulate
    from wayveil.audit.file_audit import AuditReport as AuditReport
    from wayveil.audit.file_audit import audit_synthetic as audit_synthetic
    from wayveil.core.scope import Scope as Scope
    from wayveil.core.trajectories import Trajectories as Trajectories
    from wayveil.errors import UnaccountedSpendWarning as UnaccountedSpendWarning
    from wayveil.evaluation import Evaluation as Evaluation
    from wayveil.evaluation import evaluate as evaluate
    from wayveil.io.check import check as check
    from wayveil.io.check_report import CheckReport as CheckReport
    from wayveil.io.convert import convert as convert
    from wayveil.io.files import read as read
    from wayveil.io.files import write as write
    from wayveil.io.roads import read_roads as read_roads
    from wayveil.io.scope_files import read_scope as read_scope
    from wayveil.io.scope_files import shipped_scopes as shipped_scopes
    from wayveil.measurement import measure as measure
    from wayveil.measurement.signal_check import count_noise as count_noise
    from wayveil.privacy.ledger import Ledger as Ledger
    from wayveil.privacy.unit import Unit as Unit
    from wayveil.progress import show_progress as show_progress
    from wayveil.release import Release as Release
    from wayveil.release import read_release as read_release
    from wayveil.release import write_release as write_release
    from wayveil.release.describe import describe as describe
    from wayveil.report.from_files import write_report as write_report
    from wayveil.synthesis.recipe import Synthesis as Synthesis
    from wayveil.traffic.tables import TrafficTables as TrafficTables
    from wayveil.traffic.tables import tables as tables
    from wayveil.workflow.datasets import open_dataset as open_dataset
    from wayveil.workflow.demo import run_demo as run_demo
    from wayveil.workflow.plan import Plan as Plan
    from wayveil.workflow.plan import plan as plan
    from wayveil.workflow.run_file import run as run
    from wayveil.workflow.synthesize import synthesize as synthesize
    from wayveil.workflow.synthesize_file import synthesize_file as synthesize_file
    from wayveil.workflow.synthesizer import Synthesizer as Synthesizer
    from wayveil.workflow.templates import template as template

_HOMES = {
    "AuditReport": "wayveil.audit.file_audit",
    "CheckReport": "wayveil.io.check_report",
    "Evaluation": "wayveil.evaluation",
    "Ledger": "wayveil.privacy.ledger",
    "Plan": "wayveil.workflow.plan",
    "Release": "wayveil.release",
    "Scope": "wayveil.core.scope",
    "Synthesis": "wayveil.synthesis.recipe",
    "Synthesizer": "wayveil.workflow.synthesizer",
    "TrafficTables": "wayveil.traffic.tables",
    "Trajectories": "wayveil.core.trajectories",
    "UnaccountedSpendWarning": "wayveil.errors",
    "Unit": "wayveil.privacy.unit",
    "audit_synthetic": "wayveil.audit.file_audit",
    "check": "wayveil.io.check",
    "convert": "wayveil.io.convert",
    "count_noise": "wayveil.measurement.signal_check",
    "describe": "wayveil.release.describe",
    "evaluate": "wayveil.evaluation",
    "measure": "wayveil.measurement",
    "open_dataset": "wayveil.workflow.datasets",
    "plan": "wayveil.workflow.plan",
    "read": "wayveil.io.files",
    "read_release": "wayveil.release",
    "read_roads": "wayveil.io.roads",
    "read_scope": "wayveil.io.scope_files",
    "run": "wayveil.workflow.run_file",
    "run_demo": "wayveil.workflow.demo",
    "shipped_scopes": "wayveil.io.scope_files",
    "show_progress": "wayveil.progress",
    "synthesize": "wayveil.workflow.synthesize",
    "synthesize_file": "wayveil.workflow.synthesize_file",
    "tables": "wayveil.traffic.tables",
    "template": "wayveil.workflow.templates",
    "write": "wayveil.io.files",
    "write_release": "wayveil.release",
    "write_report": "wayveil.report.from_files",
}
_MODULES = ("audit", "engine", "errors", "evaluation", "rules", "simulate")

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
