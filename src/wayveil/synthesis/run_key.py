"""The key of a run: equal for equal inputs, so that only the same run continues an interrupted one.

Privacy: free (public values only).
"""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from wayveil.core.roads import RoadMap, roads_digest
from wayveil.release import Release, release_to_json
from wayveil.rules.rule import Rule
from wayveil.synthesis import shard


class _UnknownError(Exception):
    """A value whose content cannot be hashed, such as a user's function."""


def run_key(
    release: Release,
    roads: RoadMap | None,
    rules: Sequence[Rule],
    count: int,
    seed: int | None,
    estimator: str,
    people: int | None = None,
) -> str | None:
    """SHA-256 over all inputs of the output; None if a rule has content that cannot be hashed.

    A drawn seed is not included, because the continuing run does not know it yet.
    """
    digest = hashlib.sha256(b"wayveil run 1")
    frame = [version("wayveil"), np.__version__, release_to_json(release), count, seed, estimator, shard.SHARD, people]
    try:
        _feed(digest, [*frame, None if roads is None else roads_digest(roads), list(rules)])
    except _UnknownError:
        return None
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Hash type, length and content, so that different sequences of values have different digests."""
    digest.update(type(value).__name__.encode() + b":")
    if value is None or isinstance(value, bool | int | float | np.generic):
        digest.update(repr(value).encode())
    elif isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        digest.update(len(data).to_bytes(8, "little") + data)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(repr((value.dtype.str, value.shape)).encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, list | tuple):
        digest.update(len(value).to_bytes(8, "little"))
        for one in value:
            _feed(digest, one)
    elif isinstance(value, Mapping):
        _feed(digest, sorted(value.items(), key=lambda item: repr(item[0])))
    elif dataclasses.is_dataclass(value):
        _feed(digest, [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)])
    elif hasattr(value, "model_dump_json"):
        _feed(digest, value.model_dump_json())
    elif hasattr(value, "wkb"):
        _feed(digest, value.wkb)
    else:
        raise _UnknownError
    digest.update(b";")
