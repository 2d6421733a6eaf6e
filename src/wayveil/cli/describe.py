"""`wayveil describe`: the privacy guarantee of a release in plain language."""

import typer

from wayveil.cli import options as opt
from wayveil.cli.console import print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: wayveil describe rides.release.json")(describe)


def describe(
    file: opt.ReleaseFile,
    as_json: opt.Json = False,
) -> None:
    """Explain what a release promises, to whom, what it does not promise, and what it cost."""
    from wayveil.release import read_release
    from wayveil.release.describe import describe as words
    from wayveil.release.describe import description

    release = read_release(file)
    if as_json:
        print_json(description(release))
    else:
        print(words(release), end="")
