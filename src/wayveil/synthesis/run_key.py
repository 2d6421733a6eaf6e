"""The key of a run: equal for equal inputs, so that only the same run continues an interrupted one.

Privacy: free (public values only).
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from wayveil.core.roads import roads_digest
from wayveil.release import release_to_json
from wayveil.synthesis import shard
from wayveil.synthesis.request import Request


class _UnhashableError(Exception):
    """Raised for a value whose content cannot be hashed, such as a user's function."""


def run_key(request: Request) -> str | None:
    """SHA-256 of everything that determines the output; None if a rule has content that cannot be hashed.

    A drawn seed is not included, because the continuing run does not know it yet.
    """
    digest = hashlib.sha256(b"wayveil run 1")
    versions = [version("wayveil"), np.__version__, shard.SHARD]
    wanted = [release_to_json(request.release), request.count, request.people, request.seed, request.estimator]
    roads = None if request.roads is None else roads_digest(request.roads)
    try:
        _feed(digest, [*versions, *wanted, roads, list(request.rules)])
    except _UnhashableError:
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
        raise _UnhashableError
    digest.update(b";")
