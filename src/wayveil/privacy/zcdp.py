"""Gaussian accounting for the optional delta mode: from the sum of rho = B²/2σ² to (epsilon, delta) and back.

rho is the zero-concentrated cost of one sum with L2 bound B and noise of standard deviation σ. Costs add up, even where
later questions depend on earlier answers. The total is converted with the exact curve of the Gaussian mechanism, not
with the bound for any zCDP mechanism (docs/explanation/method.md, Lemma 8).
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from wayveil.core.optional import import_optional
from wayveil.errors import InputError

LATTICE_VARIANCE = 9
"""Part of the variance of integer noise that is not counted. A discrete Gaussian of variance σ² is, up to a factor
within 10^-76 of 1 for each value, continuous Gaussian noise of variance σ² − 9 followed by random rounding."""
_STEPS = 100
"""Steps of the bisection for rho."""
_MARGIN = 1 - 1e-9
"""Share of epsilon and delta that the conversion may use. The rest covers rounding errors and the factors mentioned at
`LATTICE_VARIANCE`."""


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) with μ = sqrt(2·rho), from dp-accounting.

    Privacy
    -------
    Free: arithmetic. rho adds up over measurements, so pass the sum of the costs from the mechanisms' privacy maps.
    """
    loss = _gaussian_loss()(standard_deviation=1 / math.sqrt(2 * rho), sensitivity=1.0)
    return float(loss.get_delta_for_epsilon(epsilon))


@lru_cache(maxsize=64)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho with `gaussian_delta(rho, epsilon)` <= delta, by bisection, rounded down to a multiple of 2^-40.

    Privacy
    -------
    Free: arithmetic.
    """
    if not 0 < delta < 1:
        raise InputError("The Gaussian mode needs a delta above 0 and below 1; 1e-6 or less is a common choice.")
    wanted, allowed = _MARGIN * float(epsilon), _MARGIN * float(delta)
    # rho + 2 sqrt(rho ln(1/delta)) <= epsilon holds at `low`, so the bisection starts from a proven point.
    log_inverse = -math.log(allowed)
    low = (math.sqrt(log_inverse + wanted) - math.sqrt(log_inverse)) ** 2
    high = low + wanted
    while gaussian_delta(high, wanted) <= allowed:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if gaussian_delta(middle, wanted) <= allowed:
            low = middle
        else:
            high = middle
    rho = Fraction(math.floor(low * 2**40), 2**40)
    if rho <= 0:
        raise InputError("epsilon is too small for the Gaussian mode; leave delta= out.")
    return rho


def integer_rho(rho: Fraction, bound: int) -> Fraction:
    """B²/2σ² for σ² = B²/2rho + 9: integer noise of this variance costs `rho`, since the 9 does not count."""
    return rho / (1 + 2 * rho * LATTICE_VARIANCE / (bound * bound))


def _gaussian_loss() -> Any:
    return import_optional("dp_accounting.pld.privacy_loss_mechanism", "delta=").GaussianPrivacyLoss
