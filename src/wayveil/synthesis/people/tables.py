"""Tables about people, estimated from the noisy answers.

Tables about times are compared with those of people with several rhythms, the first of which is none. All other tables
are compared with those of people whose trips have nothing in common.

Privacy: free (post-processing).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.questions.answer import Answer
from wayveil.questions.catalogue import PEOPLE_QUESTIONS
from wayveil.questions.people import PEOPLE_PREFIX, PersonQuestion
from wayveil.synthesis.people.posterior import Observed, jointly, posterior_mean, projected

Floats = NDArray[np.float64]
Tables = Mapping[str, Floats]
"""Tables of the questions about people, by the name of the question."""

BY_CLASS = ("days", "places", "anchors")
"""Tables whose rows are classes of people by number of trips."""
ORDERED = ("days", "day_trips", "places", "gyration")
"""Tables whose columns are bins of one quantity, in order."""
OF_TIMES = ("days", "day_trips", "stays", "continuity")
"""Tables about times."""
USED = (*OF_TIMES, "dates", "places", "gyration", "anchors")
"""Tables that decide how people travel; numbers of trips are estimated elsewhere (`numbers`)."""
AT_RANDOM = 0.25
"""Prior probability of the first of several hypotheses, that trips belong to people at random."""
WIDTHS = (0.7, 1.2, 2.0)
"""Standard deviations, in bins, by which radii of gyration may differ because people prefer parts of the area."""
NOT_ARRANGED = 0.95
"""Prior probability that no trip is made to start where the previous one ended. Hardly any unrelated trips do, so a
small share that is only noise would make people much less like the real ones than random trips are."""
NEAR = tuple((share, fall) for share in (0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) for fall in (0.0, 0.1, 0.3))
"""Models of the share of trips that are made to start where the previous one ended: the share for the shortest gap, and
the power of e by which it falls from one gap to the next."""


def questions_asked(answers: Mapping[str, Answer], scope: Scope) -> dict[str, PersonQuestion]:
    """All questions about people, by name: as they were asked, or as they would be."""
    found = {}
    for kind, _ in PEOPLE_QUESTIONS:
        name = kind.name.removeprefix(PEOPLE_PREFIX)
        asked = answers[name].question if name in answers else None
        found[name] = asked if isinstance(asked, PersonQuestion) else kind(scope)
    return found


@dataclass(frozen=True, eq=False)
class NoisyTables:
    """The answers to the questions about people, and the number of people in each class of trips."""

    answers: Mapping[str, Answer]
    of_class: Floats

    def estimates(self, expected: Sequence[Tables]) -> dict[str, Floats]:
        """The estimated tables that are used; `expected` are the tables of each rhythm, first those without one."""
        unrelated = expected[0]
        found = self._of_times([{name: self._parts(name, one[name]) for name in self._times()} for one in expected])
        for name in (name for name in USED if name in self.answers and name not in found):
            parts = self._parts(name, unrelated[name])
            tables = [self._observed(name, row, _hypotheses(name, part)) for row, part in enumerate(parts)]
            rows = [jointly([table], _prior(len(table.expected))) for table in tables]
            found[name] = np.array(rows).reshape(unrelated[name].shape)
        if "continuity" in found:
            found["continuity"] = _continuity(self.answers["continuity"], found["continuity"].ravel(), unrelated)
        return found

    def _times(self) -> list[str]:
        return [name for name in OF_TIMES if name in self.answers]

    def _of_times(self, parts: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
        """The tables about times, estimated together; of continuity the gaps."""
        where = [(name, row) for name in self._times() for row in range(len(parts[0][name]))]
        tables = [self._observed(name, row, np.array([one[name][row] for one in parts])) for name, row in where]
        if not tables:
            return {}
        means = jointly(tables, _prior(len(parts)))
        found: dict[str, list[Floats]] = {}
        for (name, _), mean in zip(where, means):
            found.setdefault(name, []).append(mean)
        shapes = {name: self.answers[name].shape if name != "continuity" else (-1,) for name in found}
        return {name: np.array(rows).reshape(shapes[name]) for name, rows in found.items()}

    def _parts(self, name: str, table: Floats) -> Floats:
        """The rows of a table that are estimated one by one; of continuity the gaps, as a single row."""
        if name == "continuity":
            return np.asarray(table.sum(axis=1)[None], np.float64)
        rows = table.reshape(len(table) if name in BY_CLASS else 1, -1)
        if not (name in BY_CLASS and self.answers[name].question.one_hot):
            return rows
        scale = self.of_class / np.maximum(rows.sum(axis=1), 1e-9)
        return np.asarray(rows * scale[:, None], np.float64)

    def _observed(self, name: str, row: int, expected: Floats) -> Observed:
        answer = self.answers[name]
        sd = answer.noise * math.sqrt(2)
        if name == "continuity":
            return Observed(answer.counts.sum(axis=1), sd * math.sqrt(2), expected)
        noisy = answer.counts.reshape(-1, expected.shape[1])[row]
        return Observed(noisy, sd, expected, name in ORDERED)


def _hypotheses(name: str, unrelated: Floats) -> Floats:
    """The expected counts of each hypothesis (rows), first those of unrelated trips."""
    if name != "gyration":
        return unrelated[None]
    bins = np.arange(len(unrelated))
    kernels = [np.exp(-0.5 * (np.subtract.outer(bins, bins) / width) ** 2) for width in WIDTHS]
    return np.array([unrelated, *((kernel / kernel.sum(axis=0)) @ unrelated for kernel in kernels)])


def _prior(hypotheses: int) -> Floats:
    """Prior probabilities of hypotheses."""
    weight = np.r_[AT_RANDOM, np.full(hypotheses - 1, (1 - AT_RANDOM) / max(hypotheses - 1, 1))]
    return np.asarray(weight / weight.sum())


def _continuity(answer: Answer, gaps: Floats, unrelated: Tables) -> Floats:
    """The table of continuity, given the gaps: the share of each that is near is estimated by itself."""
    noisy, sd = answer.counts[:, 1], answer.noise * math.sqrt(2)
    whole = unrelated["continuity"].sum(axis=1)
    chance = np.divide(unrelated["continuity"][:, 1], whole, out=np.zeros_like(whole), where=whole > 0)
    arranged = np.array([0 * gaps, *(share * np.exp(-fall * np.arange(len(gaps))) for share, fall in NEAR)])
    near = posterior_mean(gaps * (arranged + (1 - arranged) * chance), noisy, sd, NOT_ARRANGED)
    near = np.minimum(projected(near, max(float(near.sum()), 0.0)), gaps)
    return np.column_stack([gaps - near, near])
