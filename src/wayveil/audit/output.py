"""Where the result of an audit may go: nowhere that something else is."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from wayveil.atomic import check_output
from wayveil.errors import InputError

_MOST_BYTES = 10 << 20  # a result has a few kilobytes; whatever is far larger is not read to find out


def check_result(output: Path, inputs: Iterable[str | None]) -> None:
    """InputError unless the result can be written and overwrites nothing but an earlier result.

    An audit takes minutes and its inputs are private data, so this is known before the work and never forced.
    """
    check_output(output, force=True)
    if not output.exists():
        return
    if any(one is not None and os.path.exists(one) and os.path.samefile(one, output) for one in inputs):
        raise InputError(f"'{output.name}' is one of the files to be audited with; choose another -o.")
    if not _is_result(output):
        raise InputError(f"'{output.name}' is there and is not the result of an audit; choose another -o.")


def _is_result(path: Path) -> bool:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return False
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if text.strip() else {"verdict": "", "tests": []}  # nothing is lost with an empty file
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"verdict", "tests"} <= found.keys()
