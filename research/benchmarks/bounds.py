"""The oldest and the newest dependencies that pyproject.toml allows, tried in a fresh environment.

    python research/benchmarks/bounds.py oldest
    python research/benchmarks/bounds.py newest
    python research/benchmarks/bounds.py oldest --tests tests/rules tests/questions

Makes a virtual environment in a temporary folder, installs wayveil with every direct dependency at its lower bound
(or at the newest version below its upper bound), says which versions those are, and runs tests. Needs a package index.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ["pytest>=8,<10", "pytest-xdist>=3.5,<4", "hypothesis>=6.100,<7", "networkx>=3,<4", "pandas", "polars"]
TESTS = [
    "tests/test_measure.py", "tests/test_release.py", "tests/test_scope.py", "tests/test_trajectories.py",
    "tests/privacy", "tests/questions", "tests/io/test_roundtrip.py", "tests/io/test_reading.py",
    "tests/rules/test_rules_geojson.py", "tests/synthesis/test_strange_inputs.py", "tests/report/test_page.py",
]  # fmt: skip


def requirements() -> dict[str, str]:
    """Direct dependencies, the delta extra's included, with their bounds as written."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["delta"]]
    return {re.split(r"[<>=]", line)[0]: line for line in lines}


def pinned(line: str) -> str:
    """A requirement at its lower bound: 'numpy>=1.26,<3' is 'numpy==1.26'."""
    found = re.fullmatch(r"([\w.-]+)>=([\w.]+),<[\w.]+", line)
    if found is None:
        raise SystemExit(f"'{line}' has no lower and upper bound.")
    return f"{found[1]}=={found[2]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("oldest", "newest"))
    parser.add_argument("--tests", nargs="+", default=TESTS)
    options = parser.parse_args()
    wanted = requirements()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        limits = Path(folder) / "limits.txt"
        limits.write_text("\n".join(map(pinned, wanted.values()) if options.which == "oldest" else wanted.values()))
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", limits]
        subprocess.run([*install, f"{ROOT}[delta]", *TOOLS], check=True)
        freeze = [python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
        listed = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout.split()
        print(options.which, *[line for line in listed if line.partition("==")[0] in wanted], flush=True)
        tests = [python, "-m", "pytest", "-m", "not long", "-p", "no:cacheprovider", *options.tests]
        return subprocess.run(tests, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
