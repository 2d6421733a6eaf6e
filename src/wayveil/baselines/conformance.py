"""What every method of the collection must pass; each check is a function that raises `ConformanceError`.

The checks run on random walks in a small public square, so they need no data. `check_method` runs all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from wayveil.baselines.mechanism import RESOLUTION
from wayveil.baselines.method import Method
from wayveil.core.scope import Scope
from wayveil.core.trajectories import EMPTY, Trajectories, concatenate
from wayveil.errors import InputError, WayveilError
from wayveil.privacy.noise import Noisy, SeededNoise

SCOPE = Scope.model_validate({"name": "square", "south": 0.0, "west": 0.0, "north": 0.2, "east": 0.2})
"""A square of about 22 km, without days or a time zone."""


class ConformanceError(WayveilError):
    """A method fails a check; the message says how."""


def _require(condition: object, problem: str) -> None:
    if not condition:
        raise ConformanceError(problem)


def walks(n: int, seed: int = 0, centre_m: float = 9_000.0, spread_m: float = 2_500.0) -> Trajectories:
    """`n` random walks of twelve points that drift to the east.

    Privacy: free (simulated data).
    """
    rng = np.random.default_rng(seed)
    x, y = (
        np.clip(centre_m + rng.normal(0, spread_m, (n, 1)) + np.cumsum(rng.normal(d, 250, (n, 12)), 1), 1, 22_000)
        for d in (150, 0)
    )
    lon, lat = SCOPE.to_degrees(x.ravel(), y.ravel())
    return Trajectories(np.arange(0, 12 * n + 1, 12), lon, lat, np.tile(np.arange(12) * 30.0, n))


class NoNoise:
    """A source of noise that adds none; not private."""

    private = False

    def laplace(self, sums: np.ndarray, sensitivity: int, epsilon: Fraction) -> Noisy:
        return Noisy(sums, 0.0, Fraction(0), False)

    def gaussian(self, sums: np.ndarray, l2_sensitivity: float, rho: Fraction) -> Noisy:
        return Noisy(sums, 0.0, Fraction(0), False)


class _Replay(NoNoise):
    """Records the exact numbers of each question, and answers with those of an earlier recording where there is one.

    Both datasets then get the same earlier answers, as adaptive composition assumes.
    """

    def __init__(self, earlier: "_Replay | None" = None) -> None:
        self.asked: list[tuple[np.ndarray, int, Fraction]] = []
        self._earlier = earlier

    def laplace(self, sums: np.ndarray, sensitivity: int, epsilon: Fraction) -> Noisy:
        self.asked.append((sums, sensitivity, epsilon))
        if self._earlier is not None:
            sums = self._earlier.asked[len(self.asked) - 1][0]
        return super().laplace(sums, sensitivity, epsilon)


def _output_is_sane(method: Method) -> None:
    """Every point is finite and inside the scope, and every trajectory has two points or more."""
    for epsilon in ("0.05", "1", "100"):
        made = method(walks(200), SCOPE, epsilon, seed=1).trajectories
        _require(
            np.isfinite(made.lon).all() and np.isfinite(made.lat).all() and np.isfinite(made.t_utc).all(),
            "a value is not finite",
        )
        x, y = SCOPE.to_metres(made.lon, made.lat)
        slack = 0.01
        _require(x.min() >= -slack and x.max() <= SCOPE.width_m + slack, "points outside the scope")
        _require(y.min() >= -slack and y.max() <= SCOPE.height_m + slack, "points outside the scope")
        _require(np.diff(made.offsets).min() >= 2, "a trajectory of one point")
        if method.makes_times:
            inside = np.ones(len(made.t_utc) - 1, bool)
            inside[made.offsets[1:-1] - 1] = False
            _require((np.diff(made.t_utc)[inside] >= 0).all(), "times go back")


def _seed_and_number(method: Method) -> None:
    """The seed decides the drawing, `n` the number; the default noise ignores the seed."""
    data = walks(150)
    one, again, other = (method(data, SCOPE, 1, seed=s, n=41, noise=SeededNoise(4)).trajectories for s in (1, 1, 2))
    _require(one == again, "the same seeds give different outputs")
    _require(one != other, "the seed changes nothing")
    _require(len(one) == 41, "n= is ignored")
    # At one epsilon, two draws of noise may give the same output: all counts are cut, or all are nearly exact.
    pairs = [[method(data, SCOPE, epsilon, seed=1).trajectories for _ in range(2)] for epsilon in (1, 20, 4)]
    _require(any(first != second for first, second in pairs), "the noise depends on the seed alone")


def _flag_is_honest(method: Method) -> None:
    """Private only with the private source in the default mode; the published mode names its leaks."""
    data = walks(60)
    _require(method(data, SCOPE, 1, n=5).private, "the default mode is not private")
    _require(not method(data, SCOPE, 1, n=5, noise=SeededNoise(0)).private, "seeded noise is called private")
    published = method(data, SCOPE, 1, n=5, published=True)
    _require(not published.private, "the published mode is called private")
    _require(any(note.startswith("Not private") for note in published.notes), "the published mode names no leaks")
    _require(
        not any(note.startswith("Not private") for note in method(data, SCOPE, 1, n=5).notes),
        "the default mode is called not private",
    )


def _ledger_adds_up(method: Method) -> None:
    """In both modes the lines add up to ε exactly, each part is asked for once, and no line is overspent."""
    for published in (False, True):
        result = method(walks(80), SCOPE, "0.7", published=published, seed=0, n=10)
        names = [line.name for line in result.ledger]
        _require(len(names) == len(set(names)), f"asked twice: {names}")
        total = sum((line.epsilon for line in result.ledger), Fraction(0))
        _require(total == Fraction(7, 10), f"the lines add up to {float(total)}")
        _require(all(line.spent <= line.epsilon for line in result.ledger), "a line is overspent")


def _sums_are_bounded(method: Method) -> None:
    """Adding a trajectory changes each answer by at most its sensitivity, given the same earlier answers.

    Vectors of sums change by at most 1 in the L1 norm. Scores (tables) change by at most half the sensitivity that
    `choose` passes on. Records (tables at full resolution) are covered by the bound of their values. All answers
    together cost at most ε: the sum of the changes, each in units of its sensitivity and times its share. Given the
    answers and the seed, the output is the same: nothing reaches it except through the mechanism, not even through the
    state of the random generator. (Reports of the local model do not go through these calls.)
    """
    base, extra = walks(120), walks(1, seed=9, centre_m=4_000.0)
    short = Trajectories(np.array([0, 1]), extra.lon[:1], extra.lat[:1], extra.t_utc[:1])
    for added in (extra, short):
        before = _Replay()
        after = _Replay(before)
        one_made = method(base, SCOPE, 1, noise=before, n=5, seed=0).trajectories
        other_made = method(concatenate([base, added]), SCOPE, 1, noise=after, n=5, seed=0).trajectories
        cost = Fraction(0)
        for (one, limit, share), (other, _, _) in zip(before.asked, after.asked):
            _require(one.shape == other.shape, "the size of an answer depends on the data")
            moved = np.abs(one - other)
            if one.ndim == 1:
                _require(moved.sum() <= limit, f"a sum moves by {moved.sum() / limit:.3g} of its sensitivity")
                cost += share * int(moved.sum()) / limit
            else:
                _require(limit == RESOLUTION or 2 * moved.max(initial=0) <= limit, "a score moves too much")
                cost += share
        _require(cost <= 1, f"all answers together cost {float(cost):.3g} of epsilon")
        _require(method.local or one_made == other_made, "the output depends on more than the answers and the seed")


def _outside_does_not_count(method: Method) -> None:
    """A trajectory without any point in the scope changes nothing in the default mode.

    In the local model every device counts, whatever it holds, because their number is public.
    """
    if method.local:
        return
    far = Trajectories(np.array([0, 2]), np.array([50.0, 50.1]), np.array([40.0, 40.1]), np.array([0.0, 1.0]))
    data = walks(100)
    one, other = (
        method(each, SCOPE, 1, noise=NoNoise(), seed=0, n=20).trajectories for each in (data, concatenate([data, far]))
    )
    _require(one == other, "a trajectory outside the scope changes the output")


def _no_data_is_no_failure(method: Method) -> None:
    """Without data the default mode makes n trajectories; the published mode raises InputError."""
    _require(len(method(EMPTY, SCOPE, 1, n=20, seed=0).trajectories) == 20, "n= is ignored without data")
    _refuses(lambda: method(EMPTY, SCOPE, 1, published=True))


def _bad_settings_are_refused(method: Method) -> None:
    """ε of zero and n of zero raise InputError, before anything is drawn."""
    _refuses(lambda: method(walks(20), SCOPE, 0))
    _refuses(lambda: method(walks(20), SCOPE, 1, n=0))


def _refuses(call: Callable[[], object]) -> None:
    try:
        call()
    except InputError as error:
        _require("\n" not in str(error), "the message has several lines")
        return
    raise ConformanceError("no InputError was raised")


CHECKS: dict[str, Callable[[Method], None]] = {
    "output inside the scope, no NaN": _output_is_sane,
    "seeds and n": _seed_and_number,
    "private flag honest": _flag_is_honest,
    "ledger adds up": _ledger_adds_up,
    "sums bounded by 1": _sums_are_bounded,
    "outside the scope not counted": _outside_does_not_count,
    "no data, no failure": _no_data_is_no_failure,
    "bad settings refused": _bad_settings_are_refused,
}


@dataclass(frozen=True)
class Conformance:
    """One check of one method; `problem` is empty if it passed."""

    method: str
    check: str
    problem: str


def check_method(method: Method) -> list[Conformance]:
    """All checks of one method.

    Examples
    --------
    >>> from wayveil.baselines import load
    >>> from wayveil.baselines.conformance import check_method
    >>> [found.problem for found in check_method(load("adatrace")) if found.problem]
    []

    Privacy: free (simulated data).
    """
    found = []
    for name, check in CHECKS.items():
        try:
            check(method)
        except Exception as error:
            found.append(Conformance(method.name, name, f"{type(error).__name__}: {error}".splitlines()[0]))
        else:
            found.append(Conformance(method.name, name, ""))
    return found
