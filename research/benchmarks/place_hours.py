"""Hours of places: what asking for them brings, and what it costs the end points.

usage: place_hours.py FILE SCOPE [--epsilons 1,2,4] [--noises 2]

Each ε is measured twice, with the plan as it is and with one that never asks. The
noise is seeded: nothing made here is private.
"""

import argparse
from pathlib import Path

import numpy as np

from wayveil.evaluation import evaluate
from wayveil.io.scope_files import read_scope
from wayveil.io.source import open_source
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.questions import end_points
from wayveil.questions.end_point_hours import EndPointHours
from wayveil.workflow.synthesize import synthesize

METRICS = ("start_place_hour", "start_week", "endpoints_100", "trip_1000", "density_100")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("scope")
    parser.add_argument("--epsilons", default="1,2,4")
    parser.add_argument("--noises", type=int, default=2)
    chosen = parser.parse_args()
    scope, source, usual = read_scope(chosen.scope), open_source(chosen.file), end_points.HOURS_FROM
    print("| ε | asked about hours | " + " | ".join(METRICS) + " |\n|---|---|" + "---|" * len(METRICS))
    for epsilon in chosen.epsilons.split(","):
        for worth in (np.inf, usual):
            end_points.HOURS_FROM = worth  # the one constant that says when; put back by the next turn
            rows, asked = [], ""
            for seed in range(1, chosen.noises + 1):
                release = measure(source, scope, epsilon=epsilon, unit="trajectory", noise=SeededNoise(seed))
                made = synthesize(release, seed=seed).trajectories
                rows.append([evaluate(chosen.file, made, scope, metrics=METRICS).values[name] for name in METRICS])
                asked = "no"
                if EndPointHours.name in release:
                    question = release[EndPointHours.name].question
                    asked = f"{question.groups} regions, {question.parts} parts"
            print(f"| {epsilon} | {asked} | " + " | ".join(f"{value:.4f}" for value in np.mean(rows, axis=0)) + " |")


if __name__ == "__main__":
    main()
