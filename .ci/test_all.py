"""Run the tests on every supported Python that is installed, and the demo from the wheel alone.

    python .ci/test_all.py                        # every supported Python
    python .ci/test_all.py --only 3.12 3.13
    python .ci/test_all.py -- tests/rules -n 2    # other arguments for pytest

Each Python gets an environment of its own under build/environments, which is kept while pyproject.toml stays the same.
The wheel is installed without extras into an empty environment, where `wayveil demo` runs outside the checkout.
Needs only the standard library and a package index.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / "build" / "environments"
PYTEST_ARGUMENTS = ["-n", "2", "-m", "not long", "--require-real"]
INSTALL = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


@dataclass(frozen=True)
class Outcome:
    """Result of one step on one Python."""

    python: str
    step: str
    passed: bool
    remark: str = ""
    wall_s: float = 0.0


def supported_versions() -> list[str]:
    """Python versions that pyproject.toml declares, such as 3.11."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = (re.fullmatch(r"Programming Language :: Python :: (\d+\.\d+)", line) for line in project["classifiers"])
    return [match[1] for match in found if match]


def find_interpreter(version: str) -> Path | None:
    """An interpreter of this version, from pyenv or the path; a pyenv shim for an inactive version does not run."""
    for candidate in _candidates(version):
        asked = [candidate, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(asked, capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    return None


def _candidates(version: str) -> Iterator[Path]:
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        yield Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for folder in sorted(pyenv.glob(f"{version}.*"), key=_patch_number, reverse=True):
        yield folder / "bin" / "python"
    if on_path := shutil.which(f"python{version}"):
        yield Path(on_path)


def _patch_number(folder: Path) -> int:
    patch = folder.name.rpartition(".")[2]
    return int(patch) if patch.isdigit() else -1


def make_environment(interpreter: Path, folder: Path) -> Path:
    """An empty environment; returns its interpreter."""
    subprocess.run([interpreter, "-m", "venv", "--clear", folder], check=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def development_environment(version: str, interpreter: Path) -> Path:
    """The environment for this version with the development extra, made anew when pyproject.toml has changed."""
    folder, wanted = ENVIRONMENTS / version, (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    stamp, python = folder / "pyproject.toml", folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
        make_environment(interpreter, folder)
        subprocess.run([python, *INSTALL, "--editable", f"{ROOT}[dev]"], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def run_suite(version: str, interpreter: Path, pytest_arguments: list[str]) -> None:
    """Run pytest in the environment of this version."""
    python = development_environment(version, interpreter)
    subprocess.run([python, "-m", "pytest", "-p", "no:cacheprovider", *pytest_arguments], cwd=ROOT, check=True)


def run_wheel_demo(interpreter: Path) -> None:
    """Build the wheel, install it without extras into an empty environment and run the demo there."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    with tempfile.TemporaryDirectory(prefix="wayveil-wheel-") as name:
        folder = Path(name)
        python = make_environment(interpreter, folder / "environment")
        build = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*build, "--wheel-dir", folder, ROOT], check=True, env=clean)
        (wheel,) = folder.glob("*.whl")
        subprocess.run([python, *INSTALL, wheel], check=True, env=clean)
        work = folder / "work"
        work.mkdir()
        ask = [python, "-c", "import wayveil; print(wayveil.__file__)"]
        imported = subprocess.run(ask, cwd=work, env=clean, check=True, capture_output=True, text=True).stdout.strip()
        if not Path(imported).is_relative_to(folder / "environment"):
            raise RuntimeError("wayveil was not imported from the wheel")
        command = python.with_name("wayveil.exe" if os.name == "nt" else "wayveil")
        own = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("DATA", "STATE", "CACHE")}
        subprocess.run([command, "demo"], cwd=work, env={**clean, **own}, check=True, stdin=subprocess.DEVNULL)
        if not list((work / "wayveil-demo").rglob("*.release.json")):
            raise RuntimeError("the demo wrote no release")


def timed(version: str, step: str, action: Callable[..., None], *arguments: object) -> Outcome:
    """Run one step; a failing step does not stop the others."""
    print(f"== Python {version}: {step}", flush=True)
    began = time.monotonic()
    try:
        action(*arguments)
    except (subprocess.CalledProcessError, RuntimeError) as error:
        return Outcome(version, step, False, str(error), time.monotonic() - began)
    return Outcome(version, step, True, "", time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="VERSION", default=supported_versions())
    parser.add_argument("--step", choices=("suite", "wheel", "both"), default="both")
    parser.add_argument("pytest_arguments", nargs="*", default=PYTEST_ARGUMENTS, metavar="-- PYTEST ARGUMENTS")
    options = parser.parse_args()
    outcomes, absent = [], []
    for version in options.only:
        interpreter = find_interpreter(version)
        if interpreter is None:
            absent.append(version)
            continue
        if options.step != "wheel":
            outcomes.append(timed(version, "suite", run_suite, version, interpreter, options.pytest_arguments))
        if options.step != "suite":
            outcomes.append(timed(version, "demo from the wheel", run_wheel_demo, interpreter))
    print("\nSummary")
    for one in outcomes:
        verdict = "passed" if one.passed else f"FAILED: {one.remark}"
        print(f"  Python {one.python}  {one.step:20s} {one.wall_s:6.0f} s  {verdict}")
    for version in absent:
        print(f"  Python {version}  not installed, not tested")
    return 0 if outcomes and all(one.passed for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
