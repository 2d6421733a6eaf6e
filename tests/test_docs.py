"""The pages are true: examples run, links resolve, options exist, and texts stay within their limits."""

import ast
import importlib.util
import json
import math
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CHANGELOG.md", "examples/README.md")),
    *sorted((ROOT / "research").glob("*.md")),
    *DOCS,
]
HOW_TO = sorted((ROOT / "docs" / "how-to").glob("*.md"))
RUN = ["README.md", "docs/index.md", "docs/tutorial.md", *(f"docs/how-to/{page.name}" for page in HOW_TO)]
GENERATED = ("reference/command-line.md", "reference/python.md", "reference/changes.md", "explanation/security.md")
"""Pages that docs/site_hooks.py adds to the site; they are not stored."""
MOST_WORDS = {"README.md": 1_200, "docs/explanation/method.md": 3_500, "docs/explanation/model-card.md": 1_000}
MOST_WORDS_OF_DOCS = 22_500
MOST_LINES_OF_CHANGELOG = 20
SLOW = ("demo", "bench", "paper")


def blocks(page: Path, language: str) -> list[str]:
    """Fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)


def table_commands() -> list[str]:
    """The examples of the README's table of commands."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `[a-z]+`.*\| `(wayveil [^`]+)` \|$", text, re.M)


@pytest.fixture(scope="module")
def town(tmp_path_factory) -> Path:
    """The files that the pages speak of, from a small invented city."""
    from wayveil.io.files import read, write
    from wayveil.io.roads import write_roads
    from wayveil.simulate import rules_text, scope_toml, simulate_city, simulate_trajectories

    folder = tmp_path_factory.mktemp("town")
    city = simulate_city(size_km=(3, 3))
    write(simulate_trajectories(city, n=300), folder / "rides.csv")
    assert len(read(folder / "rides.csv")) == 300
    write_roads(city.roadmap, folder / "roads.parquet")
    (folder / "rules.geojson").write_text(rules_text(city), encoding="utf-8")
    (folder / "my-city.toml").write_text(scope_toml(city), encoding="utf-8")
    return folder


@pytest.fixture
def here(town, tmp_path, monkeypatch, quick_synthesis) -> Path:
    """A fresh copy of those files, as the working folder; the ledger is empty."""
    folder = tmp_path / "work"
    shutil.copytree(town, folder)
    monkeypatch.chdir(folder)
    return folder


def run(line: str, monkeypatch, capsys) -> int:
    """One command line in this process; its exit code."""
    from wayveil.cli.main import main

    monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
    with pytest.raises(SystemExit) as stop:
        main()
    monkeypatch.chdir(os.getcwd())
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return int(stop.value.code or 0)


@pytest.mark.parametrize("page", [page for page in RUN if blocks(ROOT / page, "python")])
def test_python_blocks_run(page, here, monkeypatch, tmp_path):
    names: dict[str, object] = {}
    for number, block in enumerate(blocks(ROOT / page, "python")):
        exec(compile(block, f"{page}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", [page for page in RUN if blocks(ROOT / page, "console")])
def test_console_blocks_run(page, here, monkeypatch, capsys):
    lines = [line for block in blocks(ROOT / page, "console") for line in block.splitlines()]
    assert lines and all(line.startswith("$ wayveil ") for line in lines)
    if not any("wayveil measure" in line for line in lines):  # a page about what comes after it
        assert run("wayveil measure rides.csv --dataset rides --scope my-city.toml --epsilon 1 --unit trajectory "
                   "-o rides.release.json", monkeypatch, capsys) == 0  # fmt: skip
    if any("wayveil simulate" in line for line in lines):  # a page that makes its own data, where there is none
        for file in here.iterdir():
            file.unlink()
    for line in lines:
        expected = re.search(r"# exit (\d)$", line)
        code = run(line.removeprefix("$ "), monkeypatch, capsys)
        assert code == (int(expected[1]) if expected else 0), line


def test_the_table_of_commands_runs(here, monkeypatch, capsys):
    for line in table_commands():
        if line.split()[1] not in SLOW:
            assert run(line, monkeypatch, capsys) == 0, line


def test_the_table_names_every_command():
    from wayveil.cli.main import COMMANDS

    assert sorted({line.split()[1] for line in table_commands()}) == sorted(COMMANDS)


def command(words: list[str]):
    """The click command that words lead to, and the words that are left for it."""
    import typer

    from wayveil.cli.main import app

    found = typer.main.get_command(app)
    while words and hasattr(found, "commands") and words[0] in found.commands:
        found, words = found.commands[words[0]], words[1:]
    return found, words


@pytest.mark.parametrize("line", [line for line in table_commands() if line.split()[1] in SLOW])
def test_slow_commands_at_least_parse(line, here):
    found, words = command(shlex.split(line)[1:])
    found.make_context(found.name, list(words))


def test_every_option_that_a_page_names_exists():
    import typer

    from wayveil.cli.main import app

    def options(group) -> set[str]:
        own = {name for parameter in group.params for name in parameter.opts}
        return own.union(*map(options, getattr(group, "commands", {}).values()))

    known = options(typer.main.get_command(app)) | {"--help"}
    for page in PAGES:
        commands = re.findall(r"wayveil [^`\n]*", page.read_text(encoding="utf-8"))
        named = {option for line in commands for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)}
        assert not named - known, (page.name, named - known)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / unquote(path)) if path else page
        if page in DOCS and file.resolve().relative_to(ROOT).as_posix().removeprefix("docs/") in GENERATED:
            continue
        assert file.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in slugs, target


