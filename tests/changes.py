"""Estimates with some of them replaced, for tests that plant what the release is said to say."""

from dataclasses import replace


def changed(estimates, **wanted):
    """The estimates with other shares (or, of a field, another density) of the quantities that are named."""
    found = {**estimates.found}
    starts, ends = (wanted.pop(name, getattr(estimates, name)) for name in ("starts", "ends"))
    found["start_minus_end"] = (starts, ends)
    for quantity, value in wanted.items():
        known = estimates[quantity]
        found[quantity] = replace(known, shares=value) if hasattr(known, "shares") else value
    return replace(estimates, found=found)
