"""Keyed digests of data: one notices the same content under another name, one a change between two passes."""

import hashlib
import hmac
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

_MODULUS = 2**64
"""Digests of trajectories are added modulo this number, so that their order does not matter."""
_KEYS = 6
"""Number of 64-bit keys that follow from the secret: three for columns, one to add, two for mixing steps."""


class ContentDigest:
    """HMAC(secret, Σ_i h(n_i + Σ_j h(point_ij)) mod 2^64), n_i the number of points, h keyed by the secret.

    A sum, so that neither the order of trajectories nor the partitioning matters, and partitions can be merged.
    Coordinates count to 1e-7 degrees and times to milliseconds, so that a change of file format changes nothing; users
    are ignored. A dataset in which a single trajectory differs has another digest.

    h multiplies and shifts whole arrays, because a cryptographic hash of each short trajectory would add half the
    time that measuring takes. It need not resist an adversary: the digest only warns the owner, who holds its secret.
    Points carry their times, so the digest need not contain their order within a trajectory.

    Privacy
    -------
    Not private (trusted side only): it stays in the ledger, next to its secret, and is never part of a release.
    """

    def __init__(self, secret: bytes, total: int = 0) -> None:
        self._secret = secret
        self._keys = _keys(secret)
        self.total = total % _MODULUS

    def add(self, trajectories: Trajectories) -> None:
        """Add these trajectories."""
        if len(trajectories) == 0:
            return
        keys = self._keys
        points = _whole(trajectories.lon, 1e7) * keys[0]
        points += _whole(trajectories.lat, 1e7) * keys[1]
        points += _whole(trajectories.t_utc, 1e3) * keys[2]
        points += keys[3]
        each = ragged.sums(_mixed(points, keys[4]), trajectories.offsets)
        each += np.diff(trajectories.offsets).view(np.uint64)
        self.merge(int(_mixed(each, keys[5]).sum(dtype=np.uint64)))

    def merge(self, total: int) -> None:
        """Add the `total` of another partition."""
        self.total = (self.total + total) % _MODULUS

    def hexdigest(self) -> str:
        """64 hexadecimal digits for `Ledger.spend(..., digest=...)`."""
        return hmac.new(self._secret, b"content" + self.total.to_bytes(8, "big"), hashlib.sha256).hexdigest()


def digest_of(parts: Iterable[Trajectories], secret: bytes) -> str:
    """The digest of everything in `parts`, which are read once.

    Privacy
    -------
    Not private (trusted side only).
    """
    digest = ContentDigest(secret)
    for part in parts:
        digest.add(part)
    return digest.hexdigest()


def _keys(secret: bytes) -> NDArray[np.uint64]:
    """Odd numbers that follow from the secret."""
    stream = b"".join(hmac.digest(secret, b"keys %d" % block, "sha256") for block in range(2))
    return np.frombuffer(stream, "<u8")[:_KEYS].astype(np.uint64) | np.uint64(1)


def _whole(values: NDArray[np.float64], unit: float) -> NDArray[np.uint64]:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.rint(values * unit).astype(np.int64).view(np.uint64)


def _mixed(values: NDArray[np.uint64], key: np.uint64) -> NDArray[np.uint64]:
    """Shift, multiply, shift: so low bits of the result depend on high bits of the value, too."""
    values ^= values >> np.uint64(32)
    values *= key
    values ^= values >> np.uint64(29)
    return values


class PassDigest:
    """A keyed BLAKE2b digest of everything that one pass over the data has read, in the order of reading.

    It covers the users, the grouping of points into trajectories, the coordinates and the times, bit by bit. Each
    column has a hash stream of its own, so the digest does not depend on how the data is cut into batches. Two passes
    of one call share a random key that nobody knows in advance, so no other content can be made to match.

    Privacy
    -------
    Not private (trusted side only): it is compared in memory and never written.
    """

    def __init__(self, key: bytes) -> None:
        self._streams = [hashlib.blake2b(key=key, person=name) for name in (b"users", b"points", b"lon", b"lat", b"t")]

    def add(self, trajectories: Trajectories) -> None:
        """Add the next trajectories of the pass."""
        users, points, *columns = self._streams
        if trajectories.user is not None:
            # repr escapes line feeds and distinguishes the number 7 from the text "7", so different lists give
            # different bytes.
            users.update("".join(f"{name!r}\n" for name in trajectories.user.tolist()).encode("utf-8", "surrogatepass"))
        points.update(np.diff(trajectories.offsets).tobytes())
        for stream, column in zip(columns, (trajectories.lon, trajectories.lat, trajectories.t_utc)):
            stream.update(column.data)

    def digest(self) -> bytes:
        """What the pass has read so far, in 320 bytes."""
        return b"".join(stream.digest() for stream in self._streams)
