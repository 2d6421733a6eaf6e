"""The comparison: cells, resuming, tables, pictures; and the commands `evaluate` and `bench utility`."""

import json
import pickle
import struct
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from wayveil.cli import bench as bench_verb
from wayveil.cli import evaluate as evaluate_verb
from wayveil.cli.console import NOT_FOR_PUBLICATION
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.evaluation import evaluate
from wayveil.evaluation import methods as registry
from wayveil.evaluation.bench import Cell, Failure, Outcome, plan_cells, run_cells
from wayveil.evaluation.bench_limits import Limits, memory_mb
from wayveil.evaluation.bench_outputs import wins, write_outputs
from wayveil.evaluation.compare_methods import compare_methods
from wayveil.evaluation.datasets import Dataset, find_datasets
from wayveil.evaluation.method_charts import OTHERS, draw_chart, families
from wayveil.evaluation.methods import DEFAULT, METHODS, Method, find_method
from wayveil.io.files import write
from wayveil.io.options import SYNTHETIC
from wayveil.io.scope_files import read_scope
from wayveil.synthesis.recipe import Synthesis

SCOPE = Scope(name="square", south=0.0, west=0.0, north=0.1, east=0.1)


def walks(n, seed, scope=SCOPE):
    rng = np.random.default_rng(seed)
    x = scope.width_m / 2 + rng.normal(0, 900, (n, 1)) + np.cumsum(rng.normal(0, 120, (n, 8)), 1)
    y = scope.height_m / 2 + rng.normal(0, 900, (n, 1)) + np.cumsum(rng.normal(0, 120, (n, 8)), 1)
    lon, lat = scope.to_degrees(x.ravel(), y.ravel())
    t0 = rng.integers(1_740_990_000, 1_741_000_000, (n, 1))
    return Trajectories(np.arange(0, 8 * n + 1, 8), lon, lat, (t0 + np.arange(8) * 20).ravel().astype(float))


@pytest.fixture
def counted(monkeypatch):
    """Two methods of the registry that count their runs."""
    runs = []

    def fresh(task):
        runs.append(("fresh", task.epsilon, task.seed))
        return walks(len(task.data), 100 + task.seed)

    def copy(task):
        runs.append(("copy", task.epsilon, task.seed))
        return task.data

    def broken(task):
        raise ValueError("12.3456 is a coordinate")

    for method in (
        Method("fresh", fresh, private=True), Method("copy", copy, private=False), Method("broken", broken, True),
        Method("mapped", fresh, private=True, needs_roads=True),
    ):  # fmt: skip
        monkeypatch.setitem(registry.METHODS, method.name, method)
    return runs


@pytest.fixture
def dataset():
    return Dataset("walks", SCOPE, lambda: walks(120, 0), None, "one")


def untimed(row):
    return {name: value for name, value in row.items() if name not in ("wall_s", "cpu_s")}


def test_only_what_is_missing_is_run_again(counted, dataset, tmp_path):
    cells = plan_cells([dataset], [0.5, 1.0], ["fresh", "copy"], 2)
    first = run_cells(cells, tmp_path)
    assert len(counted) == len(cells) == 8 and len(first.rows) == 8 * 5
    counted.clear()
    assert run_cells(cells, tmp_path).rows == first.rows and counted == []
    victims = sorted((tmp_path / "cells").glob("walks__copy__eps1__*.json"))
    victims[0].unlink()
    victims[1].write_text('{"values": {"leng')  # killed in the middle by something that is not us
    again = run_cells(cells, tmp_path).rows
    assert [untimed(row) for row in again] == [untimed(row) for row in first.rows]
    assert counted == [("copy", 1.0, 0), ("copy", 1.0, 1)]


def test_an_interrupted_run_keeps_its_finished_cells(counted, dataset, tmp_path, monkeypatch):
    cells = plan_cells([dataset], [0.5, 1.0], ["fresh"], 2)

    def killed(*arguments):
        if len(counted) == 2:
            raise KeyboardInterrupt
        return METHODS["fresh"].run(*arguments)

    stopped = [type(cell)(cell.dataset, Method("fresh", killed, True), cell.epsilon, cell.seed) for cell in cells]
    with pytest.raises(KeyboardInterrupt):
        run_cells(stopped, tmp_path)
    counted.clear()
    run_cells(cells, tmp_path)
    assert len(counted) == 2


