"""The result of a baseline."""

from dataclasses import dataclass
from fractions import Fraction

from wayveil.core.trajectories import Trajectories

NO_TIME = "The method makes no times: t counts points from 0, one second each, and has no meaning."
ONE_TRAJECTORY = "One trajectory is protected, not one user with several."
ONE_DEVICE = "The data of one device is protected, even from the server; the number of devices is public."


@dataclass(frozen=True)
class LedgerLine:
    """One entry: what was measured, its epsilon, and the scale of its noise."""

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