def test_json_blocks_are_json():
    found = [block for page in PAGES for block in blocks(page, "json")]
    assert found
    for block in found:
        json.loads(block)


def test_the_table_of_epsilons():
    text = (ROOT / "docs" / "explanation" / "which-epsilon.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.,]+) \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|$", text, re.M)
    assert len(rows) == 7
    for row in rows:
        epsilon, factor, *shares = (float(cell.replace(",", "")) for cell in row)
        assert factor == pytest.approx(math.exp(epsilon), rel=0.005)
        for prior, share in zip((0.01, 0.1, 0.5), shares):
            sure = 100 * prior * math.exp(epsilon) / (1 - prior + prior * math.exp(epsilon))
            assert share == pytest.approx(sure, abs=0.06)


def test_the_picture_is_small():
    assert 10_000 < (ROOT / "docs" / "img" / "city.png").stat().st_size < 300_000


@pytest.mark.parametrize("page", MOST_WORDS)
def test_pages_stay_within_their_limits(page):
    assert len((ROOT / page).read_text(encoding="utf-8").split()) <= MOST_WORDS[page]


def test_the_documentation_as_a_whole_stays_short():
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in DOCS) <= MOST_WORDS_OF_DOCS
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_CHANGELOG


def test_scripts_and_stored_results_that_pages_name_exist():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"(?<![\w/.])((?:research|docs|tests)/[\w./-]+\.\w+)", text):
            assert (ROOT / path).exists(), (page.name, path)


def test_every_stored_result_is_cited():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    stored = [file for file in (ROOT / "research").glob("*/results/**/*") if file.is_file()]
    assert stored
    for file in stored:
        assert file.name in text, file


def test_messages_name_pages_that_exist():
    """Docstrings are left out: what matters is what users are told to read."""
    named = set()
    for module in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                named |= set(re.findall(r"docs/[\w/-]+\.md", node.value))
    assert named
    for path in named:
        assert (ROOT / path).exists(), path


@pytest.fixture(scope="module")
def hooks():
    """The hooks of the documentation site, which `make docs` uses."""
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_line_reference_has_every_command_and_option(hooks):
    import typer

    from wayveil.cli.main import app

    text = hooks.command_line()

    def look(found, name: str) -> None:
        for word, part in getattr(found, "commands", {}).items():
            assert re.search(rf"^#+ {name} {word}$", text, re.M), word
            look(part, f"{name} {word}")
        for parameter in found.params:
            if parameter.param_type_name == "option":
                assert all(f"`{option}`" in text for option in parameter.opts), parameter.opts

    look(typer.main.get_command(app), "wayveil")


def test_the_python_reference_has_every_public_name(hooks):
    import wayveil

    text = hooks.python_api()
    for name in set(wayveil.__all__) - {"__version__"}:
        assert f'heading: "wayveil.{name}"' in text, name


@pytest.mark.parametrize(
    ("text", "folder", "page", "expected"),
    [
        ("[a](docs/explanation/method.md#noise)", "", "explanation/security.md", "[a](method.md#noise)"),
        ("[a](../how-to/maps.md)", "docs/reference", "reference/formats.md", "[a](../how-to/maps.md)"),
        ("[a](../../SECURITY.md)", "docs/how-to", "how-to/rules.md", "[a](../explanation/security.md)"),
        ("[a](../../examples/x.py)", "docs/how-to", "how-to/maps.md", "[a](https://host/blob/main/examples/x.py)"),
        ("[a](../../examples)", "docs/how-to", "how-to/maps.md", "[a](https://host/tree/main/examples)"),
        ("[a](https://geojson.io)", "docs", "tutorial.md", "[a](https://geojson.io)"),
    ],
)
def test_links_that_leave_the_site_lead_to_the_repository(hooks, text, folder, page, expected):
    assert hooks.relinked(text, folder, page, "https://host") == expected


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert listed == {page.relative_to(ROOT / "docs").as_posix() for page in DOCS} | set(GENERATED)
