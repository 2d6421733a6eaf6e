"""What a baseline gives back."""

from dataclasses import dataclass
from fractions import Fraction

from wayveil.trajectories import Trajectories

NO_TIME = "The method makes no times: t is a counter of one second a point from 0 and means nothing."
ONE_TRAJECTORY = "One trajectory is protected, not one user with several."


@dataclass(frozen=True)
class LedgerLine:
    """One spending: what was measured, the epsilon given to it, and what the mechanism's own map answers."""

    name: str
    epsilon: Fraction
    spent: Fraction
    scale: float
    """Scale of the Laplace noise, in units of one trajectory."""


@dataclass(frozen=True)
class BaselineResult:
    """Synthetic trajectories, whether they are private, the ledger lines that add up to epsilon, and notes.

    Privacy: `trajectories` may be published if `private` is True; one trajectory is protected.
    """

    trajectories: Trajectories
    private: bool
    ledger: tuple[LedgerLine, ...]
    notes: tuple[str, ...]
