"""Attacks and empirical privacy bounds. Trusted side: everything here sees the private data.

`audit(real, synthetic, scope)` judges one file; `epsilon_bound` turns many runs on two neighbouring datasets into a
lower bound on ε; `self_check()` does so for methods that are known to be sound or broken, to show that the audit itself
can tell them apart.
"""

from wayveil.audit.attacks import centroid_error_m, linkage, membership, own_linkage, reconstruct_last
from wayveil.audit.bounds import Bound, Rate, epsilon_bound, rate
from wayveil.audit.judge import AuditReport, audit
from wayveil.audit.selfcheck import SelfCheck, audit_method, self_check

__all__ = [
    "AuditReport",
    "Bound",
    "Rate",
    "SelfCheck",
    "audit",
    "audit_method",
    "centroid_error_m",
    "epsilon_bound",
    "linkage",
    "membership",
    "own_linkage",
    "rate",
    "reconstruct_last",
    "self_check",
]
