"""How near our published modes come to the programs of the authors or of third parties.

usage: python research/benchmarks/baseline_fidelity.py REFERENCE.json BENCH_DIR... [--output fidelity.md]

BENCH_DIR holds finished cells of `wayveil bench utility` with the published modes; several folders are combined.
REFERENCE.json has the programs' scores: {"runs": [{"dataset", "peer", "epsilon", "scores": {metric: value}}, ...]}.
Each headline metric is `=` if the mean over our seeds is within 25 % of the program's score, `+` if it is lower
(better) than that, `*` if it is higher. The summary gives the reason for what is outside.
"""

import argparse
import json
import statistics
from collections import Counter
from pathlib import Path

from methods_page import METRICS, NAMES, read_cells, show

METHODS = {
    "adatrace": "adatrace-published",
    "privtrace": "privtrace-published",
    "dpstar": "dp-star-published",
    "ldptrace": "ldptrace-published",
    "dpapt2": "dpapt-published",
    "dpapt4": "wayveil.baselines.methods.dpapt:dpapt_4-published",
    "cnoise": "coordinate-noise-published",
    "dptrajpm": "dptraj-pm-published",
}
PROGRAMS = {
    "adatrace": "AdaTrace", "privtrace": "PrivTrace", "dpstar": "DP-Star", "ldptrace": "LDPTrace",
    "dpapt2": "DPAPT, two points", "dpapt4": "DPAPT, four points", "cnoise": "CNoise", "dptrajpm": "DPTraj-PM",
    "retrasyn-p": "RetraSyn",
}  # fmt: skip
NOT_HERE = {
    "retrasyn-p": "not in the collection; it releases a stream in real time",
}
REASONS = {
    "adatrace": "`relation` only; cause not found (its three defences, which read the raw data, are not built)",
    "privtrace": "`relation`, three `length`, one `trip_1000`: the program's grid seems finer",
    "dpstar": "`relation`, one `length`: our median lengths are for pairs of coarse cells, not of leaves",
    "ldptrace": "–",
    "dpapt2": "`relation`, two `length`: what the program does with paths cut by the tree is not described",
    "dpapt4": "as with two points",
    "cnoise": "`relation`: ours has noise of the map's size, and the program's score suggests less",
    "dptrajpm": "`relation` only: how much a trajectory weighs in the moves is our reading",
}
ALLOWED = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=Path)
    parser.add_argument("bench", type=Path, nargs="+")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    text = page(json.loads(options.reference.read_text())["runs"], options.bench)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text)


def page(reference: list[dict], folders: list[Path]) -> str:
    """The summary, then every ratio."""
    runs, _, _ = read_cells(folders)
    marks: Counter[tuple[str, str, str]] = Counter()
    rows = []
    for run in sorted(reference, key=lambda r: (list(PROGRAMS).index(r["peer"]), r["dataset"], r["epsilon"])):
        found = runs.get((run["dataset"], METHODS.get(run["peer"], ""), float(run["epsilon"])))
        if not found:
            continue
        cells = []
        for name in METRICS:
            ours, theirs = statistics.mean(cell["values"][name] for cell in found), run["scores"][name]
            ratio = ours / theirs
            mark = "=" if abs(ratio - 1) <= ALLOWED else "+" if ratio < 1 else "*"
            marks[run["peer"], run["dataset"], mark] += 1
            cells.append(f"{show(ours)} : {show(theirs)} ({ratio:.2f}) {mark}")
        label = [PROGRAMS[run["peer"]], NAMES[run["dataset"]], f"{run['epsilon']:g}", str(len(found))]
        rows.append("| " + " | ".join([*label, *cells]) + " |")
    datasets = [name for name in NAMES if any(name == of for _, of, _ in marks)]
    lines = [
        "# Published modes against the programs of the authors or of others", "",
        "Metrics × ε within 25 % / better / worse. Made by `python research/benchmarks/baseline_fidelity.py`.", "",
        "| program | " + " | ".join(NAMES[d] for d in datasets) + " | reason for what is outside |",
        "|" + "---|" * (2 + len(datasets)),
    ]  # fmt: skip
    for peer in METHODS:
        counts = [tuple(marks[peer, dataset, mark] for mark in "=+*") for dataset in datasets]
        if any(map(any, counts)):
            shown = ("{} / {} / {}".format(*count) if any(count) else "–" for count in counts)
            lines.append(f"| {PROGRAMS[peer]} | " + " | ".join(shown) + f" | {REASONS[peer]} |")
    lines += [f"| {PROGRAMS[p]} |" + " – |" * len(datasets) + f" {reason} |" for p, reason in NOT_HERE.items()]
    lines += ["", "Ours : program (ratio); `=` within 25 %, `+` better, `*` worse; the mean of our seeds, one seed of "
              "the program.", "", "| program | dataset | ε | seeds | " + " | ".join(METRICS) + " |",
              "|" + "---|" * (4 + len(METRICS))]  # fmt: skip
    return "\n".join([*lines, *rows]) + "\n"


if __name__ == "__main__":
    main()
