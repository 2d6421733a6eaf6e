"""Size of the import graph of a source tree: modules, cycles, imports inside functions, modules per package.

usage: import_graph.py [src/wayveil]

Imports for type checkers alone do not count. A cycle is a strongly connected component of more than one module.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx

PACKAGE = "wayveil"


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else f"src/{PACKAGE}")
    modules = {name_of(path, root): path for path in sorted(root.rglob("*.py"))}
    top, whole = networkx.DiGraph(), networkx.DiGraph()
    inside = 0
    for name, path in modules.items():
        for targets, in_function in imports(ast.parse(path.read_text(encoding="utf-8")), modules):
            inside += in_function
            edges = [(name, target) for target in targets if target != name]
            whole.add_edges_from(edges)
            top.add_edges_from([] if in_function else edges)
    packages = Counter(".".join(name.split(".")[1:2]) for name in modules if name.count(".") >= 2)
    print(f"modules {len(modules)}, imports inside functions {inside}")
    print(f"cycles {cycles(top)}, with imports inside functions {cycles(whole)}")
    print(", ".join(f"{package} {count}" for package, count in packages.most_common()))


def name_of(path: Path, root: Path) -> str:
    """wayveil.core.grid for src/wayveil/core/grid.py."""
    return ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")


def imports(tree: ast.AST, modules: dict[str, Path], in_function: bool = False) -> Iterator[tuple[list[str], bool]]:
    """The modules that each import statement names, and whether it stands inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names if alias.name in modules]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [name if name in modules else node.module for name in names]
        else:
            yield from imports(node, modules, in_function or isinstance(node, ast.FunctionDef | ast.Lambda))
            continue
        if found:
            yield found, in_function


def cycles(graph: networkx.DiGraph) -> int:
    return sum(len(part) > 1 for part in networkx.strongly_connected_components(graph))


if __name__ == "__main__":
    main()
