"""Scores as a table for a terminal."""

from typing import TYPE_CHECKING

from wayveil.evaluation.conclusion import MATTERS, in_groups
from wayveil.evaluation.metric_descriptions import metric_description
from wayveil.evaluation.score import Evaluation, Score
from wayveil.evaluation.trips import TripEvaluation

if TYPE_CHECKING:
    from rich.table import Table

BELOW = "below the floor"
MARK = "●"
"""Before the name of a metric that matters for the chosen use."""


def best(scores: dict[str, Score]) -> set[str]:
    """Files with the best value, to the four digits shown; values below the floor, a sign of copying, are excluded."""
    fair = {name: score for name, score in scores.items() if not score.below_floor}
    if not fair:
        return set()
    sign = -1.0 if next(iter(fair.values())).higher_is_better else 1.0
    top = min(round(sign * score.value, 4) for score in fair.values())
    return {name for name, score in fair.items() if round(sign * score.value, 4) == top}


def score_table(evaluations: dict[str, Evaluation]) -> "Table":
    """One row per metric, by group; per file a column with the value and the 95 % interval, the best value in bold.

    Two more columns show the floor and the verdict of the first file. Metrics that matter for its purpose are marked.
    """
    from rich.table import Table

    table = Table(title="Utility against the real data (divergences in nats; lower is better unless ↑)")
    table.add_column("metric", no_wrap=True)
    for name in evaluations:
        table.add_column(name, justify="right")
    first = next(iter(evaluations.values()))
    table.add_column("floor", justify="right")
    table.add_column("verdict")
    table.add_column("compares")
    matters = MATTERS[first.purpose] if first.purpose else ()
    for group, metrics in in_groups(first.scores).items():
        table.add_section()
        table.add_row(f"[bold]{group}[/bold]")
        for metric in metrics:
            row = {name: evaluation.scores[metric] for name, evaluation in evaluations.items()}
            winners = best(row) if len(row) > 1 else set()
            cells = [_cell(score, name in winners, evaluations[name].too_few) for name, score in row.items()]
            arrow = " ↑" if first.scores[metric].higher_is_better else ""
            mark = f"{MARK} " if metric in matters else "  " if matters else ""
            floor = "–" if first.too_few else f"{first.scores[metric].floor:.4f}"
            table.add_row(
                mark + metric + arrow, *cells, floor, first.words.get(metric, "–"), metric_description(metric)
            )
    if first.purpose:
        table.caption = f"{MARK} matters for {first.purpose}"
    return table


def trip_tables(file: str, trips: TripEvaluation | None) -> list["Table"]:
    """The scores of single trips with floor and conclusion, and the features that give synthetic trips away."""
    from rich.table import Table

    if trips is None:
        return []
    scores = Table(title=f"Single trips of {file} (floor: two random halves of the real data)")
    for column in ("score", "value", "floor", "what to conclude"):
        scores.add_column(column, justify="right" if column in ("value", "floor") else "left")
    for name, score in trips.scores.items():
        unit = f" {score.unit}" if score.unit else ""
        scores.add_row(name, f"{score.value:.3g}{unit}", f"{score.floor:.3g}", score.conclusion)
    for name in trips.left_out:
        scores.add_row(name, "–", "–", "Left out: too few trips, points or places to compare.")
    telling = Table(title="The features that distinguish synthetic from real trips")
    for column in ("feature", "group", "real median", "synthetic median", "distance", "floor"):
        telling.add_column(column, justify="left" if column in ("feature", "group") else "right")
    for feature in trips.telling:
        medians = (f"{feature.real_median:.3g}", f"{feature.synthetic_median:.3g}")
        telling.add_row(feature.name, feature.group, *medians, f"{feature.distance:.2f}", f"{feature.floor:.2f}")
    return [scores, telling] if trips.telling else [scores]


def _cell(score: Score, bold: bool, too_few: bool) -> str:
    half = (score.high - score.low) / 2
    text = f"{score.value:.4f}" if too_few else f"{score.value:.4f} ± {half:.4f}"
    if score.below_floor:
        return f"[red]{text} {BELOW}[/red]"
    return f"[bold]{text}[/bold]" if bold else text
