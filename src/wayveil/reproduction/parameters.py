"""The parameter experiment: error against D' and epsilon on 500 simulated trajectories of 100 points."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.dpe.align import Aligned
from wayveil.dpe.descent import Settings, descend_many, sums_of
from wayveil.dpe.embed import embed, random_start
from wayveil.dpe.perturb import perturb, sensitivity
from wayveil.dpe.random_walks import HALF_SIDE, diameter, random_walks
from wayveil.dpe.transform import back, fit_transform
from wayveil.progress import Progress, part, quiet
from wayveil.reproduction.tables import Row, new_figure, ready_folder, save_figure, write_table

LEARNING_RATE = 0.005
"""The paper's learning rate."""
HEAT_CELLS = 20
"""Cells of the heat map along each side."""
TOGETHER = 25
"""Number of epsilons whose descents run in one batch."""
MOST_SHOWN = 9
"""Maximum number of values of ε that get a line in the plot."""
NOTE = (
    "The error is var (1 - D'/(m-1)): what a least-squares fit of the originals on D' independent random columns "
    "leaves over. An untrained random embedding gives the same line (column mse_untrained), so the trend shows the "
    "number of regressors and says nothing about the embedding. With D' = D and the originals as start there is no "
    "fit at all."
)


def heat_map(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points in each of 20 x 20 cells of the box; points outside belong to the nearest cell."""
    cell = np.clip((points.reshape(-1, 2) + HALF_SIDE) / (2 * HALF_SIDE) * HEAT_CELLS, 0, HEAT_CELLS - 1).astype(int)
    return np.bincount(cell[:, 0] * HEAT_CELLS + cell[:, 1], minlength=HEAT_CELLS**2).astype(float)


def errors(points: NDArray[np.float64], original: NDArray[np.float64]) -> tuple[float, float]:
    """Mean squared error of the coordinates, and of the heat map's counts."""
    return (
        float(np.mean((points - original) ** 2)),
        float(np.mean((heat_map(points) - heat_map(original)) ** 2)),
    )


def grid(quick: bool, full: bool) -> tuple[list[int], list[float]]:
    """D' and epsilon: the paper's full grid, a thinner one by default, four corners for `quick`."""
    if quick:
        return [100, 200], [0.01, 1.0]
    if full:
        return list(range(100, 201, 10)), [round(0.01 * k, 2) for k in range(1, 101)]
    return list(range(100, 201, 20)), [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0]


def run(
    folder: Path,
    *,
    seed: int = 1,
    m: int = 500,
    points: int = 100,
    iterations: int = 500,
    losses: tuple[str, ...] = ("mean-square", "absolute"),
    quick: bool = False,
    full: bool = False,
    progress: Progress = quiet,
) -> list[Row]:
    """Run the grid, write tables and pictures, and return the rows.

    Privacy: simulated data only.
    """
    ready_folder(folder)
    walks = random_walks(m, points, seed)
    dims, epsilons = grid(quick, full)
    iterations = min(iterations, 20) if quick else iterations
    variance = _variance(walks)
    rows: list[Row] = []
    work = [(loss, dim) for loss in losses for dim in dims]
    for number, (loss, dim) in enumerate(work):
        settings = Settings(loss, LEARNING_RATE, iterations)
        own_progress = part(progress, "parameters", number / len(work), (number + 1) / len(work))
        rows += _one_dim(walks, dim, epsilons, settings, seed, own_progress)
    header = {"m": m, "points": points, "iterations": iterations, "learning_rate": LEARNING_RATE, "seed": seed,
              "variance": variance, "lambda": sensitivity(points, diameter(), 0.0), "quick": quick}  # fmt: skip
    write_table(folder, "parameters", header, rows, [NOTE])
    save_figure(_picture(rows, losses, epsilons, variance, m), folder, "parameters")
    return rows


def _variance(walks: Aligned) -> float:
    return float(walks.vectors.var(axis=0).mean())


def shown(epsilons: list[float]) -> list[float]:
    """At most nine of the epsilons, evenly spaced on a logarithmic scale, so that a legend can list them."""
    if len(epsilons) <= MOST_SHOWN:
        return epsilons
    wanted = np.geomspace(epsilons[0], epsilons[-1], MOST_SHOWN)
    distance = np.abs(np.log(np.asarray(epsilons)[None, :] / wanted[:, None]))
    return [epsilons[k] for k in np.unique(distance.argmin(axis=1))]


def _one_dim(
    walks: Aligned, dim: int, epsilons: list[float], settings: Settings, seed: int, progress: Progress
) -> list[Row]:
    """All epsilons of one D': the embedding and f_t do not depend on epsilon."""
    vectors, original, m = walks.vectors, walks.points, len(walks.points)
    variance = _variance(walks)
    sums = sums_of(walks)
    embedded = embed(vectors, sums, dim, settings, seed)
    transform = fit_transform(embedded.vectors, vectors)
    start = random_start(vectors, dim, np.random.default_rng(seed + 1))
    untrained, _ = errors(fit_transform(start, vectors)(start).reshape(original.shape), original)
    before, _ = errors(transform(embedded.vectors).reshape(original.shape), original)
    misfit = float(np.abs(embedded.residuals).mean() / sums.mean())
    largest = sensitivity(original.shape[1], diameter(), 0.0)
    rows: list[Row] = []
    for begin in range(0, len(epsilons), TOGETHER):
        some = list(enumerate(epsilons))[begin : begin + TOGETHER]
        noisy = [perturb(sums, largest, epsilon, np.random.default_rng([seed, number])) for number, epsilon in some]
        own_progress = part(progress, "parameters", begin / len(epsilons), (begin + len(some)) / len(epsilons))
        descended = descend_many(embedded.vectors, np.stack(noisy), settings, progress=own_progress)
        for (_, epsilon), final in zip(some, descended):
            mse, heat = errors(back(final, transform).reshape(original.shape), original)
            rows.append({
                "loss": settings.loss, "dim": dim, "epsilon": epsilon, "mse_trajectories": mse, "mse_heat_map": heat,
                "mse_before_noise": before, "mse_untrained": untrained, "predicted": variance * (1 - dim / (m - 1)),
                "embedding_misfit": misfit,
            })  # fmt: skip
    return rows


def _picture(rows: list[Row], losses: tuple[str, ...], epsilons: list[float], variance: float, m: int) -> Any:
    import matplotlib

    figure, axes = new_figure(len(losses), 3, (16, 4.6 * len(losses)))
    some = shown(epsilons)
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(some)))
    size = 4 if len(some) == len(epsilons) else 2
    for row_of_axes, loss in enumerate(losses):
        own = [row for row in rows if row["loss"] == loss]
        dims = sorted({row["dim"] for row in own})
        for column, (name, title) in enumerate(
            (("mse_trajectories", "MSE of trajectories"), ("mse_heat_map", "MSE of the heat map (points a cell)²"))
        ):
            axis = axes[row_of_axes][column]
            for colour, epsilon in zip(colours, some):
                series = {row["dim"]: row[name] for row in own if row["epsilon"] == epsilon}
                axis.plot(dims, [series[d] for d in dims], "o-", color=colour, markersize=4, label=f"ε = {epsilon:g}")
            if column == 0:
                axis.plot(dims, [variance * (1 - d / (m - 1)) for d in dims], "k--", label="var·(1 − D′/(m−1))")
                bare = {row["dim"]: row["mse_untrained"] for row in own}
                axis.plot(dims, [bare[d] for d in dims], "rx", markersize=9, label="untrained random embedding")
            axis.set_title(f"{title}, loss {loss}", fontsize=11)
            axis.set_xlabel("embedding dimension D′")
            if max(row[name] for row in own) > 30 * max(min(row[name] for row in own), 1e-9):
                axis.set_yscale("log")
            else:
                axis.set_ylim(bottom=0)
        axis = axes[row_of_axes][2]
        for colour, dim in zip(matplotlib.colormaps["plasma"](np.linspace(0, 0.85, len(dims))), dims):
            series = {row["epsilon"]: row["mse_trajectories"] for row in own if row["dim"] == dim}
            axis.plot(epsilons, [series[e] for e in epsilons], "o-", color=colour, markersize=size, label=f"D′ = {dim}")
        axis.set_xscale("log")
        axis.set_title(f"MSE of trajectories, loss {loss}", fontsize=11)
        axis.set_xlabel("ε")
        axis.legend(fontsize=8)
        if axes[row_of_axes][0].get_yscale() == "log":
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        axes[row_of_axes][0].legend(fontsize=8, ncols=2)
    figure.suptitle(
        "Error against D′. Dashed: var·(1 − D′/(m−1)), what least squares on D′ random columns leaves over;\n"
        "an untrained random embedding (red crosses) gives it as well, so the trend is not evidence for the embedding.",
        fontsize=11,
    )
    return figure
