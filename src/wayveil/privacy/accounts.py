"""What measurements cost one trajectory and one user, and what a dataset's totals still allow.

A measurement is made for one unit. What it costs the other unit follows from the mechanism, which adds noise to a sum
of features of norm at most 1 per trajectory, scaled to the unit's sensitivity (1, or c per user; with a δ, a bound).

*A trajectory-level measurement at ε* costs a user with k trajectories kε (group privacy). The ledger does not know k,
so it knows no bound per user.

*A user-level measurement at ε, at most c trajectories per user,* costs one trajectory at most ε for c >= 2 and at most
2ε for c = 1. Proof: every trajectory has an independent random key, and a user's c trajectories with the smallest keys
are used. Draw the same keys with and without trajectory T. If T is used, at most one other trajectory of the same user
is displaced; nothing else changes. So the sum moves by at most 2 in the norm to which the noise is scaled for a
distance of c. For c >= 2 that is within the sensitivity, and the (ε, δ) guarantee holds for these keys; for c = 1 it is
two steps of distance 1 (remove the one, add the other), and group privacy gives (2ε, (1 + e^ε)δ). Both hold for every
choice of keys, hence for their average, because the divergence that defines (ε, δ) is jointly convex.

Questions about people (c >= 3 only) have sensitivity 1 per user, and T may change a user's whole vector, a distance of
2. These questions get at most 0.15ε, and the sums of all others move by 2 where noise is scaled for c: together at most
(0.85·2/3 + 0.15·2)ε < ε.

With a δ the contribution of a user is clipped as a whole, to a bound that may be smaller than what two trajectories can
add. Then it is two steps of distance 1 for every c: remove the user, and add the user again with the other choice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Literal

from wayveil.errors import REMEDY, BudgetError, Remedy
from wayveil.privacy.budget import decimal_text
from wayveil.privacy.remedies import Remedies, all_of
from wayveil.privacy.unit import Unit

Kind = Literal["trajectory", "user"]
KINDS: tuple[Kind, Kind] = ("trajectory", "user")


@dataclass(frozen=True)
class Loss:
    """An (ε, δ) guarantee; losses of several measurements add up."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __add__(self, other: "Loss") -> "Loss":
        return Loss(self.epsilon + other.epsilon, self.delta + other.delta)


@dataclass(frozen=True)
class Charge:
    """One measurement: its (ε, δ) and the unit for which it holds."""

    loss: Loss
    unit: Unit

    def per(self, kind: Kind) -> Loss | None:
        """What it costs one trajectory or one user; None if there is no bound."""
        if kind == self.unit.kind:
            return self.loss
        if kind == "user":
            return None
        if self.unit.max_per_user >= 2 and not self.loss.delta:
            return self.loss
        epsilon, delta = self.loss.epsilon, self.loss.delta
        return Loss(2 * epsilon, min(Fraction(1), delta * (1 + exp_above(epsilon))) if delta else Fraction(0))


@dataclass(frozen=True)
class Account:
    """What one trajectory, or one user, may lose and has lost at most."""

    kind: Kind
    total: Loss | None
    """None: there is no total."""
    spent: Loss | None
    """None: there is no bound."""
    waived: bool = False
    """The owner stated that there is no total."""

    @property
    def left(self) -> Fraction | None:
        """The epsilon that may still be spent, where there is a total."""
        return None if self.total is None or self.spent is None else self.total.epsilon - self.spent.epsilon


