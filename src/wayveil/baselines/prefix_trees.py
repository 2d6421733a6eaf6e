"""Noisy prefix trees over two-level symbols: a general group is counted first, then the symbols inside it."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.mechanism import Features, Mechanism
from wayveil.baselines.trees import Level, kept, make_level

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Taxonomy:
    """Symbol = group · `members` + member; the end symbol is `groups` · `members`, a group of its own."""

    groups: int
    members: int

    @property
    def end(self) -> int:
        return self.groups * self.members

    @property
    def symbols(self) -> int:
        return self.end + 1


def shares_of(height: int, **others: str) -> dict[str, str]:
    """Equal weights for the two counts of each level, after the weights of `others`; all add up to 1."""
    rest = 1.0 - sum(float(share) for share in others.values())
    each = str(round(rest / (2 * height), 6))
    return others | {f"level {i + 1} {kind}": each for i in range(height) for kind in ("general", "specific")}


def grow(mechanism: Mechanism, rows: Ints, taxonomy: Taxonomy, count: float) -> list[Level]:
    """One level per column of `rows` ((trajectories, height) symbols, -1 after the end).

    A trajectory is in at most one node of each level, so it adds at most 1 to each vector of counts. A node is kept if
    its noisy count is above 2√2/ε of its level, twice the standard deviation of the noise. The kept counts are made
    consistent: members with their group, then children with their parent.

    Privacy: spends the shares "level i general" and "level i specific".
    """
    node, above, levels = np.zeros(len(rows), np.int64), np.array([count]), []
    for depth in range(rows.shape[1]):
        groups, members = taxonomy.groups + 1, taxonomy.members
        symbol = rows[:, depth]
        here = np.flatnonzero((node >= 0) & (symbol >= 0))
        code = node[here] * groups + symbol[here] // members
        name = f"level {depth + 1} general"
        grouped = mechanism.sums(name, _ones(here, code), max(len(above) * groups, 1))
        general = kept(grouped[: len(above) * groups], _threshold(mechanism, name))
        place = np.full(max(len(above) * groups, 1), -1)
        place[general] = np.arange(len(general))
        here, code = here[place[code] >= 0], place[code][place[code] >= 0] * members
        code = code + symbol[here] % members
        name = f"level {depth + 1} specific"
        noisy = mechanism.sums(name, _ones(here, code), max(len(general) * members, 1))[: len(general) * members]
        group = general % groups
        # The group of the end symbol has only one member.
        possible = (group[:, None] < taxonomy.groups) | (np.arange(members) == 0)
        fine = kept(np.where(possible.ravel(), noisy, -np.inf), _threshold(mechanism, name))
        consistent = inferred(grouped[general], noisy.reshape(possible.shape), possible).ravel()[fine]
        symbol_of = group[fine // members] * members + fine % members
        level = make_level(general[fine // members] // groups, symbol_of, consistent, above, taxonomy.symbols)
        levels.append(level)
        node, above = level.find(node, symbol), level.count
    return levels


def inferred(general: Floats, specific: Floats, possible: NDArray[np.bool_]) -> Floats:
    """(general, members) counts: least squares between the noisy count of each group and those of its members.

    All have the same noise, so the difference of the group and its k members is shared by k + 1.

    Privacy: free (post-processing).
    """
    members = np.where(possible, specific, 0.0)
    shift = (general - members.sum(1)) / (possible.sum(1) + 1.0)
    return np.where(possible, specific + shift[:, None], 0.0)


def _ones(owner: Ints, code: Ints) -> Features:
    return Features(owner, code, np.ones(len(owner)))


def _threshold(mechanism: Mechanism, name: str) -> float:
    return 2.0 * math.sqrt(2.0) / mechanism.epsilon(name)
