"""How the budget is divided among the questions, before the data is read and again once the noisy count is known.

Privacy: free (public values, or post-processing of noisy answers); the total stays the same.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from wayveil.core.grid import Grid
from wayveil.privacy.budget import Budget
from wayveil.privacy.mechanism import Cost
from wayveil.privacy.unit import Unit
from wayveil.questions.catalogue import CATALOGUE, PEOPLE_QUESTIONS, QUESTIONS, SHARES
from wayveil.questions.count import Count
from wayveil.questions.norms import guessed_norm, is_centred, norms_part
from wayveil.questions.question import Question

LEAST_SIGNAL, FULL_SIGNAL = 3.0, 10.0
"""Noise units of the count up to which the shares for a weak signal apply, and above which those for a strong one do:
N·ε/c of 300 and 1,000. Below that, only the lengths and large blocks have a clear signal, and they get the shares of
speeds, tables and spikes."""
GAUSSIAN_POWERS = (4 / 3, 2 / 3)
"""Powers of a question's share of ε and of the guessed norm of a unit, to which its share of ρ is proportional."""
GROUP_POWERS = (4 / 3, 1 / 3)
"""The same within one budget group. A coarse block has a larger norm than its fine cells, but the sum of
the cells also measures the block. Between two values that were tried on simulated cities."""
OTHERS = "all other questions"
"""Name of the ledger entry for all questions but the count."""
PEOPLE_SHARE = Fraction(15, 100)
"""Share of the budget after the count that all questions about people get together, at user level."""
PEOPLE_SHARES_OF_RHO = (Fraction(5, 100), Fraction(10, 100), Fraction(15, 100))
"""The same with Gaussian noise; the smallest with which the answers exceed the noise (`LEAST_PEOPLE`) is used. A
person's contribution has norm 1 in questions about people and several times that in the others, so a share of ρ costs
the others more."""
LEAST_PEOPLE = 8.0
"""Noise units that the number of people must be worth in a question about them with an average share; with fewer, none
of them is asked."""
LEAST_PER_PERSON = 3
"""Least `max_per_user` with which people are asked about: with fewer there are no chains, and at trajectory level the
measurement would cost more than ε (docs/explanation/method.md)."""


def measurement_cost(epsilon: Fraction, delta: Fraction, unit: Unit) -> Cost:
    """ε (and δ) divided among the questions of the catalogue.

    Privacy: free; it says what may be spent and spends nothing itself.
    """
    shares = gaussian_shares(SHARES, unit) if delta else SHARES
    return Cost.of(epsilon, delta, unit, shares, max(question.resolution for question in QUESTIONS.values()))


def count_noise_of(cost: Cost, unit: Unit) -> float:
    """Scale of the noise on the count, in trajectories; with a δ at user level the largest that it can be.

    Privacy: free.
    """
    if cost.rho is None:
        return cost.noise(Count.name, unit)
    return cost.gaussian_noise(Count.name, unit.sensitivity, 1 - norms_part(Count, unit))


def gaussian_shares(
    shares: Mapping[str, Fraction], unit: Unit, powers: tuple[float, float] | None = None
) -> dict[str, Fraction]:
    """Shares of ρ in proportion to s^(4/3)·B^(2/3), s the question's share of ε and B the guessed norm of a unit.

    Laplace noise is proportional to 1/s, so shares that minimise Σ a/s have a = s². Gaussian noise is proportional to
    B/sqrt(ρ), and Σ a·B/sqrt(ρ) is least for ρ in proportion to (a·B)^(2/3). The sum stays the same.
    """
    of_share, of_norm = powers or GAUSSIAN_POWERS
    weights = {
        name: float(share) ** of_share * _usual_norm(QUESTIONS[name], unit) ** of_norm for name, share in shares.items()
    }
    total = sum(shares.values(), Fraction(0))
    parts = Budget.split(1, {name: Fraction(weight).limit_denominator(1 << 40) for name, weight in weights.items()})
    return {name: total * part for name, part in parts.shares.items()}


