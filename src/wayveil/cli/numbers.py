"""Numbers on the command line."""

import re


def whole_number(text: str) -> int:
    """A whole number in decimal digits; Python's own `int` would also read '1_0' as 10."""
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", str(text).strip(), re.ASCII):
        raise ValueError(text)
    return int(text)
