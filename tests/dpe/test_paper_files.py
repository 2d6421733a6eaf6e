"""The command on real-looking files: stamps, rules, refusals, and that the kernel needs no heavy package."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from wayveil.cli.paper import register
from wayveil.core.trajectories import Trajectories
from wayveil.dpe import NOT_PRIVATE
from wayveil.dpe.coordinates import frame_of, synthesize_published
from wayveil.dpe.files import synthesize_file
from wayveil.dpe.method import options_of
from wayveil.errors import InputError
from wayveil.io import files
from wayveil.io.scope_files import read_scope
from wayveil.progress import quiet


@pytest.fixture(scope="module")
def rides() -> Trajectories:
    scope, rng = read_scope("demo-city"), np.random.default_rng(0)
    counts = rng.integers(4, 9, size=15)
    offsets = np.r_[0, np.cumsum(counts)]
    start = np.repeat(rng.uniform(1_000, 8_000, size=(15, 2)), counts, axis=0)
    along = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    lon, lat = scope.to_degrees(start[:, 0] + 150.0 * along, start[:, 1] + 40.0 * along)
    t_utc = scope.time_window()[0] + np.repeat(rng.uniform(0, 2e6, size=15), counts) + 30.0 * along
    return Trajectories(offsets, lon, lat, t_utc)


@pytest.fixture
def file(rides: Trajectories, tmp_path: Path) -> Path:
    files.write(rides, tmp_path / "rides.parquet")
    return tmp_path / "rides.parquet"


def command(*words: str) -> object:
    app = typer.Typer()
    register(app)

    @app.callback()
    def _main() -> None:
        """A single command needs a callback to keep its name."""

    return CliRunner().invoke(app, ["paper", *words])


def test_the_command_warns_first_and_stamps_its_files(file: Path) -> None:
    out = file.with_name("out.parquet")
    words = ["synthesize", str(file), "--scope", "demo-city", "--epsilon", "1", "--iterations", "3", "-o", str(out)]
    result = command(*words)
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith(NOT_PRIVATE)
    assert files.read_metadata(out)["wayveil.private"] == "false"
    side = json.loads(file.with_name("out.parquet.json").read_text())
    assert side["private"] is False
    assert side["notice"] == NOT_PRIVATE
    assert len(files.read(out)) == 15


def test_output_has_the_inputs_shape_and_growing_times(rides: Trajectories) -> None:
    scope = read_scope("demo-city")
    made = synthesize_published(rides, scope, options_of(0.05, learning_rate=5.0, iterations=20)).trajectories
    assert np.array_equal(made.offsets, rides.offsets)
    assert not np.array_equal(made.lon, rides.lon)
    for begin, end in zip(made.offsets[:-1], made.offsets[1:], strict=True):
        assert (np.diff(made.t_utc[begin:end]) > 0).all()
    x_m, y_m = scope.to_metres(made.lon, made.lat)
    assert x_m.min() > -1e-3 and x_m.max() < scope.width_m + 1e-3
    assert y_m.min() > -1e-3 and y_m.max() < scope.height_m + 1e-3


def test_no_iterations_give_back_the_input(rides: Trajectories) -> None:
    made = synthesize_published(rides, read_scope("demo-city"), options_of(1.0, iterations=0)).trajectories
    assert made.lon == pytest.approx(rides.lon, abs=1e-9)
    assert made.t_utc == pytest.approx(rides.t_utc, abs=1e-3)


def test_time_scale_is_explicit(rides: Trajectories) -> None:
    scope = read_scope("demo-city")
    balanced = frame_of(rides, scope)
    assert balanced.tau_m == pytest.approx(balanced.diameter_m)
    one = frame_of(rides, scope, 1.0)
    assert one.tau_m == pytest.approx(28 * 86_400.0)
    still = synthesize_published(rides, scope, replace(options_of(0.05, iterations=5), time_scale_mps=0.0)).trajectories
    assert still.t_utc == pytest.approx(rides.t_utc, abs=0.01)
    with pytest.raises(InputError, match="time_scale_mps="):
        frame_of(rides, scope, -1.0)


def test_rules_are_penalties(rides: Trajectories) -> None:
    from wayveil.rules import closed

    scope = read_scope("demo-city")
    lon, lat = scope.to_degrees(np.array([3_000.0, 6_000.0]), np.array([3_000.0, 6_000.0]))
    ring = [[x, y] for x, y in zip(lon[[0, 1, 1, 0, 0]], lat[[0, 0, 1, 1, 0]], strict=True)]
    area = closed({"type": "Polygon", "coordinates": [ring]}, scope)
    options = options_of(50.0, iterations=150, learning_rate=1.0)
    free = synthesize_published(rides, scope, replace(options, rules_factor=1e-9), rules=(area,))
    kept = synthesize_published(rides, scope, replace(options, rules_factor=20.0), rules=(area,))
    assert free.rule_breaks[1] > 5
    assert kept.rule_breaks[1] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dim", "0"], "dim="),
        (["--epsilon", "-1"], "epsilon="),
        (["--subset", "1"], "subset="),
        (["--no-align"], "different lengths"),
        (["--loss", "sum-square", "--learning-rate", "1e9", "--iterations", "50"], "at iteration"),
        (["--precision", "float8"], "precision"),
        (["--dim", "300000000"], "or fewer"),
        (["--rules-factor", "nan"], "rules_factor="),
    ],
)
def test_bad_input_leaves_nothing_behind(file: Path, words: list[str], message: str) -> None:
    out = file.with_name("out.parquet")
    given = ["synthesize", str(file), "--scope", "demo-city", "--epsilon", "0.01", "-o", str(out), *words]
    result = command(*given)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert [path.name for path in file.parent.iterdir()] == ["rides.parquet"]


def test_a_missing_folder_is_known_before_the_work(file: Path) -> None:
    with pytest.raises(InputError, match="The folder for"):
        synthesize_file(str(file), "demo-city", file.parent / "nowhere" / "out.csv", options_of(1.0))


def test_experiments_write_tables_and_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wayveil.reproduction import constraints, parameters

    assert parameters.grid(quick=True, full=False) == ([100, 200], [0.01, 1.0])
    monkeypatch.setattr(parameters, "grid", lambda quick, full: ([12], [0.01, 1.0]))  # one size to compile
    rows = constraints.run(tmp_path / "c", m=6, points=8, cases=constraints.CASES[:2], quick=True)
    assert [row["case"] for row in rows] == ["originals", "without penalties", "printed"]
    parameters.run(tmp_path / "p", m=30, points=10, losses=("mean-square",), quick=True)
    for folder, name in (("c", "constraints"), ("p", "parameters")):
        found = {path.name for path in (tmp_path / folder).iterdir()}
        assert found == {"table.json", "table.csv", f"{name}.png", f"{name}.svg"}
        table = json.loads((tmp_path / folder / "table.json").read_text())
        assert table["private"] is False and table["rows"]


def test_comparison_runs_on_what_the_folder_holds(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wayveil.reproduction import comparison

    with pytest.raises(InputError, match="cabspotting"):
        comparison.run(tmp_path / "empty", tmp_path / "o")
    data = comparison.Dataset("Demo", ("rides.parquet",), "demo-city", 0.1)
    monkeypatch.setattr(comparison, "DATASETS", (data,))
    rows = comparison.run(file.parent, tmp_path / "o", methods="dpe", quick=True)
    assert [row["epsilon"] for row in rows] == [0.1, 0.5, 1.0]
    assert rows[-1]["density_100"] <= rows[0]["density_100"]
    assert (tmp_path / "o" / "comparison.png").stat().st_size > 10_000
    with pytest.raises(InputError, match="methods="):
        comparison.run(file.parent, tmp_path / "o", methods="magic")
    for wrong in ({"subset": 1}, {"iterations": 0}, {"jobs": 0}):
        with pytest.raises(InputError, match="or more"):
            comparison.run(file.parent, tmp_path / "no", **wrong)
    assert not (tmp_path / "no").exists()


@pytest.mark.filterwarnings("ignore:The .* the network's training data")
def test_the_sound_method_of_the_comparison_is_the_product(rides: Trajectories) -> None:
    from wayveil.reproduction.methods import METHODS, RunSettings

    scope = read_scope("demo-city")
    made = METHODS["wayveil"].run(rides, scope, 1.0, RunSettings(0.1, 1, None, 1), quiet)
    assert METHODS["wayveil"].private and len(made) == len(rides)
    x_m, y_m = scope.to_metres(made.lon, made.lat)
    assert (x_m >= 0).all() and (x_m <= scope.width_m).all() and (y_m >= 0).all() and (y_m <= scope.height_m).all()


def test_the_kernel_needs_numpy_and_jax_alone() -> None:
    program = (
        "import sys\n"
        "for name in ('shapely', 'pyproj', 'opendp', 'pydantic', 'pyarrow', 'typer', 'scipy.spatial'):\n"
        "    sys.modules[name] = None\n"
        "import wayveil.dpe.method, wayveil.dpe.coordinates, wayveil.reproduction.parameters\n"
        "from wayveil.dpe.kernel import Plan, metric_sums\n"
        "import numpy\n"
        "print(metric_sums(numpy.eye(3), Plan(2, 'float32')).round(3).tolist())\n"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[2.828, 2.828, 2.828]"
