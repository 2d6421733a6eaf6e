"""`audit`: one synthetic file against the real data, attack by attack, with a verdict in words."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wayveil.audit import attacks
from wayveil.audit.attacks import Linked, Vectors, shapes
from wayveil.audit.bounds import CONFIDENCE
from wayveil.errors import InputError
from wayveil.progress import Progress, quiet
from wayveil.scope import Scope
from wayveil.trajectories import Trajectories, select

_NO_EPSILON_SHARE = 0.6
_SAME_BOX_M = 0.5
_GIVEN_AWAY = 0.1


@dataclass(frozen=True)
class Test:
    """One attack: what it found, what an honest release may show, and what that means."""

    test: str
    passed: bool | None
    """None: nothing to compare with, or a remark that proves nothing by itself."""
    value: float
    low: float | None
    high: float | None
    allowed: float | None
    meaning: str

    __test__ = False  # not one of pytest's


@dataclass(frozen=True)
class AuditReport:
    """The verdict on one synthetic file.

    Privacy: not private (trusted side only); computed from the private data, not for publication.
    """

    tests: tuple[Test, ...]
    epsilon: float | None
    confidence: float

    @property
    def passed(self) -> bool:
        return all(test.passed is not False for test in self.tests)

    @property
    def verdict(self) -> str:
        failed = [test.test for test in self.tests if test.passed is False]
        if failed:
            return f"Do not publish this file: it gives single records away ({', '.join(failed)})."
        return (
            "No attack found more than an honest release may show. That is no proof of privacy: only the method that "
            "made the file can be proven private."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `wayveil report --internal --audit` reads them."""
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "epsilon": self.epsilon,
            "confidence": self.confidence,
            "tests": [asdict(test) for test in self.tests],
        }


def audit(
    real: Trajectories,
    synthetic: Trajectories,
    scope: Scope,
    epsilon: float | None = None,
    *,
    holdout: Trajectories | None = None,
    confidence: float = CONFIDENCE,
    progress: Progress = quiet,
) -> AuditReport:
    """Run every attack that the given files allow.

    Parameters
    ----------
    epsilon
        What the maker of the synthetic file promised; membership is judged against tanh(ε/2).
    holdout
        Trajectories of the same population that the maker never saw, split off at random beforehand. Without them
        membership cannot be judged, and linkage is compared with how near real trajectories are to each other.

    Privacy: not private (trusted side only).
    """
    if epsilon is not None and not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError("--epsilon must be a number above 0.")
    if not 0.5 <= confidence < 1:
        raise InputError("--confidence must be at least 0.5 and below 1.")
    if len(real) < 20 or len(synthetic) < 1:
        raise InputError("An audit needs at least 20 real trajectories and one synthetic one; check the files.")
    if holdout is not None and len(holdout) < 20:
        raise InputError("An audit needs at least 20 held-out trajectories; give a larger --holdout, or none.")
    progress("linkage", 0.0)
    true_shapes = shapes(real, scope)
    drawn = select(synthetic, attacks.sample(synthetic, attacks.MOST))
    tests = _copies(true_shapes, shapes(drawn, scope), confidence)
    if len(real) == len(synthetic):
        tests.append(_own(true_shapes, shapes(synthetic, scope), confidence))
        if np.array_equal(real.offsets, synthetic.offsets):
            tests.append(_centroid(real, synthetic, scope))
    progress("linkage", 1.0)
    if holdout is not None:
        tests += _against_holdout(true_shapes, shapes(synthetic, scope), shapes(holdout, scope), epsilon, confidence)
    tests.append(_floor(real, synthetic, scope, progress))
    tests += _frame(real, synthetic, scope)
    return AuditReport(tuple(tests), epsilon, confidence)


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
        "share of synthetic trajectories whose nearest real one stands at the same place in the file",
    )  # fmt: skip


def _centroid(real: Trajectories, synthetic: Trajectories, scope: Scope) -> Test:
    from wayveil.paper.align import align

    records, output = (
        align(np.stack(scope.to_metres(part.lon, part.lat), axis=1), part.offsets).points for part in (real, synthetic)
    )
    error_m, guess_m = attacks.centroid_error_m(records, output)
    allowed = _GIVEN_AWAY * guess_m
    return Test(
        "centroid reconstruction", error_m >= allowed, error_m, None, None, allowed,
        "error in metres of the last record, read off the sum of the output by somebody who knows the others; allowed "
        "is a tenth of the error of a guess",
    )  # fmt: skip


def _against_holdout(
    real: Vectors, synthetic: Vectors, holdout: Vectors, epsilon: float | None, confidence: float
) -> list[Test]:
    share = _NO_EPSILON_SHARE if epsilon is None else 1.0 / (1.0 + math.exp(-epsilon))
    few = synthetic[np.random.default_rng(0).permutation(len(synthetic))[: attacks.MOST]]
    found = attacks.linkage(real, few, holdout, share, confidence)
    guessed = attacks.membership(real, holdout, synthetic, confidence)
    limit = None if epsilon is None else math.tanh(epsilon / 2)
    return [
        _linked("linkage against the hold-out", found,
                "share of the records nearest to synthetic ones that were in the data; a half if nothing leaked"),
        Test("membership inference", None if limit is None else guessed.low <= limit, guessed.value, guessed.low,
             guessed.high, limit, "advantage in guessing who was in the data; epsilon allows tanh(epsilon/2)"),
    ]  # fmt: skip


def _floor(real: Trajectories, synthetic: Trajectories, scope: Scope, progress: Progress) -> Test:
    from wayveil.evaluation import HEADLINE, evaluate

    below = evaluate(real, synthetic, scope, metrics=HEADLINE, progress=progress).below_floor
    named = f" ({', '.join(below)})" if below else ""
    return Test(
        "below the floor", not below, float(len(below)), None, None, 0.0,
        "metrics that are better than a fresh sample of the same population would be, which only copies are" + named,
    )  # fmt: skip


def _frame(real: Trajectories, synthetic: Trajectories, scope: Scope) -> list[Test]:
    """Remarks: values that a careless method takes from the data, and that may also be equal by chance or by order."""
    remarks = []
    if len(real) == len(synthetic):
        remarks.append(Test(
            "equal count", None, float(len(synthetic)), None, None, None,
            "as many synthetic as real trajectories: fine if that number was ordered or public, else a leak",
        ))  # fmt: skip
    boxes = []
    for part in (real, synthetic):
        x_m, y_m = scope.to_metres(part.lon, part.lat)
        boxes.append(np.array([x_m.min(), x_m.max(), y_m.min(), y_m.max()]))
    apart_m = float(np.abs(boxes[0] - boxes[1]).max())
    if apart_m <= _SAME_BOX_M:
        remarks.append(Test(
            "equal box", None, apart_m, None, None, None,
            "metres between the bounding boxes of real and synthetic data: a box taken from the data shows the records "
            "furthest out",
        ))  # fmt: skip
    return remarks


def audit_files(
    real: str,
    synthetic: str,
    scope: str,
    *,
    epsilon: float | None = None,
    holdout: str | None = None,
    confidence: float = CONFIDENCE,
    options: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
) -> AuditReport:
    """`audit` on files; the reading options are those of the private ones.

    Privacy: not private (trusted side only).
    """
    from wayveil.formats import read, read_synthetic
    from wayveil.scope import read_scope

    frame = read_scope(scope)
    read_as = dict(options or {})
    first, second = read(real, **read_as), read_synthetic(synthetic, read_as)
    held = None if holdout is None else read(holdout, **read_as)
    return audit(first, second, frame, epsilon, holdout=held, confidence=confidence, progress=progress)
