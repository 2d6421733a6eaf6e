"""Gaussian accounting for the optional delta mode: rho of zero-concentrated privacy to (epsilon, delta) and back."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from wayveil.errors import InputError

_STEPS = 60
_ORDERS = tuple(1 + 2 ** (k / 8) for k in range(-32, 161))
"""Rényi orders up to a million: small budgets have their optimum beyond the accountant's own orders."""


def epsilon_of(rho: float, delta: float) -> float:
    """The epsilon of a rho-zCDP release at delta, by the Rényi accountant of dp-accounting.

    Its bound holds for discrete Gaussians of any dimension. The exact curve of the continuous Gaussian (as a PLD
    accountant gives it) allows about 15 % more rho, but no proof covers vectors of discrete noise.

    Privacy
    -------
    Free: arithmetic. rho adds up over measurements, so give the sum of the mechanisms' own maps.
    """
    if rho <= 0 or not 0 < delta < 1:
        raise InputError("The Gaussian mode needs a delta above 0 and below 1; 1e-6 or less is a common choice.")
    accounting = _accounting()
    accountant = accounting.rdp.RdpAccountant(orders=_ORDERS)
    accountant.compose(accounting.ZCDpEvent(rho))
    return float(accountant.get_epsilon(delta))


@lru_cache(maxsize=64)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho found by bisection with `epsilon_of(rho, delta)` <= epsilon, rounded down to 2^-40.

    Privacy
    -------
    Free: arithmetic.
    """
    # rho + 2 sqrt(rho ln(1/delta)) <= epsilon holds at `low`, so the bisection starts from a proven point.
    if not 0 < delta < 1:
        raise InputError("The Gaussian mode needs a delta above 0 and below 1; 1e-6 or less is a common choice.")
    log_inverse = -math.log(delta)
    low = (math.sqrt(log_inverse + float(epsilon)) - math.sqrt(log_inverse)) ** 2 / 2
    high = max(4 * low, float(epsilon))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if Fraction(epsilon_of(middle, float(delta))) <= epsilon:
            low = middle
        else:
            high = middle
    rho = Fraction(math.floor(low * 2**40), 2**40)
    if rho <= 0:
        raise InputError("epsilon is too small for the Gaussian mode; leave delta= out.")
    return rho


def _accounting() -> Any:
    try:
        import dp_accounting
        import dp_accounting.rdp
    except ImportError:
        raise InputError("delta= needs dp-accounting; install it with: pip install 'wayveil[delta]'.") from None
    return dp_accounting
