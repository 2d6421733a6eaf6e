"""Whole numbers that users give as arguments."""

import operator

from wayveil.errors import InputError


def as_whole_number(value: object, name: str, least: int, most: int | None = None) -> int:
    """An integer of Python, numpy or another library as a Python integer.

    InputError, which names the argument and not the value, for anything else (also True and False), and for a number
    below `least` or above `most`.

    Examples
    --------
    >>> as_whole_number(5, "n=", 1)
    5
    """
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise InputError(f"{name} must be a whole number {limits}.")
    return number
