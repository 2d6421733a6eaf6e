"""What is protected: one trajectory, or one user with at most c of them."""

from dataclasses import dataclass
from typing import Literal

from wayveil.core.whole_number import as_whole_number
from wayveil.errors import InputError

MOST_PER_USER = 1_000_000
"""The noise grows with the cap: beyond this it would hide any data."""


@dataclass(frozen=True)
class Unit:
    """What is protected: one trajectory, or everything of one user.

    Parameters
    ----------
    kind
        "trajectory" or "user".
    max_per_user
        How many trajectories of one user count at most (with "user").

    Examples
    --------
    >>> import wayveil
    >>> wayveil.Unit.user(10)
    Unit(kind='user', max_per_user=10)
    >>> wayveil.Unit.trajectory().sensitivity
    1

    Privacy
    -------
    Free: a unit only says what a measurement promises; `sensitivity` is the L1 distance by which the sum of
    features of norm <= 1 can move when one unit is added or removed.
    """

    kind: Literal["trajectory", "user"]
    max_per_user: int = 1

    def __post_init__(self) -> None:
        if self.kind not in ("trajectory", "user"):
            raise InputError(f"Unit '{self.kind}' is unknown; use unit='trajectory' or unit='user'.")
        object.__setattr__(self, "max_per_user", as_whole_number(self.max_per_user, "max_per_user=", 1, MOST_PER_USER))
        if self.kind == "trajectory" and self.max_per_user != 1:
            raise InputError("max_per_user= applies only to unit='user'; leave it out with unit='trajectory'.")

    @classmethod
    def trajectory(cls) -> "Unit":
        """One trajectory, whichever user it belongs to."""
        return cls("trajectory")

    @classmethod
    def user(cls, max_per_user: int) -> "Unit":
        """One user with all their trajectories, which count as at most `max_per_user`."""
        return cls("user", max_per_user)

    @property
    def sensitivity(self) -> int:
        """As how many trajectories one unit can count: 1, or c."""
        return 1 if self.kind == "trajectory" else self.max_per_user

    def describe(self, averaged: bool = False) -> str:
        """The neighbouring relation in plain words; with `averaged`, trajectories beyond the cap share its weight."""
        if self.kind == "trajectory":
            return "Two datasets are neighbours if one is the other with one trajectory added or removed."
        used = "1 is used" if self.max_per_user == 1 else f"{self.max_per_user} are used"
        rule = f"of each user's trajectories at most {used}, drawn at random"
        if averaged:
            rule = f"the trajectories of each user together count as at most {self.max_per_user}"
        return (
            "Two datasets are neighbours if one is the other with one user and all trajectories of that user added "
            f"or removed; {rule}."
        )


def parse_unit(unit: Unit | str, max_per_user: int | None = None) -> Unit:
    """The unit of this name, or the unit itself; a user needs a stated cap, a trajectory takes none."""
    if isinstance(unit, Unit):
        return unit
    kind = unit.strip().lower() if isinstance(unit, str) else ""
    if kind == "trajectory":
        if max_per_user is not None:
            raise InputError("max_per_user= applies only to unit='user'; leave it out with unit='trajectory'.")
        return Unit.trajectory()
    if kind == "user":
        if max_per_user is None:
            raise InputError("unit='user' needs max_per_user=, the largest number of trajectories used per user.")
        return Unit.user(max_per_user)
    raise InputError("unit= must be 'trajectory', or 'user' with max_per_user=.")
