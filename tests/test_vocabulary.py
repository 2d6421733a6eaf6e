"""`import wayveil` and its names."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wayveil
from wayveil.core.tables import table_of
from wayveil.release.number import estimate_number
from wayveil.simulate import simulate_city, simulate_trajectories


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_every_name_is_there():
    for name in wayveil.__all__:
        assert getattr(wayveil, name) is not None, name
    assert set(wayveil.__all__) <= set(dir(wayveil))
    for name in (
        "read", "write", "Scope", "read_scope", "measure", "read_release", "write_release", "synthesize", "evaluate",
        "rules", "Synthesizer", "Unit", "Ledger", "Release", "Trajectories", "describe", "errors",
    ):  # fmt: skip
        assert name in wayveil.__all__
    with pytest.raises(AttributeError):
        _ = wayveil.no_such_name


@pytest.mark.parametrize("name", [name for name in wayveil.__all__ if callable(getattr(wayveil, name))])
def test_no_module_hides_a_function_of_its_name(name):
    """Python binds a submodule to its package's attribute: `import wayveil.measure` would replace the function."""
    assert importlib.util.find_spec(f"wayveil.{name}") is None


def test_importing_the_package_is_light():
    heavy = "{'numpy', 'jax', 'opendp', 'pyarrow', 'matplotlib', 'shapely', 'scipy', 'pydantic'}"
    assert run(f"import sys, wayveil; print({heavy} & set(sys.modules))") == "set()"
    code = f"import sys, wayveil.cli.main; print(({heavy} - {{'numpy'}}) & set(sys.modules))"
    assert run(code) == "set()"


@pytest.fixture(scope="module")
def small():
    city = simulate_city(0, size_km=(4, 4))
    return city, simulate_trajectories(city, 300, seed=3)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_synthesizer_gives_frames_like_the_input(small, library, quick_synthesis, repeatable_noise):
    city, data = small
    table = table_of(data).rename_columns(["ride", "latitude", "lng", "time", "user_id"])
    if library == "pandas":
        frame = table.to_pandas()
        frame["time"] = __import__("pandas").to_datetime(frame["time"], unit="s", utc=True)
    else:
        frame = __import__("polars").from_arrow(table) if library == "polars" else table
    maker = wayveil.Synthesizer(scope=city.scope, epsilon=5, unit="user", max_per_user=2, traj_id="ride")
    with pytest.raises(wayveil.errors.InputError, match="fit"):
        maker.sample()
    made = maker.fit(frame).sample(40, seed=1)
    assert type(made) is type(frame) and list(getattr(made, "column_names", None) or made.columns) == [
        "ride", "latitude", "lng", "time",
    ]  # fmt: skip
    assert len(np.unique(np.asarray(made["ride"]))) == 40
    plain = wayveil.Synthesizer(scope=city.scope, epsilon=5, unit="user", max_per_user=2).fit(frame, traj_id="ride")
    few = plain.sample(3)
    assert "ride" in (getattr(few, "column_names", None) or list(few.columns))
    again = wayveil.read(made, traj_id="ride")
    assert len(again) == 40 and maker.release.unit == "user"
    for how in ({"times": "datetime"}, {"times": "datetime", "timezone": "Asia/Tokyo"}):
        assert wayveil.read(maker.sample(40, seed=1, **how), traj_id="ride") == again
    if library == "pandas":
        assert str(made["time"].dtype) == "int64"
        assert str(maker.sample(3, times="datetime")["time"].dt.tz) == "UTC"
        assert str(maker.sample(3, times="datetime", timezone="Asia/Tokyo")["time"].dt.tz) == "Asia/Tokyo"


