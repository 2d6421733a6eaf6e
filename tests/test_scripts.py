"""Scripts outside the package import names that exist; the linter does not look into other modules."""

import ast
import importlib
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def imported_names():
    for folder in ("research", "examples", "tests"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wayveil"):
                    for one in node.names:
                        yield path.name, node.module, one.name


def exists(module, name):
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


def test_scripts_import_names_that_exist():
    found = list(imported_names())
    assert len(found) > 500
    assert [f"{file}: {module}.{name}" for file, module, name in found if not exists(module, name)] == []


def test_the_guide_names_every_script():
    guide = (REPOSITORY / "research" / "README.md").read_text()
    scripts = {path.name for path in (REPOSITORY / "research").rglob("*.py")}
    assert len(scripts) > 40
    assert sorted(name for name in scripts if name not in guide) == []
