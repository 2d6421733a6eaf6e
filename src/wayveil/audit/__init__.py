"""Attacks and empirical privacy bounds. Trusted side: everything here reads the private data.

`audit_synthetic(real, synthetic, scope)`, which is also `wayveil.audit_synthetic`, judges one file; `epsilon_bound`
turns many runs on two neighbouring datasets into a lower bound on ε; `self_check()` does so for methods that are known
to be sound or broken, to show that the audit itself can tell them apart.
"""

from wayveil.audit.attacks import centroid_error_m, linkage, membership, own_linkage, reconstruct_last
from wayveil.audit.bounds import Bound, Rate, epsilon_bound, rate
from wayveil.audit.file_audit import AuditReport, audit, audit_synthetic
from wayveil.audit.selfcheck import SelfCheck, audit_method, self_check

__all__ = [
    "AuditReport",
    "Bound",
    "Rate",
    "SelfCheck",
    "audit",
    "audit_method",
    "audit_synthetic",
    "centroid_error_m",
    "epsilon_bound",
    "linkage",
    "membership",
    "own_linkage",
    "rate",
    "reconstruct_last",
    "self_check",
]
