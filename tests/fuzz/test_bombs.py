"""Files that claim 10 GB and shapes with a million corners: success or one clear sentence, in time and memory."""

import json
import subprocess
import sys
from pathlib import Path

import bombs
import pytest

LIMIT_S = 40
LIMIT_MB = 1500
REFUSED = {
    "read 10 GB of rides": "too many rows",
    "read 5 GB of roads": "50,000,000 vertices",
    "scribble of 20,000 corners": "crosses itself",
    "one spot met 10,000 times": "crosses itself",
    "around the pole": "pole",
}


def check_cases(names, folder):
    script = Path(bombs.__file__)
    command = [sys.executable, str(script), str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    print(*lines, sep="\n")
    assert [name for name, *_ in lines] == list(names)
    for name, said, cpu_s, peak_mb in lines:
        assert cpu_s < LIMIT_S and peak_mb < LIMIT_MB, (name, cpu_s, peak_mb)
        if name in REFUSED:
            assert REFUSED[name] in said and said.isprintable(), (name, said)
        else:
            assert said == "done", (name, said)


@pytest.mark.needs("linux")  # memory limits
def test_bombs(tmp_path):
    check_cases(bombs.CASES, tmp_path)


@pytest.mark.long
@pytest.mark.needs("linux")
def test_larger_bombs(tmp_path):
    check_cases(bombs.LONG_CASES, tmp_path)
