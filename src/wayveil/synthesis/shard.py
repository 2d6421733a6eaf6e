"""A shard: some of the synthetic trajectories with diagnostics, drawn independently of other shards.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.rules import count as count_rules
from wayveil.rules import motion_of
from wayveil.rules.rule import Rule

SHARD = 25_000
"""Largest number of trajectories in a shard; memory holds about one shard."""


@dataclass(frozen=True)
class ShardSettings:
    """Settings of the stage that draws a shard."""

    candidates: int = 2
    """Candidates that are drawn per output trajectory; the fit of the weights selects among them."""
    fewest: int = 32
    """Least number of trajectories for which candidates are drawn, so that the fit has a choice in a small shard."""
    redraws: int = 50
    """Maximum number of times that single points that break a rule are drawn again; a draw is cheap."""
    pool_points: int = 32
    """Largest number of points per candidate in the fit; more take time and change the densities little."""
    routes_weight: float = 0.15
    """Weight of the routes' density when pooled with the estimate. Tuned on trial data, one value for all datasets."""
    off_route: float = 0.02
    """Share of the estimated density that is added to the routes' density. Tuned on trial data in the same way."""


SETTINGS = ShardSettings()


@dataclass(frozen=True)
class Facts:
    """Diagnostics of a shard."""

    trajectories: int
    """Number of trajectories."""
    loss: dict[str, float]
    """Misfit of each view of the fit; see `Fit`."""
    effective_sample_share: float
    """Effective number of candidates, 1 / Σ weight², as a share of their number."""
    realised_density_jsd: float
    """Divergence of the points' density from the target (the estimate pooled with the routes' density), in nats."""
    violations_before: dict[str, dict[str, int]]
    """{rule: {"points", "trajectories"}} before any trajectory was changed."""
    violations_after: dict[str, dict[str, int]]
    changed: dict[str, int]
    """Numbers of trajectories that were moved, retimed, replaced, or left out, so that all obey the rules."""
    avoided: tuple[str, ...] = ()
    """Names of rules with hours whose area routes avoid at all times, because too many trips pass it."""


@dataclass(frozen=True, eq=False)
class Shard:
    """Some of the synthetic trajectories, with diagnostics."""

    trajectories: Trajectories
    facts: Facts


def numbered_from(shard: Shard, first: int) -> Shard:
    """The shard with its people, if any, numbered from `first` on, so that no two shards share a person."""
    user = shard.trajectories.user
    if user is None:
        return shard
    return replace(shard, trajectories=replace(shard.trajectories, user=np.asarray(user, np.int64) + first))


def shard_sizes(count: int) -> list[int]:
    """Shards of about equal size, none above SHARD."""
    shards = -(-count // SHARD)
    return [count // shards + (k < count % shards) for k in range(shards)]


def diagnostics_of(shards: Sequence[Facts]) -> dict[str, Any]:
    """Loss by answer, effective sample size, divergence of realised and target density, violations, and changes."""
    size: NDArray[np.float64] = np.array([shard.trajectories for shard in shards], float)
    share = size / size.sum()
    names = {name: None for shard in shards for name in shard.loss}  # single points have no loss
    return {
        "trajectories": int(size.sum()),
        "loss": {name: float(sum(s * shard.loss.get(name, 0.0) for s, shard in zip(share, shards))) for name in names},
        "effective_sample_share": float(sum(s * shard.effective_sample_share for s, shard in zip(share, shards))),
        "effective_sample_size": round(
            sum(SETTINGS.candidates * n * shard.effective_sample_share for n, shard in zip(size.tolist(), shards))
        ),
        "realised_density_jsd": float(sum(s * shard.realised_density_jsd for s, shard in zip(share, shards))),
        "violations_before": added_counts([shard.violations_before for shard in shards]),
        "violations_after": added_counts([shard.violations_after for shard in shards]),
        "changed": {kind: sum(shard.changed[kind] for shard in shards) for kind in shards[0].changed},
        "avoided": list(shards[0].avoided),
    }


def added_counts(parts: Sequence[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
    """Violations of several shards together, by rule."""
    total: dict[str, dict[str, int]] = {}
    for one in parts:
        for rule, counts in one.items():
            counted = total.setdefault(rule, dict.fromkeys(counts, 0))
            for kind, number in counts.items():
                counted[kind] += number
    return total


def count_violations(rules: Sequence[Rule], trajectories: Trajectories, scope: Scope) -> dict[str, dict[str, int]]:
    """Return the exact violations of the output, by rule."""
    return count_rules(rules, motion_of(trajectories, scope))
