"""Scores as a table for a terminal."""

from typing import TYPE_CHECKING

from wayveil.evaluation.score import Evaluation, Score
from wayveil.evaluation.words import metric_words

if TYPE_CHECKING:
    from rich.table import Table

BELOW = "below the floor"


def best(scores: dict[str, Score]) -> set[str]:
    """Whose value is the best, to the four digits shown; what is below the floor has copied and does not compete."""
    fair = {name: score for name, score in scores.items() if not score.below_floor}
    if not fair:
        return set()
    sign = -1.0 if next(iter(fair.values())).higher_is_better else 1.0
    top = min(round(sign * score.value, 4) for score in fair.values())
    return {name for name, score in fair.items() if round(sign * score.value, 4) == top}


def score_table(evaluations: dict[str, Evaluation]) -> "Table":
    """One row a metric, one column a file: value and 95 % interval, the best in bold, the floor beside them."""
    from rich.table import Table

    table = Table(title="Utility against the real data (divergences in nats; lower is better unless ↑)")
    table.add_column("metric")
    for name in evaluations:
        table.add_column(name, justify="right")
    table.add_column("floor", justify="right")
    table.add_column("compares")
    first = next(iter(evaluations.values()))
    for metric in first.scores:
        row = {name: evaluation.scores[metric] for name, evaluation in evaluations.items()}
        winners = best(row) if len(row) > 1 else set()
        cells = [_cell(score, name in winners, evaluations[name].too_few) for name, score in row.items()]
        arrow = " ↑" if first.scores[metric].higher_is_better else ""
        floor = "–" if first.too_few else f"{first.scores[metric].floor:.4f}"
        table.add_row(metric + arrow, *cells, floor, metric_words(metric))
    return table


def _cell(score: Score, bold: bool, too_few: bool) -> str:
    half = (score.high - score.low) / 2
    text = f"{score.value:.4f}" if too_few else f"{score.value:.4f} ± {half:.4f}"
    if score.below_floor:
        return f"[red]{text} {BELOW}[/red]"
    return f"[bold]{text}[/bold]" if bold else text
