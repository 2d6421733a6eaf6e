"""The simulated local model: optimised unary encoding (Wang, Blocki, Li, Jha: USENIX Security 2017).

A device with item v of a public domain sends one bit for each item: bit v is 1 with probability p = 1/2, every other
bit with probability q = 1/(e^ε + 1); a device without an item sends every bit with probability q. For two items, the
probabilities of two bits differ, and the likelihood ratio is at most p(1 − q) / ((1 − p)q) = (1 − q)/q ≤ e^ε. Between
an item and no item, the probability of one bit differs, and the ratio is at most max(p/q, (1 − q)/(1 − p)) ≤ e^ε. Here
q is a multiple of 2⁻³², rounded up, so that both bounds hold exactly for 32 uniform bits.
"""

import math
import os
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.mechanism import Mechanism, SoundMechanism
from wayveil.baselines.result import LedgerLine

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_WHOLE = 1 << 32
"""Probabilities are multiples of 1/_WHOLE, so that a comparison of integers draws them exactly."""
_BITS_AT_ONCE = 1 << 22
"""Random bits drawn at a time, which bounds the memory."""


def other_bit(epsilon: Fraction) -> Fraction:
    """q: a multiple of 2⁻³², at most 1/2, that is at least 1/(e^ε + 1) despite floating-point errors.

    Privacy: free: it sees no data.
    """
    return Fraction(min(math.floor(_WHOLE / (math.exp(min(float(epsilon), 20.0)) + 1.0)) + 2, _WHOLE // 2), _WHOLE)


def reports(item: Ints, size: int, q: Fraction, words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """(devices, size) bits of each device, from its own item (-1 = none) and its own random words alone.

    Privacy: spends ln((1 − q)/q) for each device, if the words are uniform and independent.
    """
    threshold = np.full((len(item), size), q * _WHOLE, np.uint64)
    has = np.flatnonzero(item >= 0)
    threshold[has, item[has]] = _WHOLE // 2
    return words.reshape(len(item), size) < threshold


@dataclass(frozen=True, eq=False)
class Reporter:
    """The devices and the server: estimates of how many devices have each item."""

    mechanism: Mechanism
    devices: int
    rng: np.random.Generator | None
    """None: the operating system's randomness."""

    @classmethod
    def of(cls, mechanism: Mechanism, devices: int) -> "Reporter":
        secret = isinstance(mechanism, SoundMechanism) and mechanism.private
        return cls(mechanism, devices, None if secret else mechanism.rng)

    def estimate(self, name: str, device: Ints, item: Ints, size: int) -> Floats:
        """Estimated number of devices with each item, from one report of each.

        Privacy: spends the share of `name` for each device.
        """
        return self.estimate_many(name, [(device, item)], size)

    def estimate_many(self, name: str, rounds: list[tuple[Ints, Ints]], size: int) -> Floats:
        """The sum of the estimates from several reports of each device, which divide the share of `name` equally.

        Privacy: spends the share of `name` for each device.
        """
        share = self.mechanism.budget[name]
        q = other_bit(share / len(rounds))
        ones = np.zeros(size)
        for device, item in rounds:
            held = np.full(self.devices, -1)
            held[device] = item
            step = max(_BITS_AT_ONCE // size, 1)
            for begin in range(0, self.devices, step):
                part = held[begin : begin + step]
                ones += reports(part, size, q, self._words(len(part) * size)).sum(0)
        rate = float(q)
        # The standard deviation of an estimate, for one device that does not have the item.
        scale = math.sqrt(rate * (1.0 - rate)) / max(0.5 - rate, 1e-9)
        self.mechanism.lines.append(LedgerLine(name, share, share, scale))
        estimates: Floats = (ones - len(rounds) * self.devices * rate) / max(0.5 - rate, 1e-9)
        return estimates

    def _words(self, count: int) -> NDArray[np.uint32]:
        if self.rng is None:
            return np.frombuffer(os.urandom(4 * count), np.uint32)
        return self.rng.integers(0, _WHOLE, count, np.uint32)