def test_other_data_or_more_metrics_are_run_again(counted, dataset, tmp_path):
    cells = plan_cells([dataset], [1.0], ["fresh"], 1)
    run_cells(cells, tmp_path)
    run_cells(cells, tmp_path, metrics=("length", "diameter"))
    assert len(counted) == 2
    changed = Dataset("walks", SCOPE, dataset.read, None, "two")
    run_cells(plan_cells([changed], [1.0], ["fresh"], 1), tmp_path)
    assert len(counted) == 3


def test_a_failing_method_does_not_stop_others_and_its_text_is_not_shown(counted, dataset, tmp_path):
    said = []
    outcome = run_cells(plan_cells([dataset], [1.0], ["broken", "fresh"], 1), tmp_path, say=said.append)
    assert {row["method"] for row in outcome.rows} == {"fresh"}
    assert len(outcome.failures) == 1 and "12.3456" not in outcome.failures[0].reason
    assert "left" in said[-1] and not list((tmp_path / "cells").glob("*broken*"))


def slow_method(task):
    time.sleep(60)


def greedy_method(task):
    held = np.ones(80_000_000)  # 640 MB
    time.sleep(60)
    return held


def quick_method(task):
    return task.data


def quick_data():
    return walks(60, 0)


def test_limits_end_a_cell_and_are_remembered(tmp_path):
    city = Dataset("walks", SCOPE, quick_data, None, "one")
    slow, greedy, quick = (
        [Cell(city, Method(run.__name__, run, True), 1.0, 0)] for run in (slow_method, greedy_method, quick_method)
    )
    assert run_cells(slow, tmp_path, limits=Limits(2.0)).failures[0].reason == "took longer than 2 s"
    begin = time.monotonic()
    assert "2 s" in run_cells(slow, tmp_path, limits=Limits(1.0)).failures[0].reason  # not tried again
    assert time.monotonic() - begin < 1
    assert "2.5 s" in run_cells(slow, tmp_path, limits=Limits(2.5)).failures[0].reason  # a higher limit: tried again
    assert "MB of memory" in run_cells(greedy, tmp_path, limits=Limits(100.0, 500.0)).failures[0].reason
    outcome = run_cells(quick, tmp_path, limits=Limits(100.0, 4_000.0))
    assert not outcome.failures and outcome.rows[0]["peak_mb"] > 20


ENDLESS = """
import os, time
from pathlib import Path

from wayveil.evaluation.bench_limits import Limits, run_limited

HERE = Path(__file__).parent

def endless():
    (HERE / "part").write_text(str(os.getpid()))
    (HERE / "part").rename(HERE / "started")
    time.sleep(600)
    return {}

if __name__ == "__main__":
    run_limited(endless, Limits(600.0))
"""


def test_a_killed_comparison_takes_its_running_cell_along(tmp_path):
    (tmp_path / "endless.py").write_text(ENDLESS)
    comparison = subprocess.Popen([sys.executable, str(tmp_path / "endless.py")], cwd=tmp_path)
    started = tmp_path / "started"
    assert eventually(started.exists)
    cell = int(started.read_text())
    assert memory_mb(cell) > 0
    comparison.kill()
    comparison.wait()
    assert eventually(lambda: memory_mb(cell) == 0)


def eventually(condition, within_s=60.0):
    deadline = time.monotonic() + within_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_limits_make_sense():
    with pytest.raises(InputError, match="above 0"):
        Limits(-1.0)
    with pytest.raises(InputError, match="above 0"):
        Limits(float("nan"))


def test_every_method_can_be_sent_to_another_process():
    for name in (*METHODS, "wayveil.baselines:adatrace", "wayveil.baselines:adatrace-published"):
        assert pickle.loads(pickle.dumps(find_method(name))).name == name
    assert find_method("magic") is None and set(DEFAULT) <= set(METHODS)


def test_the_table_of_methods_is_complete():
    result = CliRunner().invoke(app_with(bench_verb), ["bench", "methods", "--json"])
    rows = json.loads(result.stdout)["methods"]
    assert {row["method"] for row in rows} == set(METHODS)
    for row in rows:
        assert row["reference"] and row["idea"] and row["protects"] and row["why"]
        assert row["epsilon_holds"] is METHODS[row["method"]].private
        assert row["times"] is METHODS[row["method"]].has_time
        # Every claim comes with the figure of the attack.
        refuted = row["audit"]["bound"] > row["audit"]["allowed"]
        assert refuted is not row["epsilon_holds"] and f"{row['audit']['bound']:.2f}" in row["why"]
    shown = CliRunner().invoke(app_with(bench_verb), ["bench", "methods"])
    assert shown.exit_code == 0 and "safepath" in shown.stdout