@dataclass(frozen=True)
class Dataset:
    """A named account: all measurements under its name add up, whatever file they came from.

    `spent`, `total` and `left` are about the unit for which the dataset was opened.
    """

    name: str
    opened_for: Kind
    trajectory: Account
    user: Account
    charges: tuple[Charge, ...]
    opened_utc: str
    warnings: tuple[str, ...] = ()

    def account(self, kind: Kind) -> Account:
        """The account of one unit."""
        return self.trajectory if kind == "trajectory" else self.user

    @property
    def spent(self) -> Fraction | None:
        """The epsilon that was spent; None if there is no bound."""
        spent = self.account(self.opened_for).spent
        return None if spent is None else spent.epsilon

    @property
    def total(self) -> Fraction | None:
        """The epsilon that may be spent; None if there is no total."""
        total = self.account(self.opened_for).total
        return None if total is None else total.epsilon

    @property
    def left(self) -> Fraction | None:
        """The epsilon that may still be spent; None if there is no total."""
        return self.account(self.opened_for).left

    def spent_at(self, kind: Kind) -> Loss:
        """The sum of the measurements that were made for this unit."""
        return add_up(charge.loss for charge in self.charges if charge.unit.kind == kind)

    def words(self, kind: Kind) -> str:
        """One sentence: what a trajectory, or a user, has lost at most, and of which total."""
        account = self.account(kind)
        if account.spent is None:
            by_trips, by_users = self.spent_at("trajectory"), self.spent_at("user")
            factor = "" if by_trips.epsilon == 1 else f"{decimal_text(by_trips.epsilon)} × "
            rest = f" + {decimal_text(by_users.epsilon)}" if by_users.epsilon else ""
            delta = ", and a δ that grows with k" if by_trips.delta else ""
            return (
                f"Each user: no bound, because ε = {decimal_text(by_trips.epsilon)} was spent at trajectory level and "
                "the ledger does not know how many trajectories a user has; a user with k trajectories: "
                f"up to ε = {factor}k{rest}{delta}."
            )
        if account.total is None or account.left is None:
            return f"Each {kind}: at most {_loss_text(account.spent)}; no total per {kind} is set."
        total = decimal_text(account.total.epsilon)
        delta = ""
        if account.total.delta or account.spent.delta:
            delta = f", δ = {_short(account.spent.delta)} of {_short(account.total.delta)}"
        return (
            f"Each {kind}: at most ε = {decimal_text(account.spent.epsilon)} of {total}{delta}; "
            f"{decimal_text(max(account.left, Fraction(0)))} left."
        )


def dataset_of(
    name: str,
    opened_for: Kind,
    totals: dict[Kind, Loss | None],
    charges: tuple[Charge, ...],
    opened_utc: str,
    warnings: tuple[str, ...] = (),
) -> Dataset:
    """The accounts that follow from the owner's last statement per unit (None: waived) and from all measurements."""
    accounts = {}
    for kind in KINDS:
        losses = [charge.per(kind) for charge in charges]
        bounded = [loss for loss in losses if loss is not None]
        spent = add_up(bounded) if len(bounded) == len(losses) else None
        accounts[kind] = Account(kind, totals.get(kind), spent, kind in totals and totals[kind] is None)
    return Dataset(name, opened_for, accounts["trajectory"], accounts["user"], charges, opened_utc, warnings)


def refusal(dataset: Dataset, requested: Charge, remedies: Remedies) -> BudgetError | None:
    """Why a measurement is not allowed, with everything that would allow it; None if it is allowed.

    A measurement must stay within every total that the dataset has, and there must be one. A dataset with measurements
    of both units can promise nothing to a user, so its owner must have waived the total per user.
    """
    promised, changes = _promise_per_user(dataset, requested), []
    reasons = [] if promised is None else [promised]
    kept: tuple[Kind, ...] = KINDS
    if promised is not None:
        kept = ("trajectory",)
        changes.append(remedies.allow(dataset.name, "user", None))
    if all(dataset.account(kind).total is None for kind in kept):
        # Trajectory-level measurements have no bound per user, so only a total per trajectory can be promised then.
        kind = requested.unit.kind if dataset.account(requested.unit.kind).spent is not None else "trajectory"
        cost = requested.per(kind)
        assert cost is not None
        reasons.append(f"Dataset '{dataset.name}' has no total{f' per {kind}' if promised else ''}; set one.")
        changes.append(_new_total(dataset, cost, kind, remedies))
    for kind in kept:
        beyond = _beyond(dataset, requested, kind)
        if beyond is not None:
            reasons.append(beyond[0])
            changes.append(_new_total(dataset, beyond[1], kind, remedies))
    return BudgetError(f"{' '.join(reasons)} To allow it: {REMEDY}.", all_of(changes)) if changes else None


