"""Noise from opendp's exact integer samplers; this is the only file that imports opendp."""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

CHUNK = 16_384
"""Values drawn per call of opendp."""
MOST_THREADS = 4
"""Threads that draw noise."""


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy sums and their privacy cost, as computed by the mechanism."""

    values: NDArray[np.int64]
    scale: float
    """b of the Laplace, or sigma of the Gaussian, in units of the sums."""
    epsilon_spent: Fraction
    """The mechanism's own privacy map at the sensitivity (Laplace); 0 for a Gaussian, whose cost is in rho."""
    private: bool
    rho_spent: Fraction = Fraction(0)
    """The map's zero-concentrated cost (Gaussian); 0 for a Laplace, whose cost is in epsilon."""


class NoiseSource(Protocol):
    """Where noise comes from. Only a source with `private` True makes anything private."""

    @property
    def private(self) -> bool: ...

    def laplace(self, sums: NDArray[np.int64], sensitivity: int, epsilon: Fraction) -> Noisy: ...

    def gaussian(self, sums: NDArray[np.int64], l2_sensitivity: float, rho: Fraction) -> Noisy: ...


class OpenDPNoise:
    """The operating system's randomness through opendp; it has no seed on purpose."""

    private: ClassVar[bool] = True

    def laplace(self, sums: NDArray[np.int64], sensitivity: int, epsilon: Fraction) -> Noisy:
        """sums + Lap_Z(b), b the smallest scale found with map(sensitivity) <= epsilon.

        Privacy
        -------
        Spends `epsilon_spent` <= epsilon for an L1 sensitivity of `sensitivity`; enter epsilon in the ledger first.
        """
        scale, cost, mechanism = _laplace(sensitivity, epsilon)
        return Noisy(_draw(mechanism, sums), scale, cost, True)

    def gaussian(self, sums: NDArray[np.int64], l2_sensitivity: float, rho: Fraction) -> Noisy:
        """sums + N_Z(sigma²), sigma the smallest scale found with map(l2_sensitivity) <= rho.

        Privacy
        -------
        Spends `rho_spent` <= rho of zero-concentrated privacy; enter its epsilon and delta in the ledger first.
        """
        scale, cost, mechanism = _gaussian(l2_sensitivity, rho)
        return Noisy(_draw(mechanism, sums), scale, Fraction(0), True, cost)


class SeededNoise:
    """The same distributions from a seed, for tests. Anyone who knows the seed can remove the noise.

    Privacy
    -------
    Not private (trusted side only): what is made with it is stamped `private: false`.
    """

    private: ClassVar[bool] = False

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def laplace(self, sums: NDArray[np.int64], sensitivity: int, epsilon: Fraction) -> Noisy:
        """As `OpenDPNoise.laplace`, but not private: the difference of two geometric variables."""
        scale, cost, _ = _laplace(sensitivity, epsilon)
        stop = -math.expm1(-1.0 / scale)
        plus, minus = (self._random.geometric(stop, size=sums.shape) for _ in range(2))
        return Noisy(np.asarray(sums + plus - minus, np.int64), scale, cost, False)

    def gaussian(self, sums: NDArray[np.int64], l2_sensitivity: float, rho: Fraction) -> Noisy:
        """As `OpenDPNoise.gaussian`, but not private: a rounded normal variable."""
        scale, cost, _ = _gaussian(l2_sensitivity, rho)
        noise = np.rint(self._random.normal(0.0, scale, size=sums.shape)).astype(np.int64)
        return Noisy(sums + noise, scale, Fraction(0), False, cost)


def _laplace(sensitivity: int, epsilon: Fraction) -> tuple[float, Fraction, Any]:
    if sensitivity < 1 or epsilon <= 0:
        raise ValueError("sensitivity and epsilon must be above 0")
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return _smallest_scale(
        float(sensitivity / epsilon), lambda scale: dp.m.make_laplace(*space, scale=scale), sensitivity, epsilon
    )


def _gaussian(l2_sensitivity: float, rho: Fraction) -> tuple[float, Fraction, Any]:
    if not l2_sensitivity > 0 or rho <= 0:
        raise ValueError("l2_sensitivity and rho must be above 0")
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return _smallest_scale(
        l2_sensitivity / math.sqrt(2 * rho),
        lambda scale: dp.m.make_gaussian(*space, scale=scale),
        float(l2_sensitivity),
        rho,
    )


def _smallest_scale(
    start: float, make: Callable[[float], Any], sensitivity: float, limit: Fraction
) -> tuple[float, Fraction, Any]:
    """The formula's scale, raised by units in the last place until the map, compared exactly, is within the limit."""
    scale, step = start, 1
    for _ in range(60):
        mechanism = make(scale)
        cost = Fraction(mechanism.map(sensitivity))
        if cost <= limit:
            return scale, cost, mechanism
        scale += step * math.ulp(scale)
        step *= 2
    raise ArithmeticError("no scale keeps the mechanism within its share of the budget")


def _draw(mechanism: Any, sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """Noise for every value, in chunks on a few threads (the sampler runs outside the interpreter lock).

    Each value gets its own independent noise of one scale, so the chunks together are the mechanism on the
    whole vector, and its map at the whole vector's sensitivity is their cost.
    """
    flat = np.ascontiguousarray(sums, np.int64).ravel()
    chunks = [flat[start : start + CHUNK] for start in range(0, len(flat), CHUNK)]
    threads = min(MOST_THREADS, os.cpu_count() or 1, len(chunks))
    if threads <= 1:
        drawn = [mechanism(chunk) for chunk in chunks]
    else:
        with ThreadPoolExecutor(threads) as pool:
            drawn = list(pool.map(mechanism, chunks))
    parts = [np.asarray(part, np.int64) for part in drawn]
    return (np.concatenate(parts) if parts else flat).reshape(np.shape(sums))


def _opendp() -> Any:
    # Not opendp.prelude: it imports polars and scikit-learn if they are installed.

    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    return SimpleNamespace(
        m=measurements,
        vector_domain=domains.vector_domain,
        atom_domain=domains.atom_domain,
        l1_distance=metrics.l1_distance,
        l2_distance=metrics.l2_distance,
    )
