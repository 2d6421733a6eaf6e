"""Attacks and empirical privacy bounds. Trusted side: everything here reads the private data.

`audit_synthetic(real, synthetic, scope)`, which is also `wayveil.audit_synthetic`, judges one file; `epsilon_bound`
turns many runs on two neighbouring datasets into a lower bound on ε; `self_check()` does so for methods that are known
to be sound or broken, to show that the audit itself can distinguish them.
"""

from typing import TYPE_CHECKING

from wayveil.core.lazy import lazy_names

if TYPE_CHECKING:
    from wayveil.audit.attacks import centroid_error_m as centroid_error_m
    from wayveil.audit.attacks import linkage as linkage
    from wayveil.audit.attacks import membership as membership
    from wayveil.audit.attacks import own_linkage as own_linkage
    from wayveil.audit.attacks import reconstruct_last as reconstruct_last
    from wayveil.audit.bounds import Bound as Bound
    from wayveil.audit.bounds import Rate as Rate
    from wayveil.audit.bounds import epsilon_bound as epsilon_bound
    from wayveil.audit.bounds import rate as rate
    from wayveil.audit.file_audit import AuditReport as AuditReport
    from wayveil.audit.file_audit import audit_synthetic as audit_synthetic
    from wayveil.audit.selfcheck import SelfCheck as SelfCheck
    from wayveil.audit.selfcheck import audit_method as audit_method
    from wayveil.audit.selfcheck import self_check as self_check

_HOMES = {
    "AuditReport": "wayveil.audit.file_audit",
    "Bound": "wayveil.audit.bounds",
    "Rate": "wayveil.audit.bounds",
    "SelfCheck": "wayveil.audit.selfcheck",
    "audit_method": "wayveil.audit.selfcheck",
    "audit_synthetic": "wayveil.audit.file_audit",
    "centroid_error_m": "wayveil.audit.attacks",
    "epsilon_bound": "wayveil.audit.bounds",
    "linkage": "wayveil.audit.attacks",
    "membership": "wayveil.audit.attacks",
    "own_linkage": "wayveil.audit.attacks",
    "rate": "wayveil.audit.bounds",
    "reconstruct_last": "wayveil.audit.attacks",
    "self_check": "wayveil.audit.selfcheck",
}

__all__ = sorted(_HOMES)

__getattr__ = lazy_names(__name__, _HOMES)