def test_conformance_can_be_checked_for_one_method():
    arguments = ["bench", "conformance", "--methods", "rejection", "--json"]
    result = CliRunner().invoke(app_with(bench_verb), arguments)
    found = json.loads(result.stdout)["checks"]
    assert result.exit_code == 0 and len(found) == 8 and not any(each["problem"] for each in found)


def test_methods_with_a_map_need_one(counted, dataset):
    assert plan_cells([dataset], [1.0], ["mapped"], 1) == []


def test_the_bench_writes_all_outputs(counted, dataset, tmp_path):
    rows = run_cells(plan_cells([dataset], [0.5, 1.0], ["fresh", "copy"], 1), tmp_path).rows
    written = write_outputs(rows, tmp_path)
    assert {"results.parquet", "results.csv", "wins.csv", "length.png", "relation.png"} <= set(written)
    table = pq.read_table(tmp_path / "results.parquet")
    assert table.num_rows == 20 and {"dataset", "epsilon", "method", "seed", "metric", "value", "floor"} <= set(
        table.column_names
    )
    assert (tmp_path / "length.png").read_bytes().startswith(b"\x89PNG")


def test_the_chart_has_a_row_of_panels_for_each_family(tmp_path):
    rows = [
        {"dataset": dataset, "method": method, "epsilon": epsilon, "metric": "relation", "trajectories": 10,
         "value": value, "floor": 0.01}
        for dataset in ("here", "there")
        for method in ("wayveil", "adatrace", "adatrace-published", "dpt", "mine:own")
        for epsilon, value in ((0.1, 0.2), (1.0, -0.001))
    ]  # fmt: skip
    assert list(families([row["method"] for row in rows])) == ["grids and chains", "trees", OTHERS]
    sizes = []
    for kept in (rows, [row for row in rows if row["method"] in ("wayveil", "dpt")]):
        draw_chart(kept, "relation", tmp_path / "relation.png")
        picture = (tmp_path / "relation.png").read_bytes()
        sizes.append(struct.unpack(">II", picture[16:24]))
    assert sizes[0][0] == sizes[1][0] and sizes[0][1] > 2 * sizes[1][1]


def test_a_copy_does_not_win(counted, dataset, tmp_path):
    rows = run_cells(plan_cells([dataset], [0.5, 1.0], ["fresh", "copy"], 1), tmp_path).rows
    found = wins(rows)
    assert {row["method"] for row in found} == {"fresh"}
    assert all(row["won"] == row["cells"] == 2 for row in found)


def test_wins_are_of_the_mean_and_of_the_better_side():
    def row(method, seed, value, metric):
        return {"dataset": "d", "epsilon": 1.0, "method": method, "seed": seed, "metric": metric, "value": value,
                "private": True}  # fmt: skip

    rows = [row("a", 0, 0.1, "length"), row("a", 1, 0.5, "length"), row("b", 0, 0.2, "length"),
            row("a", 0, 0.9, "coverage_tau"), row("b", 0, 0.8, "coverage_tau")]  # fmt: skip
    found = {(r["method"], r["metric"]): r["won"] for r in wins(rows)}
    assert found == {("a", "length"): 0, ("b", "length"): 1, ("a", "coverage_tau"): 1, ("b", "coverage_tau"): 0}


def test_folder_of_datasets(tmp_path):
    for name in ("cabspotting", "elsewhere"):
        write(walks(5, 1, read_scope("san-francisco")), tmp_path / f"{name}.parquet")
    write(walks(5, 1), tmp_path / "cabspotting_trips.parquet")
    found = find_datasets(tmp_path, "demo-city")
    assert {d.name: d.scope.name for d in found} == {"cabspotting": "san-francisco", "elsewhere": "demo-city"}
    with pytest.raises(InputError, match="scope="):
        find_datasets(tmp_path, None)
    with pytest.raises(InputError, match="nowhere"):
        find_datasets(tmp_path, None, ["nowhere"])
    assert [d.name for d in find_datasets(tmp_path, None, ["cabspotting"])] == ["cabspotting"]


