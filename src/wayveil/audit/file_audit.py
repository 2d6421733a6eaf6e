"""`audit`: every attack on one synthetic file, given the real data, and a verdict."""

import math
import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wayveil.audit import attacks
from wayveil.audit.attacks import Linked, Vectors, shapes
from wayveil.audit.bounds import CONFIDENCE, rate
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, select
from wayveil.dpe.align import align
from wayveil.errors import InputError
from wayveil.evaluation import HEADLINE, evaluate
from wayveil.evaluation.floor import FEWEST
from wayveil.io.files import read, read_synthetic
from wayveil.io.scope_files import scope_of
from wayveil.progress import Progress, quiet

_NO_EPSILON_SHARE = 0.6
"""Largest share of correct membership guesses that passes if no ε is given; a coin has 0.5."""
_SAME_BOX_M = 0.5
"""Metres: if the two bounding boxes differ by less, the synthetic one was probably taken from the data."""
_UNNOTICED = 0.05
"""Where this share of copies could go unnoticed, there are too few trajectories to judge: 149 are enough at 99.9 %."""
_GIVEN_AWAY = 0.1
"""Share of a blind guess's error below which a record counts as reconstructed."""


@dataclass(frozen=True)
class Test:
    """One attack: its result, the value that a private release may reach, and what is measured."""

    test: str
    passed: bool | None
    """None: there is no limit, or the result is only a remark."""
    value: float
    low: float | None
    high: float | None
    allowed: float | None
    meaning: str

    __test__ = False  # pytest must not collect this class


