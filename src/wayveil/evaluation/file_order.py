"""Notice a real and a synthetic file that were given in the wrong order, by the origin that synthetic files state."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wayveil.errors import InputError
from wayveil.io.readers.dispatch import says_synthetic


def check_order(real: Any, synthetic: Sequence[Any]) -> str | None:
    """InputError if the files are swapped; a warning if all of them are synthetic. Data in memory is not checked.

    Privacy: free (a file's own note that it is synthetic).
    """
    if not _is_synthetic(real):
        return None
    text = f"'{Path(real).name}' is a synthetic file; give the real data first."
    if not all(map(_is_synthetic, synthetic)):
        raise InputError(text)
    return text


def _is_synthetic(data: Any) -> bool:
    return isinstance(data, str | os.PathLike) and says_synthetic(Path(data))
