"""A keyed digest of what a dataset contains, to notice the same content under another name."""

import hashlib
import hmac
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from wayveil.trajectories import Trajectories

_MODULUS = 2**256


class ContentDigest:
    """HMAC(secret, Σ_i HMAC(secret, trajectory_i) mod 2^256).

    A sum, so that neither the order of trajectories nor the partitioning matters, and partitions can be merged.
    Coordinates count to 1e-7 degrees and times to milliseconds, so that a change of file format changes nothing;
    users do not count. A dataset of which a single trajectory differs has another digest.

    Privacy
    -------
    Not private (trusted side only): it stays in the ledger, next to its secret, and is never part of a release.
    """

    def __init__(self, secret: bytes, total: int = 0) -> None:
        self._secret = secret
        self.total = total % _MODULUS

    def add(self, trajectories: Trajectories) -> None:
        """Count these trajectories in."""
        offsets = trajectories.offsets
        rows = np.empty((len(trajectories.lon), 3), "<i8")
        rows[:, 0] = np.rint(trajectories.lon * 1e7)
        rows[:, 1] = np.rint(trajectories.lat * 1e7)
        rows[:, 2] = np.rint(trajectories.t_utc * 1e3)
        view, stride = memoryview(rows.tobytes()), 3 * 8
        total, secret = self.total, self._secret
        starts = (offsets * stride).tolist()
        for start, stop in pairwise(starts):
            total += int.from_bytes(hmac.digest(secret, view[start:stop], "sha256"), "big")
        self.total = total % _MODULUS

    def merge(self, total: int) -> None:
        """Count in what another partition has counted (its `total`)."""
        self.total = (self.total + total) % _MODULUS

    def hexdigest(self) -> str:
        """64 hexadecimal digits for `Ledger.spend(..., digest=...)`."""
        return hmac.new(self._secret, b"content" + self.total.to_bytes(32, "big"), hashlib.sha256).hexdigest()


def digest_of(parts: Iterable[Trajectories], secret: bytes) -> str:
    """The digest of everything in `parts`, gone through once.

    Privacy
    -------
    Not private (trusted side only).
    """
    digest = ContentDigest(secret)
    for part in parts:
        digest.add(part)
    return digest.hexdigest()