@dataclass(frozen=True, repr=False)
class AuditReport:
    """The verdict on one synthetic file, with one test per attack.

    Examples
    --------
    >>> import wayveil
    >>> print(wayveil.audit_synthetic("rides.csv", "synthetic.parquet", "my-city.toml"))  # doctest: +SKIP

    Privacy
    -------
    Not private (trusted side only); computed from the private data, not for publication.
    """

    tests: tuple[Test, ...]
    epsilon: float | None
    confidence: float
    compared: int
    """The number of trajectories of the smaller side: real or synthetic."""

    @property
    def passed(self) -> bool:
        """Whether no test failed, and there were enough trajectories to judge."""
        return not self.failed and not self.too_few

    @property
    def failed(self) -> tuple[str, ...]:
        """The tests that failed."""
        return tuple(test.test for test in self.tests if test.passed is False)

    @property
    def unnoticed(self) -> float:
        """The largest share of trajectories that may be copies although the attacks find none of them."""
        return rate(0, self.compared, self.confidence).high

    @property
    def too_few(self) -> bool:
        """Whether there are too few trajectories to judge, so that a test without a finding shows nothing."""
        return self.unnoticed > _UNNOTICED

    def word(self, test: Test) -> str:
        """The result of one test: passed, failed, too few (trajectories to judge) or remark."""
        if test.passed is None:
            return "remark"
        return "failed" if not test.passed else "too few" if self.too_few else "passed"

    @property
    def verdict(self) -> str:
        """The conclusion from all tests, as one sentence."""
        if self.failed:
            return f"Do not publish this file: it reveals single records ({', '.join(self.failed)})."
        if self.too_few:
            return (
                f"The sample is too small to judge: with {self.compared:,} trajectories, {self.unnoticed:.0%} of them "
                "could be copies and the attacks might find none."
            )
        return (
            "No attack found more than a private release may show. This does not prove privacy: only the method "
            "that made the file can be proven private."
        )

    def __repr__(self) -> str:
        word = "FAILED" if self.failed else "too few trajectories" if self.too_few else "passed"
        return f"AuditReport({word}, {len(self.failed)} of {len(self.tests)} tests failed)"

    def __str__(self) -> str:
        width = max((len(test.test) for test in self.tests), default=0)
        words = [self.word(test).replace("failed", "FAILED") for test in self.tests]
        lines = [f"{word:<7} {test.test:<{width}}  {test.value:.4g}" for word, test in zip(words, self.tests)]
        return "\n".join([*lines, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `wayveil report --internal --audit` reads them."""
        return {
            "verdict": self.verdict,
            "passed": None if self.too_few and not self.failed else self.passed,
            "epsilon": self.epsilon,
            "confidence": self.confidence,
            "tests": [asdict(test) for test in self.tests],
        }


def audit_synthetic(
    real: Any,
    synthetic: Any,
    scope: Scope | str | os.PathLike[str],
    *,
    epsilon: float | None = None,
    holdout: Any | None = None,
    confidence: float = CONFIDENCE,
    progress: Progress = quiet,
    **columns: Any,
) -> AuditReport:
    """Run every attack on synthetic trajectories, given the real ones: linkage, membership, reconstruction, floor.

    Parameters
    ----------
    real, synthetic
        Trajectories, frames or files, as `wayveil.read` takes them; `synthetic` may also be the result of
        `wayveil.synthesize`.
    scope
        A `Scope`, a file, or the name of a shipped one.
    epsilon
        The promised ε of the synthetic data; membership is judged against tanh(ε/2).
    holdout
        Trajectories of the same population that were split off at random and not used for the synthetic data.
        Without them membership cannot be judged.
    confidence
        The confidence level of every interval and bound.
    columns
        Options of `wayveil.read` for the private data; a synthetic file has wayveil's own columns.

    Returns
    -------
    AuditReport
        `print` it; `passed` is False if the synthetic data reveals single records, or if there are too few
        trajectories to judge (`too_few`).

    Examples
    --------
    >>> import wayveil
    >>> city = wayveil.simulate.simulate_city(size_km=(3, 3))
    >>> rides = wayveil.simulate.simulate_trajectories(city, 100)
    >>> wayveil.audit_synthetic(rides, rides, city.scope).passed  # a copy of the data
    False

    Privacy
    -------
    Not private (trusted side only).
    """
    if epsilon is not None and not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError("epsilon= must be a number above 0.")
    if not 0.5 <= confidence < 1:
        raise InputError("confidence= must be at least 0.5 and below 1.")
    frame = scope_of(scope)
    true, output = _opened(real, columns), _opened_synthetic(synthetic, columns)
    others = None if holdout is None else _opened(holdout, columns)
    if len(true) < FEWEST or len(output) < 1:
        raise InputError(f"An audit needs at least {FEWEST} real trajectories and one synthetic one; check the files.")
    if others is not None and len(others) < FEWEST:
        raise InputError(f"An audit needs at least {FEWEST} held-out trajectories; give more with holdout=, or none.")
    progress("linkage", 0.0)
    true_shapes, output_shapes = shapes(true, frame), shapes(output, frame)
    drawn = select(output, attacks.sample(output, attacks.MOST_COMPARED))
    tests = _copies(true_shapes, shapes(drawn, frame), confidence)
    if len(true) == len(output):
        tests.append(_own(true_shapes, output_shapes, confidence))
        if np.array_equal(true.offsets, output.offsets):
            tests.append(_centroid(true, output, frame))
    progress("linkage", 1.0)
    if others is not None:
        tests += _against_holdout(true_shapes, output_shapes, shapes(others, frame), epsilon, confidence)
    tests.append(_floor(true, output, frame, progress))
    tests += _frame(true, output, frame)
    return AuditReport(tuple(tests), epsilon, confidence, min(len(true), len(drawn)))


def _opened(data: Any, columns: dict[str, Any]) -> Trajectories:
    return data if isinstance(data, Trajectories) else read(data, **columns)


def _opened_synthetic(data: Any, columns: dict[str, Any]) -> Trajectories:
    """Trajectories of a file, a frame, or a result of `wayveil.synthesize`."""
    inside: Any = getattr(data, "trajectories", None)
    if isinstance(inside, Trajectories):
        return inside
    return read_synthetic(data, columns) if isinstance(data, str | os.PathLike) else _opened(data, columns)


def _linked(name: str, found: Linked, meaning: str) -> Test:
    share = found.share
    return Test(name, share.low <= found.allowed, share.value, share.low, share.high, found.allowed, meaning)


def _copies(real: Vectors, synthetic: Vectors, confidence: float) -> list[Test]:
    metres = attacks.nearness(real, synthetic)
    return [
        _linked("nearest-neighbour linkage", attacks.near_copies(*metres, confidence),
                "share of synthetic trajectories nearer to a real one than 19 of 20 real ones are to each other"),
        _linked("exact copies", attacks.exact_copies(*metres, confidence),
                "share of synthetic trajectories within one metre of a real one"),
    ]  # fmt: skip


def _own(real: Vectors, synthetic: Vectors, confidence: float) -> Test:
    return _linked(
        "linkage by position", attacks.own_linkage(real, synthetic, confidence),
        "share of synthetic trajectories whose nearest real one has the same position in the file",
    )  # fmt: skip


def _centroid(real: Trajectories, synthetic: Trajectories, scope: Scope) -> Test:
    records, output = (
        align(np.stack(scope.to_metres(part.lon, part.lat), axis=1), part.offsets).points for part in (real, synthetic)
    )
    error_m, guess_m = attacks.centroid_error_m(records, output)
    allowed = _GIVEN_AWAY * guess_m
    return Test(
        "centroid reconstruction", error_m >= allowed, error_m, None, None, allowed,
        "error in metres when the last record is computed from the sum of the output by someone who knows all "
        "others; the limit is a tenth of the error of a guess",
    )  # fmt: skip


def _against_holdout(
    real: Vectors, synthetic: Vectors, holdout: Vectors, epsilon: float | None, confidence: float
) -> list[Test]:
    share = _NO_EPSILON_SHARE if epsilon is None else 1.0 / (1.0 + math.exp(-epsilon))
    few = synthetic[np.random.default_rng(0).permutation(len(synthetic))[: attacks.MOST_COMPARED]]
    found = attacks.linkage(real, few, holdout, share, confidence)
    guessed = attacks.membership(real, holdout, synthetic, confidence)
    limit = None if epsilon is None else math.tanh(epsilon / 2)
    return [
        _linked("linkage against the hold-out", found,
                "share of the records nearest to synthetic ones that were in the data; one half if nothing leaked"),
        Test("membership inference", None if limit is None else guessed.low <= limit, guessed.value, guessed.low,
             guessed.high, limit, "advantage in guessing who was in the data; epsilon allows tanh(epsilon/2)"),
    ]  # fmt: skip


def _floor(real: Trajectories, synthetic: Trajectories, scope: Scope, progress: Progress) -> Test:
    below = evaluate(real, synthetic, scope, metrics=HEADLINE, progress=progress).below_floor
    named = f" ({', '.join(below)})" if below else ""
    return Test(
        "below the floor", not below, float(len(below)), None, None, 0.0,
        "metrics that are better than a fresh sample of the same population would be, which indicates copies" + named,
    )  # fmt: skip


def _frame(real: Trajectories, synthetic: Trajectories, scope: Scope) -> list[Test]:
    """Remarks: values that a careless method takes from the data, but that may be equal for other reasons."""
    remarks = []
    if len(real) == len(synthetic):
        remarks.append(Test(
            "equal count", None, float(len(synthetic)), None, None, None,
            "as many synthetic as real trajectories: fine if that number was requested or public, otherwise a leak",
        ))  # fmt: skip
    boxes = []
    for part in (real, synthetic):
        x_m, y_m = scope.to_metres(part.lon, part.lat)
        boxes.append(np.array([x_m.min(), x_m.max(), y_m.min(), y_m.max()]))
    apart_m = float(np.abs(boxes[0] - boxes[1]).max())
    if apart_m <= _SAME_BOX_M:
        remarks.append(Test(
            "equal box", None, apart_m, None, None, None,
            "metres between the bounding boxes of real and synthetic data: a box taken from the data reveals the "
            "outermost records",
        ))  # fmt: skip
    return remarks
