"""The JSON files of `audit` and `evaluate`: they replace only an earlier result."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wayveil.errors import InputError
from wayveil.io.atomic import write_text
from wayveil.io.inputs import read_text
from wayveil.io.outputs import check_output, check_outputs

AUDIT = frozenset({"verdict", "tests"})
EVALUATION = frozenset({"files", "warnings"})
"""The keys that identify an earlier result of each kind."""
_MOST_BYTES = 10 << 20  # a result has a few kilobytes; a much larger file is not read


def check_result(output: Path, inputs: Iterable[str | None], keys: frozenset[str]) -> None:
    """InputError unless the result can be written and overwrites nothing but an earlier result of the same kind.

    The check comes before the work, which takes minutes, and cannot be overridden, because the inputs are private data.
    """
    check_outputs([output], inputs=inputs)
    check_output(output, force=True)
    if output.exists() and not _is_result(output, keys):
        raise InputError(f"'{output.name}' already exists and is not an earlier result; choose another output.")


def write_result(output: Path, result: Mapping[str, Any]) -> None:
    """Write a result, readable by its owner alone.

    Privacy: not private (trusted side only).
    """
    write_text(output, json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False) + "\n", private=True)


def _is_result(path: Path, keys: frozenset[str]) -> bool:
    try:
        text = read_text(path, _MOST_BYTES)
        found = json.loads(text) if text.strip() else dict.fromkeys(keys)  # nothing is lost with an empty file
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and keys <= found.keys()
