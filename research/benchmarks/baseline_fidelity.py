"""How near our AdaTrace and PrivTrace (published mode) come to the authors' own code.

usage: baseline_fidelity.py DATA_DIR REFERENCE.json [--seeds 3] [--sound]

DATA_DIR holds <dataset>.parquet (traj_id, lat, lon, t); REFERENCE.json the originals' scores and CPU seconds:
{"runs": [{"dataset", "peer", "epsilon", "scores": {metric: value}, "cpu_s"}, ...]}. A cell is kept if the mean over
the seeds is at most 1.25 times the original's score. `--sound` shows the default mode in the same table.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from wayveil.baselines import adatrace, privtrace
from wayveil.evaluation import HEADLINE, headline, project
from wayveil.io.files import read
from wayveil.io.scope_files import read_scope

METHODS = {"adatrace": adatrace, "privtrace": privtrace}
SCOPES = {"cabspotting": "san-francisco", "geolife": "beijing", "tdrive_partial": "beijing"}
EPSILONS = (0.5, 1.0)
ALLOWED = 1.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sound", action="store_true")
    options = parser.parse_args()
    runs = json.loads(options.reference.read_text())["runs"]
    originals = {(run["dataset"], run["peer"], run["epsilon"]): run for run in runs}
    mode = "sound" if options.sound else "published"
    print(f"{mode} mode, mean of {options.seeds} seeds: ours / original (ratio); * = ratio above {ALLOWED}")
    print(f"{'dataset':15} {'peer':9} {'eps':>3} {'CPU s':>11}  " + "  ".join(f"{name:>22}" for name in HEADLINE))
    kept = cells = 0
    for dataset, scope_name in SCOPES.items():
        scope = read_scope(scope_name)
        real = read(options.data / f"{dataset}.parquet")
        paths = project(real, scope)
        for peer, method in METHODS.items():
            for epsilon in EPSILONS:
                original = originals[dataset, peer, epsilon]
                begin = time.process_time()
                made = [
                    method(real, scope, epsilon, published=not options.sound, seed=seed).trajectories
                    for seed in range(options.seeds)
                ]
                cpu_s = (time.process_time() - begin) / options.seeds
                scores = [headline(paths, one, scope) for one in made]
                row = []
                for name in HEADLINE:
                    ours, theirs = float(np.mean([score[name] for score in scores])), original["scores"][name]
                    cells, kept = cells + 1, kept + (ours <= ALLOWED * theirs)
                    mark = " " if ours <= ALLOWED * theirs else "*"
                    row.append(f"{ours:.4f} / {theirs:.4f} ({ours / theirs:.2f}){mark}")
                times = f"{cpu_s:.1f} / {original['cpu_s']:.1f}"
                line = "  ".join(f"{cell:>22}" for cell in row)
                print(f"{dataset:15} {peer:9} {epsilon:3} {times:>11}  {line}", flush=True)
    print(f"{kept} of {cells} cells within {ALLOWED} or better")


if __name__ == "__main__":
    main()
