"""Stack levels of warnings, so that they point to the user's own line, whichever function of wayveil it called."""

import sys


def callers_level() -> int:
    """The stack level of the line that called wayveil, as seen from the caller of this function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "wayveil":
        level, frame = level + 1, frame.f_back
    return level


def measuring_level() -> int | None:
    """The stack level of the line that called `measure` or `Synthesizer.fit`, for a function that `measure` calls.

    None if wayveil itself calls `measure`: its commands, audits and benchmarks report in their own way.
    """
    level, caller = 3, sys._getframe(3)
    if caller.f_globals.get("__name__") == "wayveil.workflow.synthesizer" and caller.f_back is not None:
        level, caller = level + 1, caller.f_back
    return None if str(caller.f_globals.get("__name__")).partition(".")[0] == "wayveil" else level
