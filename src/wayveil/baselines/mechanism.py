"""The mechanism of the baselines: noisy sums over trajectories of features with L1 norm at most 1.

Lemma. If each trajectory adds features of L1 norm at most 1, the sums have L1 sensitivity 1 under adding or removing
one trajectory, and Laplace noise of scale 1/ε_v makes them ε_v-private. The shares ε_v add up to ε.

The same holds for several vectors of sums with one share, each of which may depend on earlier noisy answers. Given
these, a trajectory moves vector k by at most the norm n_k of its features in it, so the likelihood ratio of all answers
is at most exp(ε_v Σ n_k), and Σ n_k ≤ 1 is enforced.
"""

import os
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

RESOLUTION = 1 << 20
"""Integer units per trajectory in the sums: rounding towards zero costs a share of one in a million."""


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

    @property
    def budget(self) -> Budget: ...

    @property
    def rng(self) -> np.random.Generator: ...

    def sums(self, name: str, features: Features, size: int) -> NDArray[np.float64]: ...

    def rows(self, name: str, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]: ...

    def choose(self, name: str, scores: NDArray[np.int64], sensitivity: int) -> NDArray[np.int64]: ...

    def order(self, count: int) -> NDArray[np.int64]: ...

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
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    """Draws everything except the noise, including the random bits of local reports if `source` is not private."""
    lines: list[LedgerLine] = field(default_factory=list)
    _used: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    """Norm of each trajectory's features so far, for each share. Privacy: not private (trusted side only)."""

    @property
    def private(self) -> bool:
        return self.source.private

    def epsilon(self, name: str) -> float:
        return float(self.budget[name])

    def sums(self, name: str, features: Features, size: int) -> NDArray[np.float64]:
        """Noisy sums; over all calls for the same share, the features of a trajectory have a norm of at most 1."""
        rows = int(features.owner.max()) + 1 if len(features.owner) else 0
        check_overflow(max(rows, 1), RESOLUTION)
        whole = clip_l1(quantise(features.value, RESOLUTION), features.owner, rows, RESOLUTION)
        whole = self._within_norm(name, features.owner, whole, rows)
        return self._noisy(name, exact_bincount(features.bin, whole, size), RESOLUTION) / RESOLUTION

    def _within_norm(
        self, name: str, owner: NDArray[np.int64], whole: NDArray[np.int64], rows: int
    ) -> NDArray[np.int64]:
        """The features, without those of trajectories that would use a norm of more than 1 in total."""
        earlier = self._used.get(name, np.zeros(0, np.int64))
        used = np.zeros(max(rows, len(earlier)), np.int64)
        used[: len(earlier)] = earlier
        norm = exact_bincount(owner, np.abs(whole), len(used))
        fits = used + norm <= RESOLUTION
        self._used[name] = used + np.where(fits, norm, 0)
        return np.where(fits[owner], whole, 0)

    def rows(self, name: str, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(records, k) values in [0, 1] with noise of scale 1/(w_k ε); the weights add up to 1.

        Two records of values in [0, 1] differ by at most Σ w_k = 1 after weighting, so the share of `name` covers the
        replacement of one record by any other. The number of records must be public or noisy.
        """
        whole = quantise(np.clip(values, 0.0, 1.0) * weights, RESOLUTION)
        noisy = self._noisy(name, whole, RESOLUTION)
        return noisy / RESOLUTION / weights

    def choose(self, name: str, scores: NDArray[np.int64], sensitivity: int) -> NDArray[np.int64]:
        """The column with the largest noisy score of each row: report noisy max with noise of scale 2Δ/ε.

        One trajectory changes the scores of one row only, each by at most `sensitivity`. Whatever the other noises
        are, a column wins if its own noise is at least a threshold, and the threshold moves by at most 2Δ.
        """
        best: NDArray[np.int64] = self._noisy(name, scores, 2 * sensitivity).argmax(axis=1)
        return best

    def order(self, count: int) -> NDArray[np.int64]:
        """A random order of `count` records, from the operating system's randomness: a seed must not reveal it."""
        if self.source.private:
            return np.argsort(np.frombuffer(os.urandom(8 * count), np.uint64), kind="stable")
        return self.rng.spawn(1)[0].permutation(count)

    def _noisy(self, name: str, whole: NDArray[np.int64], sensitivity: int) -> NDArray[np.int64]:
        noisy = self.source.laplace(whole, sensitivity=sensitivity, epsilon=self.budget[name])
        if noisy.epsilon_spent > self.budget[name]:
            raise BudgetError(f"'{name}' would cost more than its share; nothing was released.")
        if all(line.name != name for line in self.lines):
            self.lines.append(LedgerLine(name, self.budget[name], noisy.epsilon_spent, noisy.scale / sensitivity))
        return noisy.values


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
        if all(line.name != name for line in self.lines):
            self.lines.append(LedgerLine(name, self.budget[name], self.budget[name], scale))
        exact = np.bincount(features.bin, features.value, minlength=size)
        return exact + self.rng.laplace(0.0, scale, size)

    def rows(self, name: str, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        scale = 1.0 / (self.epsilon(name) * weights)
        self.lines.append(LedgerLine(name, self.budget[name], self.budget[name], 1.0 / self.epsilon(name)))
        return values + self.rng.laplace(0.0, 1.0, values.shape) * scale

    def choose(self, name: str, scores: NDArray[np.int64], sensitivity: int) -> NDArray[np.int64]:
        """The exponential mechanism: P(column) ∝ exp(ε · score / 2Δ)."""
        self.lines.append(LedgerLine(name, self.budget[name], self.budget[name], 1.0 / self.epsilon(name)))
        exponent = scores * (self.epsilon(name) / (2 * sensitivity))
        best: NDArray[np.int64] = (exponent + self.rng.gumbel(size=scores.shape)).argmax(axis=1)
        return best

    def order(self, count: int) -> NDArray[np.int64]:
        return self.rng.permutation(count)


@dataclass(frozen=True)
class Account:
    """The noise source of the sound mode and the account that is charged; without a ledger nothing is recorded."""

    noise: NoiseSource | None = None
    ledger: Ledger | None = None
    dataset: str | None = None


def sound_mechanism(
    method: str, epsilon: Number, shares: Mapping[str, Number], account: Account, rng: np.random.Generator
) -> SoundMechanism:
    """A mechanism whose whole budget is on the ledger before any noise is drawn.

    Privacy: spends `epsilon` of the account's dataset, where a ledger is given.
    """
    budget = Budget.split(epsilon, shares)
    if account.ledger is not None:
        if not account.dataset:
            raise InputError("A ledger also needs dataset=, the name of the dataset whose budget is spent.")
        lines = [Spend(name, share, f"{method}, trajectory level") for name, share in budget.shares.items()]
        account.ledger.spend(account.dataset, lines, unit=Unit.trajectory(), total_if_new=budget.epsilon)
    return SoundMechanism(budget, account.noise or OpenDPNoise(), rng)


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