def _promise_per_user(dataset: Dataset, requested: Charge) -> str | None:
    """Why the owner must first withdraw, or decline, every promise to users; None if not."""
    name = dataset.name
    if requested.unit.kind == "trajectory" and dataset.user.total is not None:
        return (
            f"Dataset '{name}' promises each user a total of {decimal_text(dataset.user.total.epsilon)}, and a "
            "trajectory-level measurement costs a user with k trajectories k times its epsilon, without a bound; "
            "measure with unit='user', or withdraw that promise."
        )
    kinds = {charge.unit.kind for charge in dataset.charges} | {requested.unit.kind}
    if len(kinds) == 2 and not dataset.user.waived:
        done = "user" if requested.unit.kind == "trajectory" else "trajectory"
        return (
            f"Dataset '{name}' has {done}-level measurements; together with this {requested.unit.kind}-level one there "
            "is no bound on what a user loses, so confirm that you promise nothing per user."
        )
    return None


def _beyond(dataset: Dataset, requested: Charge, kind: Kind) -> tuple[str, Loss] | None:
    """Why a total is too small for a measurement, and the cost of the measurement; None if the total suffices."""
    account, cost = dataset.account(kind), requested.per(kind)
    if account.total is None:
        return None
    assert account.spent is not None and cost is not None  # a total without a bound: `refusal` does not get here
    after = account.spent + cost
    left = account.total.epsilon - account.spent.epsilon
    if after.epsilon > account.total.epsilon:
        remedy = "lower epsilon=" if left > 0 else "make more trajectories from the existing release, which is free"
        why = "delta=" if requested.loss.delta else "max_per_user=1"
        twice = f" (twice its epsilon, because of {why})" if cost.epsilon != requested.loss.epsilon else ""
        return (
            f"This measurement costs dataset '{dataset.name}' {decimal_text(cost.epsilon)} per {kind}{twice}, but "
            f"{decimal_text(max(left, Fraction(0)))} of {decimal_text(account.total.epsilon)} remains "
            f"({decimal_text(account.spent.epsilon)} is spent); {remedy}, or raise the total."
        ), cost
    if after.delta > account.total.delta:
        return (
            f"This measurement costs dataset '{dataset.name}' a delta of {_short(cost.delta)} per {kind}, but its "
            f"total is {_short(account.total.delta)} ({_short(account.spent.delta)} is spent); leave delta= out, or "
            "raise the total."
        ), cost
    return None


def _new_total(dataset: Dataset, cost: Loss, kind: Kind, remedies: Remedies) -> Remedy:
    """The smallest change of a total that allows this cost."""
    account = dataset.account(kind)
    assert account.spent is not None
    after, before = account.spent + cost, account.total or Loss()
    delta = _short(after.delta) if after.delta > before.delta else None
    return remedies.allow(dataset.name, kind, decimal_text(max(after.epsilon, before.epsilon)), delta)


def left_words(dataset: Dataset) -> list[str]:
    """What is left of each total."""
    return [
        f"{decimal_text(account.left)} of {decimal_text(account.total.epsilon)} is left on the ledger per "
        f"{account.kind}"
        for account in (dataset.trajectory, dataset.user)
        if account.total is not None and account.left is not None
    ]


def add_up(losses: Iterable[Loss]) -> Loss:
    """Sequential composition."""
    return sum(losses, Loss())


def exp_above(value: Fraction) -> Fraction:
    """A decimal of 12 digits that is at least e^value: 40 digits, rounded up, and one unit for their own rounding."""
    precise, upwards = Context(prec=40), Context(prec=12, rounding=ROUND_CEILING)
    power = precise.exp(precise.divide(Decimal(value.numerator), Decimal(value.denominator)))
    return Fraction(upwards.next_plus(upwards.plus(power)))


def _loss_text(loss: Loss) -> str:
    return f"ε = {decimal_text(loss.epsilon)}" + (f", δ = {_short(loss.delta)}" if loss.delta else "")


def _short(delta: Fraction) -> str:
    """A delta for people: exact if that is short, otherwise rounded up to three digits."""
    text = decimal_text(delta)
    if len(text) <= 12:
        return text
    rounding = Context(prec=3, rounding=ROUND_CEILING)
    return str(rounding.divide(Decimal(delta.numerator), Decimal(delta.denominator)))
