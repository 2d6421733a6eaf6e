"""Exact epsilon, split into named shares."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from types import MappingProxyType

from wayveil.errors import InputError

Number = str | int | float | Decimal | Fraction

SMALLEST_EPSILON = Fraction(1, 10**4)
"""Below it only noise is left."""
LARGEST_EPSILON = Fraction(1000)
"""Above it nothing is protected."""
_WRITTEN = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300}|/0*[1-9][0-9]{0,300})?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
QUANTA = 4096
"""A share is epsilon * k / 4096: a short exact decimal, and for epsilon 1 also an exact float, so that lines add up."""


def exact(value: Number, name: str = "epsilon") -> Fraction:
    """The rational number that was written: 0.1 is 1/10, not the nearest binary float."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):
        raise InputError(f"{name} must be a number.")
    number = value if isinstance(value, Decimal) else _read_decimal(value, name)
    if not number.is_finite():
        raise InputError(f"{name} must be a finite number.")
    # 1e-999999999 is a short text and a very long fraction.
    if len(number.as_tuple().digits) > 60 or abs(number.adjusted()) > 60:
        raise InputError(f"{name} has too many digits; write it like 0.5.")
    return Fraction(number)


def _read_decimal(value: str | int | float, name: str) -> Decimal:
    try:
        text = str(value).strip()
        # Decimal itself would also take '1_0' for 10, and digits of any script.
        if not isinstance(value, str) or _DECIMAL.fullmatch(text):
            return Decimal(text)
    except (InvalidOperation, ValueError):  # ValueError: a whole number of more than 4,300 digits
        pass
    raise InputError(f"{name} is not a decimal number; write it like 0.5.")


def exact_epsilon(value: Number, name: str = "epsilon") -> Fraction:
    """`exact`, within the range that makes sense as a privacy budget."""
    epsilon = exact(value, name)
    if epsilon <= 0:
        raise InputError(f"{name} must be above 0; 1 is a common choice.")
    if epsilon < SMALLEST_EPSILON:
        raise InputError(f"{name} is below {decimal_text(SMALLEST_EPSILON)}, where only noise is left; raise it.")
    if epsilon > LARGEST_EPSILON:
        raise InputError(f"{name} is above {LARGEST_EPSILON}, where nothing is protected; 1 is a common choice.")
    return epsilon


def exact_delta(value: Number, name: str = "delta") -> Fraction:
    """`exact`, at least 0 and below 1."""
    delta = exact(value, name)
    if not 0 <= delta < 1:
        raise InputError(f"{name} must be at least 0 and below 1; a common choice is 1e-6 or less.")
    return delta


def decimal_text(value: Fraction) -> str:
    """The fraction as an exact decimal (0.125), or as p/q where no finite decimal is exact (1/3)."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return str(value)
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    whole, decimals = (digits[:-places], digits[-places:]) if places else (digits, "")
    return ("-" if value < 0 else "") + whole + ("." + decimals if decimals else "")


def read_fraction(text: str) -> Fraction:
    """Inverse of `decimal_text`; ValueError for any other text."""
    # Fraction itself would take '1e999999999' and compute it.
    if not _WRITTEN.fullmatch(text):
        raise ValueError("not a decimal or a fraction")
    return Fraction(text)


@dataclass(frozen=True)
class Budget:
    """epsilon = Σ shares, exactly.

    Privacy
    -------
    Free: a plan. By sequential composition, measurements that spend the shares spend epsilon together.
    """

    epsilon: Fraction
    shares: Mapping[str, Fraction]

    def __post_init__(self) -> None:
        if not self.shares:
            raise InputError("A budget needs at least one share.")
        for name, share in self.shares.items():
            if share <= 0:
                raise InputError(f"The share of '{name}' must be above 0.")
        total = sum(self.shares.values(), Fraction(0))
        if total != self.epsilon:
            raise InputError(
                f"The shares add up to {decimal_text(total)}, not to epsilon {decimal_text(self.epsilon)}; change them."
            )
        object.__setattr__(self, "shares", MappingProxyType(dict(self.shares)))

    @classmethod
    def split(cls, epsilon: Number, weights: Mapping[str, Number]) -> "Budget":
        """share_v = epsilon * k_v / 4096 with k_v >= 1 nearest to the weights in proportion, Σ k_v = 4096.

        Largest remainders first, ties in the order given: the same weights give the same shares everywhere.
        """
        total = exact_epsilon(epsilon)
        exact_weights = {name: exact(weight, f"the share of '{name}'") for name, weight in weights.items()}
        if not exact_weights:
            raise InputError("A budget needs at least one share.")
        if len(exact_weights) > QUANTA:
            raise InputError(f"A budget is split into at most {QUANTA} shares.")
        for name, weight in exact_weights.items():
            if weight <= 0:
                raise InputError(f"The share of '{name}' must be above 0.")
        together = sum(exact_weights.values(), Fraction(0))
        # One quantum each first, so that rounding never leaves a share without any epsilon.
        free = QUANTA - len(exact_weights)
        wanted = {name: max(weight / together * QUANTA - 1, Fraction(0)) for name, weight in exact_weights.items()}
        norm = sum(wanted.values(), Fraction(0))
        ideal = {name: want * free / norm if norm else Fraction(free, len(wanted)) for name, want in wanted.items()}
        quanta = {name: 1 + int(want) for name, want in ideal.items()}
        by_remainder = sorted(ideal, key=lambda name: int(ideal[name]) - ideal[name])
        for name in by_remainder[: QUANTA - sum(quanta.values())]:
            quanta[name] += 1
        return cls(total, {name: total * count / QUANTA for name, count in quanta.items()})

    def __getitem__(self, name: str) -> Fraction:
        return self.shares[name]
