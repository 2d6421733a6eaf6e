"""Where a warning points: at the line of the user, through whichever door they came."""

import sys


def callers_level() -> int:
    """The stack level, for whoever calls this, of the line that called wayveil."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "wayveil":
        level, frame = level + 1, frame.f_back
    return level
