"""Templates with comments: files to fill in."""

from typing import Literal

from wayveil.errors import InputError
from wayveil.io.scope_files import TEMPLATE as SCOPE_TEMPLATE
from wayveil.workflow.run_file import TEMPLATE as RUN_TEMPLATE


def template(kind: Literal["scope", "run"]) -> str:
    """The text of a commented file to fill in: a scope, or a run.

    Parameters
    ----------
    kind
        "scope" for the public limits of a dataset (`wayveil.read_scope`), "run" for a run file (`wayveil.run`).

    Examples
    --------
    >>> import wayveil
    >>> from pathlib import Path
    >>> print(wayveil.template("scope").splitlines()[3])
    name = "?"  # such as "Paris"
    >>> Path("my-city.toml").write_text(wayveil.template("scope"))  # doctest: +SKIP

    Privacy
    -------
    Free (nothing is read); a scope is filled in from public knowledge, never from the data.
    """
    if kind == "scope":
        return SCOPE_TEMPLATE
    if kind == "run":
        return RUN_TEMPLATE
    raise InputError("kind must be 'scope' or 'run'.")
