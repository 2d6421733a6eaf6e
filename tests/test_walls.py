"""What cannot be imported cannot leak: synthesis and rules know nothing of the private side."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wayveil.errors

ROOT = Path(wayveil.errors.__file__).parent
PRIVATE = (
    "wayveil.io.check",
    "wayveil.io.convert",
    "wayveil.io.files",
    "wayveil.io.readers",
    "wayveil.io.source",
    "wayveil.core.prepare",
    "wayveil.measurement",
    "wayveil.evaluation",
    "wayveil.audit",
    "wayveil.baselines",
    "wayveil.dpe",
)
WALLED = sorted(path for part in ("synthesis", "rules") for path in (ROOT / part).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Every wayveil module that a file names in an import, inside functions too, but not for type checkers alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ["wayveil", *path.relative_to(ROOT).parts[:-1]]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            found |= {name, *(f"{name}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and "import_module" in ast.dump(node.func):
            found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
    return {name for name in found if name.partition(".")[0] == "wayveil"}


def forbidden(name: str) -> bool:
    return any(name == private or name.startswith(f"{private}.") for private in PRIVATE)


@pytest.mark.parametrize("path", WALLED, ids=lambda path: str(path.relative_to(ROOT)))
def test_synthesis_imports_nothing_that_reads_private_data(path):
    assert not {name for name in imported(path) if forbidden(name)}


def test_the_check_detects_a_forbidden_import(tmp_path):
    """The test above can fail: each way to import is noticed."""
    texts = (
        "from wayveil.io.files import read", "import wayveil.measurement", "from wayveil import evaluation",
        "def f():\n    from wayveil.measurement.exact import read_exact", "from ..io.source import open_source",
        "import importlib\nimportlib.import_module('wayveil.audit')",
    )  # fmt: skip
    for text in texts:
        path = ROOT / "synthesis" / "imagined.py"
        tree_of = Path.read_text
        try:
            Path.read_text = lambda self, encoding=None, text=text: text
            assert any(forbidden(name) for name in imported(path)), text
        finally:
            Path.read_text = tree_of


def test_no_forbidden_module_is_loaded_indirectly():
    """Not through a third module either, at least not on import."""
    code = (
        "import sys, wayveil.synthesis.recipe, wayveil.rules\n"
        "print(*(name for name in sys.modules if name.startswith('wayveil.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if forbidden(name)]


def test_the_other_methods_are_loaded_only_when_asked_for():
    """Neither `import wayveil` nor the usual commands import the collection."""
    code = (
        "import sys, wayveil\n"
        "from wayveil.cli.main import main\n"
        "assert not [name for name in sys.modules if name.startswith('wayveil.baselines')]\n"
        "import wayveil.measurement, wayveil.synthesis.recipe, wayveil.workflow\n"
        "from wayveil.cli import measure, run, synthesize\n"
        "print(*(name for name in sys.modules if name.startswith(('wayveil.baselines', 'wayveil.evaluation'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_only_one_file_imports_opendp():
    imports = re.compile(r"^\s*(?:import|from)\s+opendp\b", re.MULTILINE)
    users = [path for path in ROOT.rglob("*.py") if imports.search(path.read_text(encoding="utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in users] == ["privacy/noise.py"]


def test_no_module_outside_rules_asks_for_the_class_of_a_rule():
    """Hooks of Rule replace it, so that a rule that a user writes is treated like a built-in one."""
    import wayveil.rules

    names = {"Rule", *(cls.__name__ for cls in wayveil.rules.Rule.__subclasses__())}
    assert {"Closed", "OneWay", "SpeedLimit", "StayWithin", "MinSpeed", "MaxDuration", "Custom"} <= names
    asked = []
    for path in sorted(ROOT.rglob("*.py")):
        if "rules" in path.relative_to(ROOT).parts[:-1]:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                used = {getattr(name, "id", getattr(name, "attr", "")) for name in ast.walk(node.args[1])}
                asked += [f"{path.relative_to(ROOT)}:{node.lineno}"] if used & names else []
    assert asked == []
