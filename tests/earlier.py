"""Releases as they were before the middle and the fine cells of a field were asked together, and top speeds at all."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from wayveil.plan import DETAILS, YOUNGER
from wayveil.privacy.unit import Unit
from wayveil.release import Answer, Release
from wayveil.synthesis.fields import noisy_levels


def earlier_release(release: Release, names: tuple[str, ...] = DETAILS) -> Release:
    """The release with each detail as two answers, middle and fine, that cost half of it each.

    Younger answers are not there; lengths cost what these did.
    """
    answers = []
    for answer in release.answers:
        answers += _apart(release, answer) if answer.name in names else [answer]
    spared = sum(answer.epsilon for answer in answers if answer.name in YOUNGER)
    kept = [answer for answer in answers if answer.name not in YOUNGER]
    return replace(
        release, answers=tuple(_dearer(answer, spared) if answer.name == "length" else answer for answer in kept)
    )


def _dearer(answer: Answer, by: Fraction) -> Answer:
    cost = answer.epsilon + by
    return replace(answer, epsilon=cost, scale=answer.scale * float(answer.epsilon / cost))


def _apart(release: Release, detail: Answer) -> list[Answer]:
    name = detail.name.partition("/")[0]
    resolution, share = release[f"{name}/coarse"].resolution, detail.epsilon / 2
    scale = resolution * Unit(release.unit, release.max_per_user).sensitivity / float(share)
    return [
        Answer(
            f"{name}/{level}",
            {"side": noisy.side, "cell_m": detail.parameters["cell_m"]},
            noisy.counts.shape,
            resolution,
            "laplace",
            scale,
            share,
            np.rint(noisy.counts * resolution).astype(np.int64).ravel(),
        )
        for level, noisy in zip(("middle", "fine"), noisy_levels(release, name)[1:], strict=True)
    ]
