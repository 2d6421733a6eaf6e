"""No code runs from any file that wayveil reads: nothing in the package can make code out of data."""

import ast
from pathlib import Path

import pytest

import wayveil.errors

ROOT = Path(wayveil.errors.__file__).parent
MODULES = {"pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "subprocess", "code", "runpy"}
CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "spawn", "read_pickle", "unsafe_load"}
# A pattern is no code, and a generator spawns generators.
HARMLESS = {"re.compile", "self.rng.spawn"}


def faults(text: str) -> list[str]:
    """Everything in a module that could run data."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found += [node.module] if (node.module or "").partition(".")[0] in MODULES else []
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.rpartition(".")[2] in CALLS and name not in HARMLESS:
                found.append(name)
            if name.rpartition(".")[2] == "load" and name.partition(".")[0] in ("np", "numpy", "jnp"):
                said = {word.arg: ast.unparse(word.value) for word in node.keywords}
                if said.get("allow_pickle") != "False":  # said aloud, so that nobody has to know the default
                    found.append(name)
            if name.rpartition(".")[2] == "import_module" and not _own(node.args[0]):
                found.append(name)
    return found


def _own(argument: ast.expr) -> bool:
    text = ast.unparse(argument)
    # `homes` are the package's own; `module` is named by the caller on the command line, never by a file; `library` is
    # one of two names (core/optional.py).
    if any(f"'{name}" in text for name in ("wayveil.", "pyogrio", "IPython.")):
        return True
    return text in ("_HOMES[name]", "homes[name]", "module", "library")


def test_no_module_executes_data():
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    assert len(texts) > 100
    assert {name: faults(text) for name, text in texts.items() if faults(text)} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from pickle import loads", "def f():\n    import yaml.loader", "eval(x)", "exec(x)",
        "np.load(f)", "np.load(f, allow_pickle=True)", "os.system(x)", "importlib.import_module(x)", "__import__(x)",
        "pandas.read_pickle(x)", "builtins.compile(x, '', 'exec')",
    ],
)  # fmt: skip
def test_the_check_detects_a_violation(text):
    assert faults(text)
