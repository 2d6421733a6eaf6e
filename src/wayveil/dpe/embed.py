"""Trajectory embedding: vectors in R^D' whose metric sums match the trajectories' (Section "Trajectory Embedding")."""

import numpy as np
from numpy.typing import NDArray

from wayveil.dpe.descent import Descent, Settings, descend
from wayveil.dpe.kernel import default_plan
from wayveil.dpe.memory import check_memory
from wayveil.errors import InputError
from wayveil.progress import Progress, quiet

STARTS = ("random", "original")


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
    *,
    start: str | None = None,
    seed: int = 0,
    progress: Progress = quiet,
) -> Descent:
    """T' in R^D' that minimises L of sum_j d(T_i, T_j) - sum_j d(T'_i, T'_j), Eq. (target function).

    With D' = D the originals serve as the start (`start="original"`, the default there) and nothing is left to do.

    Privacy: not private (trusted side only).
    """
    if dim < 1:
        raise InputError("The embedding needs at least one dimension; set dim= to 1 or more.")
    own = vectors.shape[1]
    start = start or ("original" if dim == own else "random")
    if start not in STARTS:
        raise InputError(f"start must be one of {', '.join(STARTS)}.")
    if start == "original":
        if dim != own:
            raise InputError(
                f"The descent can start from the originals only if dim= is {own}; otherwise it must start at random."
            )
        return Descent(np.asarray(vectors, np.float64), (), np.zeros(len(vectors)))
    check_memory(len(vectors), dim, default_plan(len(vectors), settings.precision))
    first = random_start(vectors, dim, np.random.default_rng(seed))
    return descend(first, sums, settings, stage="embedding", progress=progress)
