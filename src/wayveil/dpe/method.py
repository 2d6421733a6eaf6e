"""All steps of the method in order.

Align, sum, embed, transform, perturb, synthesise, transform back, as in the paper's Section "Method".
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.dpe.align import Aligned
from wayveil.dpe.descent import Compared, Settings, descend, sums_of
from wayveil.dpe.embed import embed
from wayveil.dpe.metrics import EUCLIDEAN, Metric, metric_of
from wayveil.dpe.penalties import Term, total
from wayveil.dpe.perturb import perturb
from wayveil.dpe.transform import Transform, back, fit_transform
from wayveil.errors import InputError
from wayveil.progress import Progress, part, quiet


@dataclass(frozen=True)
class Options:
    """Everything that the paper leaves open; the defaults are our choices."""

    epsilon: float
    dim: int | None = None
    """D'; None means D: descent starts from the originals, without a transform."""
    embedding: Settings = field(default_factory=Settings)
    synthesis: Settings = field(default_factory=Settings)
    metric: Metric = EUCLIDEAN
    seed: int = 0
    time_scale_mps: float | None = None
    """Metres that one second counts as; 0 ignores time; None: see `coordinates.frame_of`."""
    extend: bool = True
    """Whether shorter trajectories are extended to the length of the longest, if the metric needs equal lengths."""
    rules_factor: float = 1.0
    """Factor of the penalty terms of traffic rules."""

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise InputError("epsilon= must be a number above 0.")
        if self.dim is not None and self.dim < 1:
            raise InputError("The embedding needs at least one dimension; set dim= to 1 or more.")
        if not (np.isfinite(self.rules_factor) and self.rules_factor >= 0):
            raise InputError("rules_factor= must be 0 or a positive number.")


@dataclass(frozen=True, eq=False)
class Run:
    """The results of every step of a run. None of them is private."""

    points: NDArray[np.float64]
    """(m, n, k) perturbed trajectories in original coordinates."""
    true_sums: NDArray[np.float64]
    noisy_sums: NDArray[np.float64]
    embedded: NDArray[np.float64]
    transform: Transform | None
    losses: tuple[float, ...]


def dpe(
    aligned: Aligned,
    largest: float,
    options: Options,
    terms: Sequence[Term] = (),
    progress: Progress = quiet,
) -> Run:
    """DPE on aligned trajectories; `largest` is lambda, see `perturb.sensitivity`.

    Privacy: not private, for any epsilon.
    """
    vectors = aligned.vectors
    metric = options.metric
    if len(vectors) < 2:
        raise InputError("The method compares trajectories with each other and needs at least two.")
    dim = options.dim or vectors.shape[1]
    if metric.distance is not None and dim != vectors.shape[1]:
        raise InputError(f"The metric '{metric.name}' needs points, so dim= must be left out.")
    if metric.needs_alignment and not aligned.extended and len(np.unique(aligned.counts)) > 1:
        raise InputError(
            f"The trajectories have different lengths, which the metric '{metric.name}' cannot compare; leave out "
            "extend=False, or use metric='frechet'."
        )
    rng = np.random.default_rng([options.seed, 1])  # not the stream of the random start
    progress("metric sums", 0.0)
    true_sums = sums_of(aligned, metric, options.synthesis.precision)
    embedded, transform = np.asarray(vectors, np.float64), None
    if dim != vectors.shape[1]:  # otherwise the originals are an embedding with the wanted sums
        embedded = embed(vectors, true_sums, dim, options.embedding, options.seed, progress).vectors
        transform = fit_transform(embedded, vectors)
    noisy_sums = perturb(true_sums, largest, options.epsilon, rng)
    shape = aligned.points.shape

    def penalty(moved: Any) -> Any:
        return total(terms, back(moved, transform).reshape(shape))

    # From T', minimise L of sum_j d(T'_pi, T'_pj) - d~_s,i plus the penalties of f_t(T'_p), Eq. (task). The start was
    # computed from the data, so this is not post-processing.
    final = descend(
        embedded,
        noisy_sums,
        options.synthesis,
        compared=Compared(metric, aligned),
        penalty=penalty if terms else None,
        progress=part(progress, "synthesis", 0.0, 1.0),
    )
    points = back(final.vectors, transform).reshape(shape)
    return Run(points, true_sums, noisy_sums, embedded, transform, final.losses)


def options_of(
    epsilon: float,
    dim: int | None = None,
    loss: str = "mean-square",
    learning_rate: float = 0.1,
    iterations: int = 100,
    metric: str = "euclidean",
    smoothing: float = 50.0,
    precision: str | None = None,
    seed: int = 0,
) -> Options:
    """Options from plain values, the same settings for both descents."""
    settings = Settings(loss, learning_rate, iterations, precision=precision)
    return Options(epsilon, dim, settings, settings, metric_of(metric, smoothing), seed)
