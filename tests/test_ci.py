"""The scripts of continuous integration find what they should run."""

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / ".ci" / "test_all.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("ci_test_all", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_supported_versions_are_those_of_the_project(script):
    assert script.supported_versions() == ["3.11", "3.12", "3.13"]


def test_an_interpreter_of_the_wrong_version_is_not_taken(script, tmp_path, monkeypatch):
    running = "{}.{}".format(*sys.version_info[:2])
    assert script.find_interpreter(running) == Path(sys.executable)
    folder = tmp_path / "versions" / "3.99.1" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert script.find_interpreter("3.99") is None


@pytest.mark.parametrize("passes", [True, False])
def test_a_failing_step_fails_the_run_and_an_absent_python_is_named(script, monkeypatch, capsys, passes):
    def suite(version, interpreter, arguments):
        if not passes:
            raise RuntimeError("one test failed")

    monkeypatch.setattr(script, "run_suite", suite)
    monkeypatch.setattr(script, "find_interpreter", lambda version: Path(sys.executable) if version == "3.12" else None)
    monkeypatch.setattr(sys, "argv", ["test_all.py", "--step", "suite"])
    assert script.main() == (0 if passes else 1)
    said = capsys.readouterr().out
    assert ("FAILED: one test failed" in said) is not passes
    assert "Python 3.13  not installed, not tested" in said


def test_without_any_python_nothing_was_tested(script, monkeypatch):
    monkeypatch.setattr(script, "find_interpreter", lambda version: None)
    monkeypatch.setattr(sys, "argv", ["test_all.py"])
    assert script.main() == 1
