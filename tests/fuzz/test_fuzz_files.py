"""Damaged files of every kind but trajectories: success or one clear sentence.

research/benchmarks/fuzz_long.py does the same at length.

WAYVEIL_FUZZ says how many inputs of all kinds are tried (1,000 by default), WAYVEIL_FUZZ_SEED where to start.
"""

import itertools
import os
import time
from collections import Counter

import pytest
from fuzz_files import alarm
from fuzz_kinds import QUICK, attempt

COUNT = int(os.environ.get("WAYVEIL_FUZZ", "1000"))
SEED = int(os.environ.get("WAYVEIL_FUZZ_SEED", "0"))


@pytest.mark.parametrize("kind", QUICK)
def test_damaged_files(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    outcomes: Counter[str] = Counter()
    for seed in range(SEED, SEED + -(-COUNT // len(QUICK))):
        try:
            outcomes[attempt(kind, tmp_path, seed)] += 1
        except Exception as error:
            raise AssertionError(f"{kind}, seed {seed}: {type(error).__name__}: {str(error)[:200]}") from error
    print(kind, dict(outcomes))
    assert outcomes["refused"] > 0
    # A run cannot succeed: its private file is not there ("read" are those that point out of the folder).
    assert kind == "run" or COUNT < 100 or outcomes["read"] > 0, "the fuzzer damages everything"


def test_the_time_limit_works():
    with pytest.raises(TimeoutError), alarm(0.05):
        time.sleep(3)
    with pytest.raises(TimeoutError), alarm(0.1):
        sum(1 for _ in itertools.repeat(0))
