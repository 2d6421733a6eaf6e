"""Campuses with more signal than training covered: where the network stops paying, so the guard has an upper limit.

    python research/training/strong_campus.py

Four simulated campuses of at most 2 km, no map, at signals of 1, 4, 7 and 10 noise units a cell, the guard's upper
limit lifted. The share is what the guard's likelihood alone would trust.
"""

from dataclasses import replace

import numpy as np
from samples import build_city, look, release
from unfamiliar import jsd, refined

from wayveil.synthesis.estimate.learned import guard

CAMPUSES, WORTHS = 4, (1.0, 4.0, 7.0, 10.0)
OCCUPANCY_SHARE = 0.4


def main() -> None:
    limits = guard.GUARD.most_signal
    guard.GUARD = replace(guard.GUARD, most_worth=dict.fromkeys(limits, np.inf))
    print(f"limits: {dict(limits)}")
    print("campus  eps   occupancy: worth  bayes learned share   end points: worth  bayes learned share")
    random = np.random.default_rng(5)
    for campus in range(CAMPUSES):
        view = look(build_city("campus", random), random, 20_000.0, side=40)
        for worth in WORTHS:
            epsilon = worth * view.area.size / (OCCUPANCY_SHARE * view.count)
            made = release(view, epsilon, False, np.random.default_rng([campus, 9]))
            line = f"{campus:6d} {epsilon:4.2f}"
            for true, bayes, levels, got in zip(
                (view.occupancy, view.end_points),
                (made.occupancy, made.end_points),
                (made.occupancy_levels, made.end_levels),
                refined(made),
                strict=True,
            ):
                units = guard.field_signal(levels, made.total) / view.area.sum()
                line += f"{units:18.2f} {jsd(true, bayes):6.4f} {jsd(true, got.field):7.4f} {got.share:5.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
