"""Hooks of the documentation site: pages that are generated, and links that leave the site.

The command-line reference and the list of the Python API come from the program itself, SECURITY.md and CHANGELOG.md
from the repository's root. None of them is stored in docs/.
"""

import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FROM_ROOT = {"SECURITY.md": "explanation/security.md", "CHANGELOG.md": "reference/changes.md"}
"""Files of the repository's root that are pages of the site."""
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    pages = {"reference/command-line.md": command_line(), "reference/python.md": python_api()}
    for name, page in FROM_ROOT.items():
        pages[page] = relinked((ROOT / name).read_text(encoding="utf-8"), "", page, config["repo_url"])
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links that leave docs/ to a generated page or to the repository."""
    uri = page.file.src_uri
    if uri in FROM_ROOT.values():
        return markdown
    return relinked(markdown, posixpath.dirname(f"docs/{uri}"), uri, config["repo_url"])


def relinked(text: str, folder: str, page: str, repository: str) -> str:
    """The text of a page with links that work on the site.

    Parameters
    ----------
    folder
        Folder of the source file, from the repository's root.
    page
        Address of the page on the site, as a source path below docs/.
    """

    def target(match: re.Match[str]) -> str:
        before, path, anchor, after = match[1], match[2], match[3] or "", match[4]
        if "://" in path:
            return match[0]
        file = posixpath.normpath(posixpath.join(folder, path))
        inside = FROM_ROOT.get(file) or (file.removeprefix("docs/") if file.startswith("docs/") else None)
        if inside is None:
            kind = "tree" if (ROOT / file).is_dir() else "blob"
            return f"{before}{repository}/{kind}/main/{file}{anchor}{after}"
        return before + posixpath.relpath(inside, posixpath.dirname(page)) + anchor + after

    return _LINK.sub(target, text)


def command_line() -> str:
    """The command-line reference: every command with its help text, arguments, options and example."""
    from typer.main import get_command

    from wayveil.cli.main import app

    lines = ["# Command line", "", "This page is generated from the program, like `wayveil COMMAND --help`.", ""]
    _describe(get_command(app), "wayveil", 1, lines)
    return "\n".join(lines)


def _describe(command: Any, name: str, level: int, lines: list[str]) -> None:
    if level > 1:
        lines += [f"{'#' * level} {name}", ""]
    lines += [inspect.cleandoc(command.help or ""), ""]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    if level > 1 and not getattr(command, "commands", None):
        usage = [_shown(each) if each.required else f"[{_shown(each)}]" for each in arguments]
        lines += ["```sh", " ".join([name, *usage, "[OPTIONS]"]), "```", ""]
    rows = [(f"`{_shown(each)}`", each) for each in arguments]
    rows += [(", ".join(f"`{flag}`" for flag in (*each.opts, *each.secondary_opts)), each) for each in options]
    if rows:
        lines += ["| argument or option | meaning |", "|---|---|"]
        lines += [f"| {label} | {_meaning(each)} |" for label, each in rows]
        lines += [""]
    if command.epilog:
        lines += ["Example:", "", "```sh", command.epilog.removeprefix("Example: "), "```", ""]
    for word, part in getattr(command, "commands", {}).items():
        if not part.hidden:
            _describe(part, f"{name} {word}", level + 1, lines)


def _shown(parameter: Any) -> str:
    return (parameter.metavar or parameter.name).strip("{}").upper()


def _meaning(parameter: Any) -> str:
    text = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
    default = parameter.default
    if parameter.required:
        return f"{text} **Required.**"
    if default is None or default is False or default == () or callable(default):
        return text
    return f"{text} Default: `{default}`."


def python_api() -> str:
    """The public names of the package, each documented from its docstring: functions, classes, modules."""
    import wayveil

    def order(name: str) -> tuple[int, str]:
        thing = getattr(wayveil, name)
        return 0 if inspect.isfunction(thing) else 1 if inspect.isclass(thing) else 2, name

    first = "Everything here is imported from `wayveil`, for example `from wayveil import measure`."
    lines = ["# Python API", "", first, ""]
    for name in sorted(wayveil.__all__, key=order):
        thing = getattr(wayveil, name)
        if inspect.ismodule(thing):
            lines += [f"::: {thing.__name__}", "    options:"]
            lines += [f'      heading: "wayveil.{name}"', "      show_submodules: false", ""]
        elif inspect.isclass(thing) or inspect.isfunction(thing):
            lines += [f"::: {thing.__module__}.{thing.__qualname__}", "    options:"]
            lines += [f'      heading: "wayveil.{name}"', ""]
    return "\n".join(lines)
