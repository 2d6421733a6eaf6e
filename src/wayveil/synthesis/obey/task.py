"""What all corrections share: rules, scope, and the densities and departures of all trajectories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid
from wayveil.core.pyramid import Field
from wayveil.core.scope import Scope
from wayveil.progress import Progress
from wayveil.rules.rule import Rule


@dataclass(frozen=True, eq=False)
class Attraction:
    """A density over a grid that attracts moved points to places where people are."""

    density: Field
    grid: Grid


@dataclass(frozen=True, eq=False)
class Task:
    """The inputs that all corrections share."""

    rules: tuple[Rule, ...]
    strict: tuple[Rule, ...]
    """The same rules with a safety margin; the trajectories are checked against these."""
    scope: Scope
    pool_utc: NDArray[np.float64]
    """Departures of all trajectories."""
    random: np.random.Generator
    attraction: Attraction | None
    progress: Progress
