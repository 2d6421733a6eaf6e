"""Trajectory embedding: vectors in R^D' whose metric sums match the trajectories' (Section "Trajectory Embedding")."""

import numpy as np
from numpy.typing import NDArray

from wayveil.dpe.descent import Descent, Settings, descend
from wayveil.dpe.kernel import default_plan
from wayveil.dpe.memory import check_memory
from wayveil.progress import Progress, part, quiet


def random_start(vectors: NDArray[np.floating], dim: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Normal vectors (m, D') with the spread of the original coordinates.

    The paper says "randomly generate"; the spread is our choice, so that the descent starts at the right size.
    """
    spread = float(np.asarray(vectors, np.float64).std(axis=0).mean())
    return rng.normal(scale=spread or 1.0, size=(len(vectors), dim))


def embed(
    vectors: NDArray[np.floating],
    sums: NDArray[np.floating],
    dim: int,
    settings: Settings,
    seed: int = 0,
    progress: Progress = quiet,
) -> Descent:
    """T' in R^D' that minimises L of sum_j d(T_i, T_j) - sum_j d(T'_i, T'_j), Eq. (target function).

    The start is random.

    Privacy: not private (trusted side only).
    """
    check_memory(len(vectors), dim, default_plan(len(vectors), settings.precision))
    first = random_start(vectors, dim, np.random.default_rng(seed))
    return descend(first, sums, settings, progress=part(progress, "embedding", 0.0, 1.0))
