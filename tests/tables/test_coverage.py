"""Nine tenths of the true figures lie within the stated intervals, about: a coarse check on the embedded city."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from wayveil.privacy.noise import SeededNoise
from wayveil.simulate import simulate_city, simulate_trajectories

SCRIPT = Path(__file__).parents[2] / "research" / "benchmarks" / "table_coverage.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("table_coverage", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("epsilon", ["0.1", 2])
def test_the_truth_lies_within_the_intervals(script, epsilon):
    city = simulate_city(size_km=(4, 4), seed=5)
    rides = simulate_trajectories(city, 2_000, seed=5)
    found = script.coverage(rides, city.scope, city.roadmap, epsilon, 1, SeededNoise(1))
    by_table = {}
    for one in found:
        by_table.setdefault(one.table, []).append((one.inside, one.rows))
    shares = {name: np.average(inside, weights=rows) for name, (inside, rows) in (
        (name, zip(*values)) for name, values in by_table.items()
    )}  # fmt: skip
    # Rows of one table share their errors (a release may have too many long trips), so one table may miss by more.
    assert min(shares.values()) > 0.75, shares
    assert np.mean(list(shares.values())) > 0.9, shares
    # Intervals that always contain the truth would tell nothing: those of the busy rows are not.
    widths = {one.table: one.relative for one in found if one.period == "day"}
    assert widths["lengths.trips"] < (0.5 if epsilon == 2 else 1.5), widths