def test_no_value_of_the_private_columns_changes_the_published_schema(small, quick_synthesis, repeatable_noise):
    """A type or a time zone that is copied from the data says something about its rows."""
    import pandas as pd
    import pyarrow as pa

    city, data = small
    seconds = table_of(data).drop_columns(["user_id"]).to_pandas()
    frames = [seconds.assign(t=seconds["t"] + 0.25)]
    for zone in ("UTC", "Etc/GMT-1", "Etc/GMT-2"):
        frames.append(seconds.assign(t=pd.to_datetime(seconds["t"], unit="s", utc=True).dt.tz_convert(zone)))
    frames.append(seconds.assign(t=frames[-1]["t"].astype(str)))
    frames.append(seconds.assign(lat=seconds["lat"].astype("float32"), traj_id=seconds["traj_id"].astype(str)))
    kinds = [[], []]
    for frame in (seconds, *frames):
        maker = wayveil.Synthesizer(scope=city.scope, epsilon=5, unit="trajectory").fit(frame)
        made = [maker.sample(5, **how) for how in ({}, {"times": "datetime", "timezone": "Europe/Paris"})]
        for kind, sample in zip(kinds, made, strict=True):
            kind.append(dict(sample.dtypes))
        assert pa.table(made[0]).schema.field("t").type == pa.int64()
    assert all(kind == same[0] for same in kinds for kind in same)


def test_wrong_formats_of_a_sample_are_refused(small):
    maker = wayveil.Synthesizer(scope=small[0].scope, epsilon=5, unit="trajectory")
    for how, said in (
        ({"times": "iso"}, "times= must be 'unix' or 'datetime'"),
        ({"timezone": "UTC"}, "needs times='datetime'"),
        ({"times": "datetime", "timezone": "Mars/Base"}, "must be the name of a time zone"),
        ({"times": "datetime", "timezone": 3}, "must be the name of a time zone"),
    ):
        with pytest.raises(wayveil.errors.InputError, match=said):
            maker.sample(3, **how)


def test_n_is_never_the_exact_count(small, repeatable_noise):
    city, data = small
    maker = wayveil.Synthesizer(scope=city.scope, epsilon=5, unit="trajectory").fit(data)
    noisy = round(estimate_number(maker.release).value)
    frame = maker.sample(seed=1)
    assert frame["traj_id"].nunique() == noisy


def test_a_synthesis_has_a_length_and_becomes_a_frame(small, tmp_path, quick_synthesis, repeatable_noise):
    city, data = small
    maker = wayveil.Synthesizer(scope=city.scope, epsilon=5, unit="trajectory")
    assert repr(maker) == f"Synthesizer(scope='{city.scope.name}', epsilon=5, unit='trajectory', fitted=False)"
    assert repr(maker.fit(data)).endswith("fitted=True)")
    made = wayveil.synthesize(maker.release, n=7, seed=1)
    frame = made.to_pandas()
    assert len(made) == 7 == frame["traj_id"].nunique()
    assert repr(made) == f"Synthesis(7 trajectories, {len(frame):,} points, differentially private)"
    assert list(frame.columns) == ["traj_id", "lat", "lon", "t"]
    assert frame.equals(maker.sample(7, seed=1))  # fitted to Trajectories, which have no frame to take names from
    wayveil.write(frame, tmp_path / "made.parquet")
    assert wayveil.read(tmp_path / "made.parquet") == made.trajectories


PROMISE = {"scope": "demo-city", "epsilon": 1, "unit": "trajectory"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"scope": {"south": 1}}, "scope must be a wayveil.Scope, the path of a scope file"),
        ({"scope": None}, "scope must be"),
        ({"epsilon": None}, "epsilon is not a decimal number"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"delta": 1}, "delta must be"),
        ({"unit": "person"}, "unit= must be 'trajectory', or 'user' with max_per_user="),
        ({"unit": None}, "unit= must be"),
        ({"unit": "user"}, "unit='user' needs max_per_user="),
        ({"unit": "user", "max_per_user": 0}, "max_per_user= must be a whole number from 1"),
        ({"unit": "user", "max_per_user": "two"}, "max_per_user= must be a whole number from 1"),
        ({"max_per_user": 2}, "max_per_user= applies only to unit='user'"),
        ({"epsilom": 2}, "no argument epsilom=; did you mean epsilon="),
        ({"traj": "ride"}, "no argument traj=; did you mean traj_id="),
        ({"on_bad_rows": "keep"}, "on_bad_rows must be"),
        ({"dataset": 3}, "dataset= must be a name"),
        ({"ledger": "ledger.sqlite"}, "ledger= needs dataset="),
    ],
)
def test_wrong_privacy_arguments_are_refused_at_once_by_their_python_names(words, said):
    with pytest.raises(wayveil.errors.InputError, match=said) as refused:
        wayveil.Synthesizer(**PROMISE | words)
    assert "--" not in str(refused.value)


