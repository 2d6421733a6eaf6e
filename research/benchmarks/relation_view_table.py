"""What the rows of relation_view.py say, as tables.

usage: relation_view_table.py OUT.jsonl [peers.json]

For each dataset and variant: the ratio of each metric's mean to the mean without the view on the same noise, and in how
many runs the variant was better. With the scores of the peers and the floors ({"floor": {dataset: {metric: v}},
"runs": [{"dataset", "epsilon", "scores"}]}) also the mean excess over Cabspotting and Geolife, (value - floor) / (best
peer - floor), and what rules that switch the view on in some of the cells would make of it.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.evaluation import HEADLINE

SHOWN = (*HEADLINE, "relation_time")
JUDGED = ("cabspotting", "geolife")

Key = tuple[str, str, int, str]


def main(path: str, reference: str | None = None) -> None:
    rows = {tuple(row[:4]): row[4:] for row in map(json.loads, Path(path).read_text().splitlines())}
    ratios({key: scores for key, (scores, _) in rows.items()})
    if reference is not None:
        scored = excesses({key: scores for key, (scores, _) in rows.items()}, json.loads(Path(reference).read_text()))
        switched(scored, {key: known for key, (_, known) in rows.items()})


def ratios(scores: dict[Any, dict[str, float]]) -> None:
    """Print the ratios of means, and how often a run was better."""
    print("| dataset | variant | runs | " + " | ".join(SHOWN) + " |\n|" + "---|" * (3 + len(SHOWN)))
    for dataset in sorted({key[0] for key in scores}):
        for variant in _variants(scores):
            cells = [key for key in scores if key[0] == dataset and key[3] == variant and _without(key) in scores]
            if not cells:
                continue
            line = []
            for name in SHOWN:
                ours, plain = np.array([(scores[key][name], scores[_without(key)][name]) for key in cells]).T
                line.append(f"{ours.mean() / plain.mean():.3f} ({(ours < plain).sum()})")
            print(f"| {dataset} | {variant} | {len(cells)} | " + " | ".join(line) + " |")


def excesses(scores: dict[Any, dict[str, float]], reference: dict[str, Any]) -> dict[Any, float]:
    """The mean of the five excesses of each run on the judged datasets."""
    best: dict[Any, float] = {}
    for run in reference["runs"]:
        for name in HEADLINE:
            cell = run["dataset"], float(run["epsilon"]), name
            best[cell] = min(best.get(cell, np.inf), run["scores"].get(name, np.inf))
    found = {}
    for key, values in scores.items():
        if key[0] in JUDGED:
            low = reference["floor"][key[0]]
            found[key] = float(
                np.mean([(values[n] - low[n]) / (best[key[0], float(key[1]), n] - low[n]) for n in HEADLINE])
            )
    return found


def switched(excess: dict[Any, float], known: dict[Any, dict[str, float]]) -> None:
    """Print the mean excess of each variant, always on, and switched on in some of the cells.

    Hindsight takes in each cell what turned out better there, which nobody can know. A rule is a threshold on one known
    value (ε, the noisy count, their product, how evenly the fit weighs the pool), the best one for all other seeds, and
    after the comma the best one for the other dataset: no rule is judged on what it was found on.
    """
    names = list(next(iter(known.values())))
    head = ["variant", "runs", "without", "with", "change", "better", "hindsight", *(f"rule on {n}" for n in names)]
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for variant in _variants(excess):
        keys = [key for key in excess if key[3] == variant and _without(key) in excess]
        plain, ours = np.array([(excess[_without(key)], excess[key]) for key in keys]).T
        gain = ours - plain
        line = [variant, str(len(keys)), f"{plain.mean():.4f}", f"{ours.mean():.4f}"]
        line += [f"{gain.mean():+.4f} ± {_error(gain, keys):.4f}", str((gain < 0).sum())]
        line += [f"{np.minimum(gain, 0).mean():+.4f}"]
        for name in names:
            value = np.array([known[key][name] for key in keys])
            found_on = [_ruled(value, gain, [key[part] for key in keys]) for part in (2, 0)]
            line.append(", ".join("–" if change is None else f"{change:+.4f}" for change in found_on))
        print("| " + " | ".join(line) + " |")


def _error(gain: NDArray[np.float64], keys: list[Key]) -> float:
    """Standard error of the mean; cells of one dataset and seed have the same noise, scaled, and count as one."""
    noises = [(key[0], key[2]) for key in keys]
    centred = gain - gain.mean()
    together = [centred[[noise == one for noise in noises]].sum() for one in set(noises)]
    return float(np.sqrt(np.sum(np.square(together))) / len(gain))


def _ruled(value: NDArray[np.float64], gain: NDArray[np.float64], groups: list[Any]) -> float | None:
    """Change of the mean by the rule "on where the value lies on this side of t", in each group found on the others."""
    if len(set(groups)) < 2:
        return None
    rules = [side * value >= side * t for side in (1, -1) for t in np.r_[np.inf, value, -np.inf]]
    total = 0.0
    for one in sorted(set(groups)):
        inside = np.array([group == one for group in groups])
        best = int(np.argmin([gain[rule & ~inside].sum() for rule in rules]))
        total += gain[rules[best] & inside].sum()
    return total / len(gain)


def _variants(table: dict[Any, Any]) -> list[str]:
    return sorted({key[3] for key in table} - {"none"})


def _without(key: Key) -> Key:
    return (*key[:3], "none")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
