"""The mechanism of the baselines: noisy sums over trajectories of features with L1 norm at most 1.

Lemma. If each trajectory adds features of L1 norm at most 1, the sums have L1 sensitivity 1 under adding or removing
one trajectory, and Laplace noise of scale 1/ε_v makes them ε_v-private. The shares ε_v add up to ε.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.result import LedgerLine
from wayveil.errors import BudgetError, InputError
from wayveil.privacy.budget import Budget, Number
from wayveil.privacy.fixedpoint import check_overflow, clip_l1, exact_bincount, quantise
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.noise import NoiseSource, OpenDPNoise
from wayveil.privacy.unit import Unit

_RESOLUTION = 1 << 20


@dataclass(frozen=True, eq=False)
class Features:
    """One entry per row: `owner` adds `value` to `bin`; the values of one owner have L1 norm at most 1."""

    owner: NDArray[np.int64]
    bin: NDArray[np.int64]
    value: NDArray[np.float64]


class Mechanism(Protocol):
    """Adds up features, adds noise, and records what was spent."""

    @property
    def private(self) -> bool: ...

    @property
    def lines(self) -> list[LedgerLine]: ...

    def sums(self, name: str, features: Features, size: int) -> NDArray[np.float64]: ...

    def epsilon(self, name: str) -> float: ...


def by_trajectory(owner: NDArray[np.int64], bin: NDArray[np.int64]) -> Features:
    """Entries that share each trajectory's weight of 1 equally."""
    if len(owner) == 0:
        return Features(owner, bin, np.zeros(0))
    return Features(owner, bin, 1.0 / np.bincount(owner)[owner])


@dataclass(eq=False)
class SoundMechanism:
    """Integer sums and integer noise.

    Privacy: spends the share of `name`; a trajectory's features are quantised on their own, towards zero.
    """

    budget: Budget
    source: NoiseSource = field(default_factory=OpenDPNoise)
    lines: list[LedgerLine] = field(default_factory=list)

    @property
    def private(self) -> bool:
        return self.source.private

    def epsilon(self, name: str) -> float:
        return float(self.budget[name])

    def sums(self, name: str, features: Features, size: int) -> NDArray[np.float64]:
        rows = int(features.owner.max()) + 1 if len(features.owner) else 0
        check_overflow(max(rows, 1), _RESOLUTION)
        whole = clip_l1(quantise(features.value, _RESOLUTION), features.owner, rows, _RESOLUTION)
        noisy = self.source.laplace(
            exact_bincount(features.bin, whole, size), sensitivity=_RESOLUTION, epsilon=self.budget[name]
        )
        if noisy.epsilon_spent > self.budget[name]:
            raise BudgetError(f"'{name}' would cost more than its share; nothing was released.")
        self.lines.append(LedgerLine(name, self.budget[name], noisy.epsilon_spent, noisy.scale / _RESOLUTION))
        return noisy.values / _RESOLUTION


@dataclass(eq=False)
class PublishedMechanism:
    """Floating-point sums and floating-point noise, as the authors draw them.

    Privacy: not private (trusted side only).
    """

    budget: Budget
    rng: np.random.Generator
    lines: list[LedgerLine] = field(default_factory=list)
    private: bool = False

    def epsilon(self, name: str) -> float:
        return float(self.budget[name])

    def sums(self, name: str, features: Features, size: int) -> NDArray[np.float64]:
        scale = 1.0 / self.epsilon(name)
        self.lines.append(LedgerLine(name, self.budget[name], self.budget[name], scale))
        exact = np.bincount(features.bin, features.value, minlength=size)
        return exact + self.rng.laplace(0.0, scale, size)


@dataclass(frozen=True)
class Account:
    """The noise source of the sound mode and the account that is charged; without a ledger nothing is recorded."""

    noise: NoiseSource | None = None
    ledger: Ledger | None = None
    dataset: str | None = None


def sound_mechanism(method: str, epsilon: Number, shares: Mapping[str, Number], account: Account) -> SoundMechanism:
    """A mechanism whose whole budget is on the ledger before any noise is drawn.

    Privacy: spends `epsilon` of the account's dataset, where a ledger is given.
    """
    budget = Budget.split(epsilon, shares)
    if account.ledger is not None:
        if not account.dataset:
            raise InputError("Name the dataset whose budget is spent with dataset=.")
        lines = [Spend(name, share, f"{method}, trajectory level") for name, share in budget.shares.items()]
        account.ledger.spend(account.dataset, lines, unit=Unit.trajectory(), total_if_new=budget.epsilon)
    return SoundMechanism(budget, account.noise or OpenDPNoise())


def published_mechanism(
    epsilon: Number, shares: Mapping[str, Number], rng: np.random.Generator, account: Account
) -> PublishedMechanism:
    """The mechanism as published; it takes no ledger, because its leaks cannot be accounted for.

    Privacy: not private (trusted side only).
    """
    if account.ledger is not None:
        raise InputError(
            "The published mode is not private, so no ledger can account for it; leave out published=True or ledger=."
        )
    return PublishedMechanism(Budget.split(epsilon, shares), rng)
