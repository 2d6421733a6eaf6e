"""The estimator of tables: noisy counts around the product of the estimated margins.

Privacy: free (post-processing).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.questions import priors
from wayveil.questions.answer import Answer
from wayveil.questions.table import Table
from wayveil.synthesis.estimate.estimates import Distribution, JointDistribution
from wayveil.synthesis.estimate.estimators.estimation import Estimation
from wayveil.synthesis.estimate.histogram import estimate_table
from wayveil.synthesis.estimate.weekly import estimate_week

Shares = NDArray[np.float64]


def estimate_joint(known: Estimation, quantity: str) -> dict[str, JointDistribution]:
    """Shares of each cell of the quantity's finest table, adding up to one."""
    (answer,) = known.answers[quantity]
    question = answer.question
    assert isinstance(question, Table)
    rows, columns = question.finest_bins(known.scope)
    shares = _BY_PRIOR[type(question.prior)](answer, question, question.prior, known)
    return {quantity: JointDistribution(rows, columns, shares)}


def _independent(answer: Answer, table: Table, prior: priors.Independent, known: Estimation) -> Shares:
    of_rows, of_columns = (
        coarsened(known[axis], bins) for axis, bins in zip(table.axes, (table.rows, table.columns), strict=True)
    )
    possible = None
    if prior.columns_reach_rows:
        possible = np.asarray(table.columns.edges)[None, 1:] >= np.asarray(table.rows.edges)[:-1, None]
        possible[:, -1] = True
    affinities = [
        None if spread is None else _same_ratio(table.rows, table.columns, of_rows, of_columns, spread)
        for spread in prior.ratio_spreads
    ]
    return estimate_table(answer, of_rows, of_columns, known.count, possible, affinities)


def _weekly_rhythm(answer: Answer, table: Table, prior: priors.WeeklyRhythm, known: Estimation) -> Shares:
    return estimate_week(known["departure_hour"].shares, answer.counts, answer.noise, known.everyone.count)


_BY_PRIOR: dict[type, Callable[[Answer, Table, Any, Estimation], Shares]] = {
    priors.Independent: _independent,
    priors.WeeklyRhythm: _weekly_rhythm,
}


def coarsened(distribution: Distribution, bins: Bins) -> Shares:
    """A distribution's shares on coarser bins."""
    edges = np.asarray(distribution.bins.edges)
    index = bins.index((edges[1:] + edges[:-1]) / 2)
    return np.asarray(np.bincount(index, distribution.shares, minlength=len(bins)), np.float64)


def _same_ratio(rows: Bins, columns: Bins, row_share: Shares, column_share: Shares, spread: float) -> Shares:
    """Positive correlation: a lognormal factor around the ratio of the two medians."""
    row, column = rows.geometric_middles, columns.geometric_middles
    typical = np.log(_median(row, row_share) / _median(column, column_share))
    ratio = np.log(row[:, None] / column[None, :])
    result: Shares = np.exp(-0.5 * ((ratio - typical) / spread) ** 2) + 1e-4
    return result


def _median(value: Shares, share: Shares) -> float:
    return float(value[np.searchsorted(np.cumsum(share), 0.5 * share.sum())])
