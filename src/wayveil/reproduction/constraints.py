"""The constraints experiment: 50 walks, a closed disc x^2 + y^2 < 4, the box [-10, 10]^2, epsilon 0.01, lr 0.1."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.dpe.align import Aligned
from wayveil.dpe.descent import Settings
from wayveil.dpe.method import Options, dpe
from wayveil.dpe.penalties import Term, box, disc
from wayveil.dpe.perturb import sensitivity
from wayveil.dpe.random_walks import HALF_SIDE, diameter, random_walks
from wayveil.progress import Progress, quiet
from wayveil.reproduction.tables import Row, new_figure, ready_folder, save_figure, write_table

RADIUS = 2.0
"""Radius of the paper's closed disc."""
EPSILON = 0.01
"""The paper's ε for this experiment."""
NOTE = (
    "Shares are of all points. 'printed' takes the paper's factors 0.3 and 5: the box's factor is too small against "
    "the pull of the noisy sums, and many points stay outside under every reading. 'stronger' takes ten to a hundred "
    "times as much; 'smaller steps' also takes a tenth of the learning rate, so that a point pushed back does not "
    "overshoot."
)


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    loss: str
    factors: tuple[float, float] | None
    """Of the disc and of the box; None: no penalty terms."""
    reading: str = "depth"
    learning_rate: float = 0.1
    iterations: int = 500


CASES = (
    Case("without penalties", "absolute", None),
    Case("printed", "absolute", (0.3, 5.0)),
    Case("printed, boundary distance", "absolute", (0.3, 5.0), "as-printed"),
    Case("stronger", "absolute", (30.0, 50.0)),
    Case("smaller steps", "absolute", (30.0, 500.0), learning_rate=0.01, iterations=2000),
    Case("without penalties", "mean-square", None),
    Case("printed", "mean-square", (0.3, 5.0)),
    Case("stronger", "mean-square", (3.0, 50.0)),
    Case("smaller steps", "mean-square", (30.0, 500.0), learning_rate=0.01, iterations=2000),
    Case("without penalties", "signed", None, iterations=100),
    Case("printed", "signed", (0.3, 5.0), iterations=100),
)
"""The factors of the two penalties as the paper prints them, and variants of factors and steps."""


def terms_of(case: Case) -> list[Term]:
    """The case's penalty terms."""
    if case.factors is None:
        return []
    side = HALF_SIDE
    return [
        disc((0.0, 0.0), RADIUS, case.factors[0], case.reading),
        box((-side, -side), (side, side), case.factors[1], case.reading),
    ]


def run(
    folder: Path,
    *,
    seed: int = 1,
    m: int = 50,
    points: int = 100,
    cases: tuple[Case, ...] = CASES,
    quick: bool = False,
    progress: Progress = quiet,
) -> list[Row]:
    """Run all cases, write tables and pictures, and return the rows.

    Privacy: simulated data only.
    """
    ready_folder(folder)
    walks = random_walks(m, points, seed)
    largest = sensitivity(points, diameter(), 0.0)
    rows: list[Row] = [{"case": "originals", "loss": "", **_shares(walks.points)}]
    outputs: dict[tuple[str, str], NDArray[np.float64]] = {}
    for number, case in enumerate(cases):
        iterations = min(case.iterations, 50) if quick else case.iterations
        settings = Settings(case.loss, case.learning_rate, iterations)
        result = dpe(walks, largest, Options(EPSILON, synthesis=settings, seed=seed), terms_of(case))
        outputs[case.name, case.loss] = result.points
        factors = case.factors or ("", "")
        rows.append({
            "case": case.name, "loss": case.loss, "reading": case.reading if case.factors else "",
            "factor_disc": factors[0], "factor_box": factors[1], "learning_rate": case.learning_rate,
            "iterations": iterations, **_shares(result.points),
            "moved_mean": round(float(np.linalg.norm(result.points - walks.points, axis=2).mean()), 3),
        })  # fmt: skip
        progress("constraints", (number + 1) / len(cases))
    settings_row = {"m": m, "points": points, "epsilon": EPSILON, "lambda": largest, "seed": seed, "quick": quick}
    write_table(folder, "constraints", settings_row, rows, [NOTE])
    save_figure(_picture(walks, outputs, rows), folder, "constraints")
    return rows


def _shares(points: NDArray[np.float64]) -> Row:
    closed = disc((0.0, 0.0), RADIUS, 1.0).broken(points)
    outside = box((-HALF_SIDE, -HALF_SIDE), (HALF_SIDE, HALF_SIDE), 1.0).broken(points)
    return {"inside_disc": round(float(closed.mean()), 4), "outside_box": round(float(outside.mean()), 4)}


def _picture(walks: Aligned, outputs: dict[tuple[str, str], NDArray[np.float64]], rows: list[Row]) -> Any:
    from matplotlib.patches import Circle, Rectangle

    shown = ("without penalties", "printed", "stronger", "smaller steps")
    losses = ("absolute", "mean-square")
    figure, axes = new_figure(len(losses), len(shown), (15, 8))
    share = {(row["case"], row["loss"]): row for row in rows}
    for row_of_axes, loss in enumerate(losses):
        for column, name in enumerate(shown):
            axis = axes[row_of_axes][column]
            if (name, loss) not in outputs:
                axis.set_axis_off()
                continue
            points = outputs[name, loss].reshape(-1, 2)
            original = walks.points.reshape(-1, 2)
            axis.scatter(*original.T, s=2, color="#e0a800", alpha=0.35, label="original", rasterized=True)
            axis.scatter(*points.T, s=2, color="#1b7f3b", alpha=0.5, label="perturbed", rasterized=True)
            axis.add_patch(Circle((0, 0), RADIUS, fill=False, edgecolor="#c1121f", linewidth=1.8))
            axis.add_patch(Rectangle((-10, -10), 20, 20, fill=False, edgecolor="#333333", linewidth=1.5))
            row = share[name, loss]
            axis.set_title(
                f"{name} ({loss})\nin the disc {row['inside_disc']:.1%}, outside the box {row['outside_box']:.1%}",
                fontsize=10,
            )
            axis.set_xlim(-16, 16)
            axis.set_ylim(-16, 16)
            axis.set_aspect("equal")
    axes[0][0].legend(loc="lower left", markerscale=5, fontsize=9, framealpha=0.95)
    figure.suptitle("Constraints: disc closed (red), box to be kept (black); ε = 0.01. Points beyond ±16 are cut off.")
    return figure
