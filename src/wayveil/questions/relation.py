"""The paper's idea with public anchors: how a whole trajectory, time included, relates to a few known ones."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.core.waypoints import waypoints
from wayveil.privacy.fixedpoint import clip_l1, quantise
from wayveil.questions.question import Features

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

RELATION_RESOLUTION = 1 << 16


@dataclass(frozen=True, eq=False)
class Relation:
    """φ_k(T) = softmax_k(−d(T, A_k)² / 2h²), d the root mean square distance over way-points and time.

    A partition of unity over the anchors, so ‖φ‖₁ = 1 for any number of anchors. The anchors are public, or drawn
    from earlier noisy answers.
    """

    anchors: NDArray[np.float64]
    """(k, way-points, 3): x and y in metres, elapsed time times `time_scale_mps`, at equal arc length."""
    bandwidth_m: float
    time_scale_mps: float = 0.0
    name: str = "relation"
    resolution: int = RELATION_RESOLUTION

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.anchors),)

    def features(self, batch: "Prepared") -> Features:
        points = _vectors(batch, self.anchors.shape[1], self.time_scale_mps)
        shares = _softmax(-_squared_distances(points, self.anchors) / (2 * self.bandwidth_m**2))
        return _dense(shares, self.resolution)


@dataclass(frozen=True, eq=False)
class AnchorDistance:
    """φ_k(T) = d(T, A_k) / (K·λ'): the paper's literal query to K public anchors, with its true cost.

    The paper's λ = sqrt(n(4r² + τ²)) bounds the distance of two aligned trajectories of n points in a map of diameter
    2r over a time span τ. Here d is that distance between n way-points, so d ≤ λ, and K answers together move by up to
    K·λ: each is scaled by 1/(K·λ) to reach L1 norm 1, which is why it needs K times the noise of one.
    """

    anchors: NDArray[np.float64]
    diameter_m: float
    span_m: float
    """τ in metres: the cap on duration times `time_scale_mps`."""
    time_scale_mps: float = 0.0
    name: str = "anchor_distance"
    resolution: int = RELATION_RESOLUTION

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.anchors),)

    @property
    def sensitivity_m(self) -> float:
        """λ = sqrt(n(4r² + τ²))."""
        return float(np.sqrt(self.anchors.shape[1] * (self.diameter_m**2 + self.span_m**2)))

    def features(self, batch: "Prepared") -> Features:
        points = _vectors(batch, self.anchors.shape[1], self.time_scale_mps)
        mean_square = _squared_distances(points, self.anchors)
        distance = np.sqrt(mean_square * self.anchors.shape[1])
        shares = np.minimum(distance / self.sensitivity_m, 1.0) / len(self.anchors)
        return _dense(shares, self.resolution)


def _vectors(batch: "Prepared", count: int, time_scale_mps: float) -> NDArray[np.float64]:
    return waypoints(batch.offsets, batch.x_m, batch.y_m, batch.t_utc, count, time_scale_mps)


def _squared_distances(points: NDArray[np.float64], anchors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the way-points of the squared distance, for each pair.

    A row must not depend on its neighbours in the batch, so terms are added in a fixed order, value by value, and not
    by a blocked matrix product.
    """
    result = np.zeros((len(points), len(anchors)))
    for k in range(anchors.shape[1]):
        for axis in range(anchors.shape[2]):
            result += (points[:, None, k, axis] - anchors[None, :, k, axis]) ** 2
    answer: NDArray[np.float64] = result / anchors.shape[1]
    return answer


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    # Column by column, for the same reason: how a sum along a row is grouped must not hang on the batch's shape.
    total = np.zeros(len(weights))
    for column in weights.T:
        total += column
    result: NDArray[np.float64] = weights / total[:, None]
    return result


def _dense(shares: NDArray[np.float64], resolution: int) -> Features:
    rows, columns = shares.shape
    # Quantising rounds towards zero, but a float sum of shares may exceed 1 by a few ulp: the bound is made exact.
    weight = clip_l1(quantise(shares, resolution), None, rows, resolution)
    return Features(np.repeat(np.arange(rows), columns), np.tile(np.arange(columns), rows), weight.ravel())
