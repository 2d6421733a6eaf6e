"""Tolerances and safety margins for lengths and positions."""

TOLERANCE_M = 1e-3
"""Metres by which a length or position may exceed a limit: round-off."""

ELLIPSOID_RATIO = 1.006
"""A length on the WGS 84 ellipsoid differs by at most 0.56 % from the length on the sphere that wayveil measures on."""

POSITION_RESERVE_M = 0.15
"""Metres of reserve in rules about streets: another projection of the same degrees moves a point by centimetres."""

ROUND_OFF_M = 1e-6
"""A length may exceed a limit by this much (metres) before it costs another whole second: floating-point round-off."""