def _usual_norm(question: type[Question], unit: Unit) -> float:
    """The guessed norm of a unit with all trajectories that it may have."""
    return guessed_norm(question, unit.sensitivity, is_centred(question, unit, unit.sensitivity))


def for_signal(budget: Budget, signal: float) -> Budget:
    """The same budget with shares that suit the signal of the noisy count; the share of the count itself stays.

    Privacy: free (post-processing of the noisy count); the total stays the same.
    """
    # The signal is in noise units; between the two limits the shares are interpolated on the log scale.
    steps = math.log(FULL_SIGNAL / max(signal, LEAST_SIGNAL)) / math.log(FULL_SIGNAL / LEAST_SIGNAL)
    weakness = Fraction(round(16 * min(max(steps, 0.0), 1.0)), 16)
    if not weakness:
        return budget
    left = budget.epsilon - budget[Count.name]
    weights = {entry.question.name: entry.weak for entry in CATALOGUE if entry.weak and entry.question is not Count}
    whole = sum(weights.values())
    shares = {
        name: (1 - weakness) * budget[name] + weakness * left * weight / whole for name, weight in weights.items()
    }
    return Budget(budget.epsilon, {Count.name: budget[Count.name], **shares})


def with_people(
    budget: Budget,
    unit: Unit,
    people: float,
    noise: Callable[[Fraction], float],
    signal: float = math.inf,
    parts: Sequence[Fraction] = (PEOPLE_SHARE,),
) -> Budget:
    """The same budget with a part for the questions about people, where the number of people allows it.

    Parameters
    ----------
    people
        The number of people, estimated from earlier noisy answers.
    noise
        The scale of the noise, in people, of a question about people with a given share.
    signal
        Noise units of the noisy count; where the shares for a weak signal apply, nothing is asked about people.
    parts
        Possible shares of the budget after the count, in ascending order; the first with which the answers exceed the
        noise is used.

    Privacy: free (post-processing of noisy answers); the total stays the same.
    """
    if unit.kind != "user" or unit.max_per_user < LEAST_PER_PERSON or signal < FULL_SIGNAL:
        return budget
    left = budget.epsilon - budget[Count.name]
    part = next((part for part in parts if people >= LEAST_PEOPLE * noise(part * left / len(PEOPLE_QUESTIONS))), None)
    if part is None:
        return budget
    shares = {name: share if name == Count.name else share * (1 - part) for name, share in budget.shares.items()}
    whole = sum(weight for _, weight in PEOPLE_QUESTIONS)
    about_people = {question.name: part * left * weight / whole for question, weight in PEOPLE_QUESTIONS}
    return Budget(budget.epsilon, {**shares, **about_people})


def divided(
    budget: Budget, group_signals: Mapping[str, float], grid: Grid, gaussian_unit: Unit | None = None
) -> Budget:
    """The same budget with the ε of each group divided according to its signal, which follows from the noisy count.

    `group_signals` are the noise units of each group, m̃·ε_group / c. With Gaussian noise, which needs the unit, the
    parts of a group are those of `gaussian_shares`.

    Privacy: free (post-processing of the noisy count); the sum of every group stays the same.
    """
    groups, shares = by_group(budget.shares), {}
    for name, question in QUESTIONS.items():
        if (group := question.budget_group) in groups:
            share = groups[group] * question.part_of_group(group_signals[group], grid, gaussian_unit is not None)
            if share:
                shares[name] = share
    if gaussian_unit is not None:
        for group in groups:
            of_group = {name: share for name, share in shares.items() if QUESTIONS[name].budget_group == group}
            shares.update(gaussian_shares(of_group, gaussian_unit, GROUP_POWERS))
    return Budget(budget.epsilon, shares)


def ledger_lines(shares: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Shares by entry of the ledger, which is charged before the noisy count decides how the rest is divided."""
    count = shares[Count.name]
    return {Count.name: count, OTHERS: sum(shares.values(), Fraction(0)) - count}


def by_group(shares: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Shares by budget group, of which `divided` keeps the sums."""
    groups: dict[str, Fraction] = {}
    for name, share in shares.items():
        group = QUESTIONS[name].budget_group
        groups[group] = groups.get(group, Fraction(0)) + share
    return groups
