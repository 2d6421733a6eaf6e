"""A skipped test is named in the summary, and fails a run that requires real components."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from real_components import COMPONENTS

HERE = Path(__file__).parent
TESTS = """
import pytest

@pytest.mark.needs("ray")
def test_obtainable(): pass

@pytest.mark.needs("chromium")
@pytest.mark.parametrize("k", range(3))
def test_not_obtainable(k): pass

@pytest.mark.needs("pandas")
def test_present(): pass

def test_undeclared(): pytest.skip("for some other reason")
"""
# A machine without ray, which it could have, and without Chromium, which it could not have.
PRETEND = """
from dataclasses import replace
import real_components
every = real_components.COMPONENTS
for name, component in list(every.items()):
    present, obtainable = name not in ("ray", "chromium"), name != "chromium"
    every[name] = replace(component, present=lambda p=present: p, obtainable=lambda o=obtainable: o)
"""


@pytest.fixture
def run_pytest(tmp_path):
    (tmp_path / "test_pretended.py").write_text(TESTS)
    (tmp_path / "pretend.py").write_text(PRETEND)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")

    def run(*arguments):
        command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "pretend", "-p", "no:cacheprovider", "-q"]
        path = os.pathsep.join([str(HERE), str(tmp_path)])
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
        done = subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            env={**environment, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # they start slowly
            capture_output=True,
            text=True,
            timeout=600,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_the_summary_names_every_skip_and_its_reason(run_pytest):
    code, text = run_pytest()
    assert code == 0, text
    assert re.search(r"^missing: ray, chromium$", text, re.MULTILINE)
    assert f"1 skipped: ray missing ({COMPONENTS['ray'].remedy})" in text
    assert f"3 skipped: chromium missing ({COMPONENTS['chromium'].remedy})" in text
    assert "1 skipped: test_pretended.py::test_undeclared: for some other reason" in text
    assert "--require-real" not in text


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ("test_obtainable", 1),
        ("test_undeclared", 1),
        ("test_not_obtainable", 0),
        ("test_present", 0),
    ],
)
def test_required_components_fail_the_run_where_they_are_obtainable(run_pytest, chosen, code):
    found, text = run_pytest("--require-real", "-k", chosen)
    assert found == code, text
    assert ("--require-real: 1 skipped" in text) == bool(code)


def test_workers_report_what_they_skipped(run_pytest):
    code, text = run_pytest("--require-real", "-p", "xdist", "-n", "2")
    assert code == 1 and "3 skipped: chromium missing" in text, text
    assert re.findall(r"^--require-real: 1 skipped: (\w+)", text, re.MULTILINE) == ["ray", "test_pretended"]


def test_an_unknown_component_is_an_error(run_pytest, tmp_path):
    (tmp_path / "test_pretended.py").write_text('import pytest\n@pytest.mark.needs("rai")\ndef test_x(): pass\n')
    code, text = run_pytest()
    assert code == pytest.ExitCode.USAGE_ERROR and "needs rai: see tests/real_components.py" in text


def test_the_development_extra_installs_every_python_package():
    import tomllib

    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {re.split(r"[<>=;]", line)[0] for line in project["optional-dependencies"]["dev"]}
    packages = {name for name, component in COMPONENTS.items() if "pip install" in component.remedy}
    named = {"sklearn": "scikit-learn"}
    assert packages and {named.get(name, name.replace("_", "-")) for name in packages} <= listed