@pytest.mark.parametrize(
    "options",
    [{"quick": False}, {"methods": "magic"}, {"methods": " , "}, {"methods": ""}, {"epsilons": "a"}, {"epsilons": "0"},
     {"epsilons": ""}, {"epsilons": "nan"}, {"epsilons": "1,inf"}, {"seeds": 0}, {"datasets": "cabspotting"},
     {"scope": "beijing"}],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options, tmp_path):
    with pytest.raises(InputError) as refused:
        compare_methods(None, tmp_path, **{"quick": True, **options})
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_what_is_no_parquet_file_is_refused_before_any_cell(tmp_path):
    (tmp_path / "cabspotting.parquet").write_text("hello")
    with pytest.raises(InputError, match="not a Parquet file"):
        compare_methods(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_cells_that_fail_alike_get_one_sentence():
    failures = [Failure(f"cell{k}", "no columns") for k in range(5)] + [Failure("other", "took longer than 2 s")]
    assert Outcome([], tuple(failures)).sentences == [
        "No result for cell0, cell1, cell2 and 2 more: no columns",
        "No result for other: took longer than 2 s",
    ]


def app_with(*verbs):
    app = typer.Typer()
    app.callback()(lambda: None)
    for verb in verbs:
        verb.register(app)
    return app


def test_bench_utility_quick_on_the_embedded_city(tmp_path):
    arguments = ["bench", "utility", "--quick", "-o", str(tmp_path / "out"), "--methods", "adatrace,privtrace",
                 "--epsilons", "1"]  # fmt: skip
    result = CliRunner().invoke(app_with(bench_verb), arguments)
    assert result.exit_code == 0, result.output
    assert "privtrace" in result.stdout and NOT_FOR_PUBLICATION in result.stderr
    assert (tmp_path / "out" / "results.csv").is_file()


def test_the_evaluate_command_compares_files(tmp_path):
    scope = read_scope("demo-city")
    real = walks(300, 1, scope)
    write(real, tmp_path / "real.parquet")
    write(walks(300, 2, scope), tmp_path / "honest.parquet")
    files = [str(tmp_path / name) for name in ("real.parquet", "honest.parquet")]
    arguments = ["evaluate", *files, "--scope", "demo-city", "--against", files[0], "--headline"]
    shown = CliRunner().invoke(app_with(evaluate_verb), arguments)
    assert shown.exit_code == 0, shown.output
    assert NOT_FOR_PUBLICATION in shown.stderr and "copied" in shown.stderr and "below" in shown.stdout
    result = json.loads(CliRunner().invoke(app_with(evaluate_verb), [*arguments, "--json"]).stdout)
    assert result["note"] == NOT_FOR_PUBLICATION
    assert result["files"]["honest.parquet"]["below_floor"] == []
    assert "density_100" in result["files"]["real.parquet"]["below_floor"]


def test_evaluate_warns_about_too_few_trajectories(tmp_path):
    scope = read_scope("demo-city")
    for name, n in (("one", 1), ("many", 60)):
        write(walks(n, n, scope), tmp_path / f"{name}.parquet")
    files = {name: str(tmp_path / f"{name}.parquet") for name in ("one", "many")}
    for real, made, said in (("one", "many", "The real data has"), ("many", "one", "'one.parquet' has")):
        arguments = ["evaluate", files[real], files[made], "--scope", "demo-city", "--headline"]
        shown = CliRunner().invoke(app_with(evaluate_verb), arguments)
        assert shown.exit_code == 0 and f"{said} fewer than 20 trajectories: too few" in shown.stderr
        assert "±" not in shown.stdout and "below" not in shown.stdout


def test_evaluate_refuses_swapped_files(tmp_path):
    scope = read_scope("demo-city")
    write(walks(100, 1, scope), tmp_path / "real.csv")
    made = Synthesis(walks(100, 2, scope), {}, True, {"origin": f"{SYNTHETIC}, made for a test"})
    write(made, tmp_path / "made.csv")
    names = [str(tmp_path / name) for name in ("real.csv", "made.csv")]

    def run(*files):
        return CliRunner().invoke(app_with(evaluate_verb), ["evaluate", *files, "--scope", "demo-city", "--headline"])

    shown = run(*names)
    assert shown.exit_code == 0 and "synthetic file" not in shown.stderr
    shown = run(*names[::-1])
    assert shown.exit_code != 0 and "'made.csv' is a synthetic file; give the real data first." in str(shown.exception)
    with pytest.raises(InputError, match="give the real data first"):
        evaluate(*names[::-1], scope)
    # Two synthetic files can be compared; the warning stays.
    shown = run(names[1], names[1])
    assert shown.exit_code == 0 and "'made.csv' is a synthetic file" in shown.stderr
