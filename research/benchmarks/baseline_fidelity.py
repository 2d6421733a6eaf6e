"""How near our published modes come to the programs of the authors or of third parties.

usage: baseline_fidelity.py DATA_DIR REFERENCE.json [--seeds 1] [--epsilons 0.1,0.5,1] [--peers dpstar,...] [--sound]

DATA_DIR holds <dataset>.parquet (traj_id, lat, lon, t); REFERENCE.json the programs' scores and CPU seconds:
{"runs": [{"dataset", "peer", "epsilon", "scores": {metric: value}, "cpu_s"}, ...]}. Each headline metric is `=` if the
mean over the seeds is within 25 % of the program's score, `+` if it is lower (better) than that, `*` if it is higher.
Reasons for the last two are printed below the table. `--sound` shows the default mode instead.
"""

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np

from wayveil.baselines import load
from wayveil.baselines.methods.dpapt import dpapt_with
from wayveil.evaluation import HEADLINE, headline, project
from wayveil.io.files import read
from wayveil.io.scope_files import read_scope

METHODS = {
    "adatrace": load("adatrace"),
    "privtrace": load("privtrace"),
    "dpstar": load("dp-star"),
    "ldptrace": load("ldptrace"),
    "dpapt2": load("dpapt"),
    "dpapt4": dpapt_with(4),
    "cnoise": load("coordinate-noise"),
}
NOT_HERE = {
    "dptrajpm": "DPTraj-PM spends 1.152 epsilon and writes cell centres; it is not one of the collection.",
    "retrasyn-p": "RetraSyn releases a stream in real time; it is not one of the collection.",
}
REASONS = {
    "adatrace": "The split rule of the second level and the treatment of negative counts are our reading of the paper.",
    "privtrace": "Three constants that the paper leaves open are our choice (see the module).",
    "dpstar": "The median is chosen for pairs of coarse cells, and the grid's constants are ours.",
    "ldptrace": "The division of epsilon among the reports is our reading of the paper.",
    "dpapt2": "The tree counts coarse cells below coarse cells and refines each step alone: better trips, and at low "
    "epsilon a worse relation.",
    "dpapt4": "As dpapt2, with four points; paths that the tree cuts short go on independently of their beginning.",
    "cnoise": "The program's noise is smaller than the map; ours has the map's size, as the source paper describes it.",
}
SCOPES = {"cabspotting": "san-francisco", "geolife": "beijing", "tdrive_partial": "beijing"}
ALLOWED = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epsilons", default="0.1,0.5,1")
    parser.add_argument("--peers", default=",".join(METHODS))
    parser.add_argument("--sound", action="store_true")
    options = parser.parse_args()
    runs = json.loads(options.reference.read_text())["runs"]
    wanted = {float(epsilon) for epsilon in options.epsilons.split(",")}
    peers = options.peers.split(",")
    mode = "default" if options.sound else "published"
    print(f"{mode} mode, mean of {options.seeds} seed(s): ours / program (ratio); = within 25 %, + better, * worse\n")
    print("| dataset | program | ε | CPU s | " + " | ".join(HEADLINE) + " |\n|" + "---|" * (4 + len(HEADLINE)))
    marks: Counter[tuple[str, str]] = Counter()
    for dataset, scope_name in SCOPES.items():
        chosen = [r for r in runs if r["dataset"] == dataset and r["peer"] in peers and r["epsilon"] in wanted]
        if not chosen:
            continue
        scope, real = read_scope(scope_name), read(options.data / f"{dataset}.parquet")
        paths = project(real, scope)
        for run in sorted(chosen, key=lambda r: (r["peer"], r["epsilon"])):
            begin = time.process_time()
            made = [
                METHODS[run["peer"]](
                    real, scope, run["epsilon"], published=not options.sound, seed=seed, n=len(real)
                ).trajectories
                for seed in range(options.seeds)
            ]
            cpu_s = (time.process_time() - begin) / options.seeds
            scores = [headline(paths, one, scope) for one in made]
            cells = []
            for name in HEADLINE:
                ours, theirs = float(np.mean([score[name] for score in scores])), run["scores"][name]
                ratio = ours / theirs
                mark = "=" if abs(ratio - 1) <= ALLOWED else "+" if ratio < 1 else "*"
                marks[run["peer"], mark] += 1
                cells.append(f"{ours:.4f} / {theirs:.4f} ({ratio:.2f}) {mark}")
            times = f"{cpu_s:.1f} / {run['cpu_s']:.1f}"
            row = [dataset, run["peer"], f"{run['epsilon']:g}", times, *cells]
            print("| " + " | ".join(row) + " |", flush=True)
    print("\n| program | within 25 % | better | worse | reason |\n|---|---|---|---|---|")
    for peer in peers:
        if any(marks[peer, mark] for mark in "=+*"):
            print(f"| {peer} | {marks[peer, '=']} | {marks[peer, '+']} | {marks[peer, '*']} | {REASONS[peer]} |")
    for peer, reason in NOT_HERE.items():
        print(f"| {peer} | – | – | – | {reason} |")


if __name__ == "__main__":
    main()
