"""`make bench`: comparison with the last stored result."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / "research" / "benchmarks" / "run.py"


@pytest.fixture
def bench(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("bench_run", RUN)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_run", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def stored(bench, name, ratio, size=10_000):
    row = {"stage": "measure", "trajectories": size, "cpu_s": 1.0, "ratio": ratio, "peak_mb": 100.0}
    (bench.RESULTS / name).write_text(json.dumps({"rows": [row]}))


def test_the_newest_result_of_the_size_counts_and_other_files_do_not(bench):
    stored(bench, "20260101T000000Z.json", 1.0)
    stored(bench, "20260201T000000Z.json", 2.0)
    stored(bench, "20260301T000000Z.json", 3.0, size=7)
    (bench.RESULTS / "fuzz.json").write_text('{"inputs": 100000}')
    assert bench.last_result([10_000])["measure", 10_000].ratio == 2.0
    assert bench.last_result([99]) == {}


def test_more_than_a_fifth_slower_is_called_a_regression(bench, capsys):
    stored(bench, "20260101T000000Z.json", 1.0)
    for ratio, worse in ((1.19, False), (1.25, True)):
        bench.show([bench.Row("measure", 10_000, 1.0, ratio, 100.0)], bench.last_result([10_000]))
        assert ("REGRESSION" in capsys.readouterr().out) == worse


def test_a_stored_result_is_found_again(bench):
    path = bench.store([bench.Row("measure", 10_000, 1.5, 2.5, 170.0)])
    assert path.parent == bench.RESULTS
    assert bench.last_result([10_000])["measure", 10_000].ratio == 2.5
