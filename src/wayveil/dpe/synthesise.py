"""Trajectory synthesis: re-embed from T' towards the noisy sums, penalties included, and go back through f_t."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.dpe.align import Aligned
from wayveil.dpe.descent import Descent, Settings, descend
from wayveil.dpe.metrics import EUCLIDEAN, Metric
from wayveil.dpe.penalties import Term, total
from wayveil.dpe.transform import Transform
from wayveil.progress import Progress, quiet


def synthesise(
    embedded: NDArray[np.floating],
    noisy_sums: NDArray[np.floating],
    settings: Settings,
    aligned: Aligned,
    *,
    transform: Transform | None = None,
    terms: Sequence[Term] = (),
    metric: Metric = EUCLIDEAN,
    progress: Progress = quiet,
) -> Descent:
    """T'_p: from T', minimise L of sum_j d(T'_pi, T'_pj) - d~_s,i plus the penalties of f_t(T'_p), Eq. (task).

    Privacy: not private. It starts from T', which was computed from the data; nothing here is post-processing.
    """
    shape = aligned.points.shape

    def penalty(vectors: Any) -> Any:
        return total(terms, back(vectors, transform).reshape(shape))

    return descend(
        embedded,
        noisy_sums,
        settings,
        metric=metric,
        aligned=aligned,
        penalty=penalty if terms else None,
        stage="synthesis",
        progress=progress,
    )


def back(vectors: Any, transform: Transform | None) -> Any:
    """T_p = f_t(T'_p); without a transform (D' = D, started from the originals) T'_p is T_p already."""
    return vectors if transform is None else transform(vectors)
