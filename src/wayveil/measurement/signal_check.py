"""What is known about a measurement before it reads or spends anything: how large its noise is.

Everything here follows from ε, δ, the unit, the catalogue's shares, and a rough size that the owner states. The data
is never read: a refusal that depended on its exact size would reveal that size.
"""

from dataclasses import dataclass

from wayveil.core.whole_number import as_whole_number
from wayveil.errors import LowSignalError
from wayveil.privacy.budget import Number, exact_delta, exact_epsilon
from wayveil.privacy.unit import Unit, parse_unit
from wayveil.questions.shares import count_noise_of, measurement_cost

MAX_NOISE_SHARE = 0.5
"""Noise on the count, as a share of the expected count, at or above which a release is useless. The count is a
single number; every other question spreads the same trajectories over many cells."""
MAX_NOISE = 10_000.0
"""Noise on the count above which a release is useless for most files, if no size was stated: it would take
tens of thousands of trajectories to distinguish the file from an empty one."""


@dataclass(frozen=True)
class Wording:
    """How one interface names what the reader can change."""

    epsilon: str
    max_per_user: str
    delta: str
    expected_trips: str
    confirm: str


PYTHON = Wording("epsilon=", "max_per_user=", "delta=", "expected_trips=", "pass accept_low_signal=True")
OPTIONS = Wording("--epsilon", "--max-per-user", "--delta", "--expected-trips", "add --yes")
RUN_FILE = Wording("epsilon", "max_per_user", "delta", "expected_trips", "set accept_low_signal = true under [measure]")


def count_noise(*, epsilon: Number, unit: Unit | str, max_per_user: int | None = None, delta: Number = 0) -> float:
    """The mean size of the noise that `measure` adds to the number of trajectories.

    It is c/ε_count with Laplace noise, where c is 1 or `max_per_user`. With a `delta` at user level it is the
    largest that it can be.

    Parameters
    ----------
    epsilon, unit, max_per_user, delta
        As for `wayveil.measure`.

    Examples
    --------
    >>> from wayveil import count_noise
    >>> round(count_noise(epsilon=1, unit="user", max_per_user=20))
    1998

    Privacy
    -------
    Free (nothing is read or spent).
    """
    unit = parse_unit(unit, max_per_user)
    return count_noise_of(measurement_cost(exact_epsilon(epsilon), exact_delta(delta), unit), unit)


def noise_words(noise: float, unit: Unit, *, delta: bool) -> str:
    """One sentence about the noise on the count, for the owner, before the spend."""
    if delta and unit.kind == "user":
        return (
            f"The count of trajectories will carry noise of about ± {_rounded(noise)} at most, and usually less, "
            "because users are clipped to fewer trajectories; wayveil plan predicts how far off their number will be."
        )
    return (
        f"The count of trajectories will carry noise of about ± {_rounded(noise)}; with the other answers, their "
        "number can be estimated more precisely (wayveil plan predicts how far off it will be)."
    )


def delta_advice(unit: Unit, delta: bool, wording: Wording) -> str | None:
    """Why a δ is recommended at user level, in two sentences; None where it is not."""
    if unit.kind != "user" or delta:
        return None
    return (
        f"At user level {wording.delta} (such as 1e-6) is recommended, with a {wording.max_per_user} of about 50: each "
        "person's contribution is then clipped as a whole, so maps and tables get less noise although more trips are "
        "used (only the count gets more). In return, the promise may fail with a small probability, delta."
    )


def check_signal(
    noise: float, unit: Unit, *, expected_trips: int | None, accept: bool, delta: bool, wording: Wording = PYTHON
) -> None:
    """LowSignalError where noise of this size on the count would hide the data, unless the owner accepts it.

    Parameters
    ----------
    noise
        As `count_noise` gives it.
    expected_trips
        About how many trajectories the owner expects; None if not stated.
    delta
        Whether Gaussian noise has already been chosen.

    Privacy: free (nothing is read or spent).
    """
    expected = None if expected_trips is None else as_whole_number(expected_trips, wording.expected_trips, 1)
    if accept:
        return
    if expected is None:
        if noise <= MAX_NOISE:
            return
        against = "which is more than the number of trajectories in most files"
        remedy = f"if your data has more, give its approximate size with {wording.expected_trips}"
    else:
        if noise < MAX_NOISE_SHARE * expected:
            return
        against = f"compared with the {expected:,} that you expect"
        remedy = "use more data"
    helps = [f"raise {wording.epsilon}"]
    helps += [f"lower {wording.max_per_user}"] if unit.sensitivity > 1 else []
    helps += [] if delta else [f"give {wording.delta} (such as 1e-6)"]
    raise LowSignalError(
        f"The noise on the number of trajectories alone would be about ± {_rounded(noise)}, {against}: the budget "
        f"would be spent on a release that is mostly noise. To get more out of it, {', '.join(helps)} or {remedy}; to "
        f"measure anyway, {wording.confirm}."
    )


def _rounded(noise: float) -> str:
    """The noise with two significant digits."""
    return f"{float(f'{noise:.1e}'):,.0f}" if noise >= 10 else f"{noise:.1g}"