def test_a_value_that_is_not_a_scope_is_refused(small):
    _, data = small
    for wrong in (None, {"south": 1}, 3):
        with pytest.raises(wayveil.errors.InputError, match=r"scope must be a wayveil\.Scope"):
            wayveil.measure(data, wrong, epsilon=1, unit="trajectory")
        with pytest.raises(wayveil.errors.InputError, match=r"scope must be a wayveil\.Scope"):
            wayveil.evaluate(data, data, wrong)
    with pytest.raises(wayveil.errors.InputError, match="no argument clock="):
        wayveil.Synthesizer(**PROMISE).fit(data, clock="UTC")


def test_words_and_values_of_a_description(small):
    city, data = small
    release = wayveil.measure(data, city.scope, epsilon="0.5", unit="trajectory")
    text = wayveil.describe(release)
    assert "e^ε = 1.65" in text and "total" in text and "epsilon = 0.5" in text and "NOT private" not in text
    from wayveil.privacy.noise import SeededNoise
    from wayveil.release.describe import description
    from wayveil.release.statements import large_epsilon_text

    assert json.dumps(description(release))
    assert large_epsilon_text(release) is None and "is large" not in text
    generous = wayveil.measure(data, city.scope, epsilon=50, unit="trajectory")
    assert "ε = 50 is large" in large_epsilon_text(generous) and large_epsilon_text(generous) in wayveil.describe(
        generous
    ).replace("\n  ", " ")
    seeded = wayveil.measure(data, city.scope, epsilon=1, unit="trajectory", noise=SeededNoise(0))
    assert wayveil.describe(seeded).startswith("This release is NOT private")
    factor = "changes by at most a factor"
    assert factor in " ".join(text.split()) and factor not in " ".join(wayveil.describe(seeded).split())


SPEAKS_OPTIONS = (
    "cli/",
    "evaluation/methods_table.py",  # names the command that finds the counter-example
    "measurement/signal_check.py",  # has a wording for each side
    "privacy/remedies.py",  # has a call and a command for each remedy
    "workflow/demo.py",  # prints the commands that the demo stands for
    "workflow/demo_files.py",
    "workflow/run_file.py",  # the template of a run file is a file for the command line
)
"""Modules of src/wayveil whose strings may contain options."""


def test_strings_of_the_library_contain_no_options():
    """Errors and warnings name arguments and calls; the command line turns them into options."""
    package = Path(wayveil.__file__).parent
    for module in sorted(package.rglob("*.py")):
        if module.relative_to(package).as_posix().startswith(SPEAKS_OPTIONS):
            continue
        tree = ast.parse(module.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                assert not re.search(r"(?<![\w<!-])-(o\b|-[a-z])", node.value), (module.name, node.lineno)


def test_calls_in_messages_exist_and_become_commands():
    from wayveil.cli.argument_names import as_options

    package = Path(wayveil.__file__).parent
    text = "\n".join(
        module.read_text(encoding="utf-8") for module in package.rglob("*.py") if "cli" not in module.parts
    )
    named = set(re.findall(r"[^>`\w.](wayveil\.(?:check|convert|evaluate|template)\([^)]*\))", text))
    shown = [call for call in named if "`wayveil " in as_options(call)]
    assert len(shown) >= 5
    for call in shown:
        assert callable(getattr(wayveil, re.match(r"wayveil\.(\w+)", call)[1]))
