"""Charts of a comparison: one per metric, small multiples of families of methods × datasets, logarithmic axes."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wayveil.evaluation.all_metrics import METRICS
from wayveil.io.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]

FAMILIES = {
    "grids and chains": ("adatrace", "privtrace", "dp-star", "ldptrace", "rejection"),
    "trees": ("n-gram", "prefix-tree", "safepath", "dpt", "dpapt", "dptraj-pm"),
    "records": ("coordinate-noise", "distance-direction", "nearest-candidate", "generalised", "dpe"),
}
"""Methods that share a row of panels; any other method is in the row OTHERS."""
OTHERS = "other methods"
_OURS = {
    "wayveil": {"color": "black", "linestyle": "-", "linewidth": 2.2, "marker": "o"},
    "wayveil-map": {"color": "black", "linestyle": "--", "linewidth": 1.6, "marker": "o"},
    "wayveil-bayes": {"color": "0.45", "linestyle": "-", "linewidth": 1.6, "marker": "o"},
    "wayveil-bayes-map": {"color": "0.45", "linestyle": "--", "linewidth": 1.2, "marker": "o"},
}
"""Drawn in every panel, for reference."""
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3f00", "#6a3d9a")
"""Okabe and Ito's colours, which colour-blind readers can distinguish, and two more."""
_MARKERS = "osD^vP*X"
LOWEST = 1e-4
"""Scores below this are drawn here: `relation` may be negative, and the axis is logarithmic."""
_PUBLISHED = "-published"


def means(rows: list[Row]) -> dict[tuple[str, float, str], dict[str, float]]:
    """(dataset, epsilon, metric) -> method -> mean over the seeds."""
    values: dict[tuple[str, float, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        values[row["dataset"], row["epsilon"], row["metric"]][row["method"]].append(row["value"])
    return {key: {name: float(np.mean(found)) for name, found in by.items()} for key, by in values.items()}


def families(methods: list[str]) -> dict[str, list[str]]:
    """The rows of panels: family -> plain names of its methods; the ones of this project are in none.

    Examples
    --------
    >>> families(["wayveil", "dpt", "adatrace-published", "mine:pairs", "adatrace"])
    {'grids and chains': ['adatrace'], 'trees': ['dpt'], 'other methods': ['mine:pairs']}
    """
    plain = list(dict.fromkeys(name.removesuffix(_PUBLISHED) for name in methods if name not in _OURS))
    found = {family: [name for name in members if name in plain] for family, members in FAMILIES.items()}
    known = {name for members in FAMILIES.values() for name in members}
    found[OTHERS] = [name for name in plain if name not in known]
    return {family: members for family, members in found.items() if members} or {"": []}


def draw_chart(rows: list[Row], metric: str, path: Path, *, private: bool = True) -> None:
    """Write the chart of one metric. `rows` are those of the tidy table; `private` makes the file unreadable to others.

    Privacy: not private (trusted side only), as the rows are.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [row for row in rows if row["metric"] == metric]
    datasets, methods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("dataset", "method"))
    shown = families(methods)
    figure = Figure(figsize=(3.1 * len(datasets) + 2.2, 2.3 * len(shown) + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(shown), len(datasets), squeeze=False, sharex=True, sharey=True)
    average = means(rows)
    for row_of_panels, (family, members) in zip(panels, shown.items()):
        for panel, dataset in zip(row_of_panels, datasets):
            _lines(panel, dataset, members, methods, average, metric)
            # Most methods generate as many trajectories as the data has, so the floor is drawn for that size.
            here = [row for row in rows if row["dataset"] == dataset]
            floor = max(here, key=lambda row: row["trajectories"])["floor"]
            if floor > LOWEST:
                panel.axhline(floor, color="0.4", linestyle=(0, (1, 1.5)), linewidth=1.4, label="floor")
        row_of_panels[0].set_ylabel(family)
        named = {label: handle for panel in row_of_panels for handle, label in zip(*panel.get_legend_handles_labels())}
        row_of_panels[-1].legend(
            named.values(), named.keys(), loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize="small", frameon=False
        )
    for panel, dataset in zip(panels[0], datasets):
        panel.set_title(dataset, fontsize="medium")
    for panel in panels[-1]:
        panel.set_xlabel("epsilon")
    upwards = METRICS[metric].higher_is_better
    _axes(panels[0][0], sorted({row["epsilon"] for row in rows}), "linear" if upwards else "log")
    figure.suptitle(f"{metric} ({'higher' if upwards else 'lower'} is better)", fontsize="large")
    with atomic_path(path, private=private) as part:
        figure.savefig(part, format="png", dpi=100)


def _lines(
    panel: "Axes",
    dataset: str,
    members: list[str],
    methods: list[str],
    average: dict[tuple[str, float, str], dict[str, float]],
    metric: str,
) -> None:
    """One line per method of the family and of this project; a published mode has its method's colour, dotted."""
    styles = {name: style for name, style in _OURS.items() if name in methods}
    for position, name in enumerate(members):
        look = {"color": _COLOURS[position % len(_COLOURS)], "marker": _MARKERS[position % len(_MARKERS)]}
        styles |= {name: {**look, "linewidth": 1.3}, name + _PUBLISHED: {**look, "linewidth": 1.0, "linestyle": ":"}}
    for name, style in styles.items():
        found = [
            (epsilon, by[name])
            for (of, epsilon, what), by in sorted(average.items())
            if (of, what) == (dataset, metric) and name in by
        ]
        if found:
            label = name.replace(_PUBLISHED, ", not private")
            y = [max(value, LOWEST) for _, value in found]
            panel.plot([epsilon for epsilon, _ in found], y, markersize=4, label=label, **style)  # type: ignore[arg-type]
    panel.grid(alpha=0.25)


def _axes(panel: "Axes", epsilons: list[float], scale: str) -> None:
    """Axes with plain numbers, which are shared by all panels; that of epsilon is logarithmic."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set(xscale="log", yscale=scale)
    ticks = epsilons if len(epsilons) <= 4 else [epsilons[0], epsilons[len(epsilons) // 2], epsilons[-1]]
    panel.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
    panel.xaxis.set_minor_formatter(NullFormatter())
    if scale == "linear":
        return
    low, high = panel.get_ylim()
    subs = (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
    panel.yaxis.set_major_locator(LogLocator(subs=subs))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())
