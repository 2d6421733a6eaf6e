"""Embedding space transformation: f_t(T') = w T' + b by least squares, Eq. (transformation function)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError


@dataclass(frozen=True, eq=False)
class Transform:
    """f_t(T') = T' weights + bias; `weights` is (D', D), `bias` (D,)."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    def __call__(self, embedded: Any) -> Any:
        """Embedding space -> original space, for numpy and jax arrays (m, D')."""
        return embedded @ self.weights + self.bias


def back(vectors: Any, transform: Transform | None) -> Any:
    """T_p = f_t(T'_p); without a transform (D' = D, started from the originals) T'_p is T_p already."""
    return vectors if transform is None else transform(vectors)


def fit_transform(embedded: NDArray[np.floating], vectors: NDArray[np.floating]) -> Transform:
    """The w and b that minimise sum_i |w T'_i + b - T_i|^2.

    Privacy: not private (trusted side only): it is fitted on the originals.
    """
    if len(embedded) != len(vectors):
        raise InputError("The embedding and the originals have different numbers of trajectories.")
    embedded_mean, mean = embedded.mean(axis=0), vectors.mean(axis=0)
    weights, *_ = np.linalg.lstsq(embedded - embedded_mean, vectors - mean, rcond=None)
    return Transform(weights, mean - embedded_mean @ weights)
