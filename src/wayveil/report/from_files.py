"""Make a page from files or from results."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wayveil.core.roads import check_inside
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.evaluation import evaluate
from wayveil.io.atomic import write_text
from wayveil.io.files import read, read_metadata
from wayveil.io.inputs import TooLargeError, read_text
from wayveil.io.outputs import check_page
from wayveil.io.roads import Roads, roads_of
from wayveil.progress import Progress, quiet
from wayveil.release import Release, read_release
from wayveil.release.origin import check_notes, check_origin
from wayveil.report.page import internal_report, public_sheet
from wayveil.rules.user_input import Rules, as_rules

_MOST_JSON_BYTES = 100 << 20
"""Maximum size of an evaluation or audit file."""


def write_report(
    release: Release | Path | str,
    synthetic: Any,
    path: Path | str,
    *,
    roads: Roads = None,
    rules: Rules = None,
    internal: bool = False,
    real: Any | None = None,
    audit: Any | None = None,
    evaluation: Any | None = None,
    real_options: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
) -> None:
    """Write one offline HTML page: the public data sheet, or the internal report for the data's owner alone.

    A public data sheet is made only from data that is marked as synthetic and made from this release: the file that
    `wayveil.write` or `wayveil synthesize` wrote, or the result of `wayveil.synthesize`. An earlier page at `path` is
    replaced; any other file is not.

    Parameters
    ----------
    release
        The result of `wayveil.measure`, or its file.
    synthetic
        The result of `wayveil.synthesize`, or the synthetic file.
    path
        The HTML file to write.
    roads, rules
        A public road map and traffic rules, or their files; both are drawn, and violations are counted.
    internal
        True for the report that compares with the private data; its file is readable by its owner alone.
    real
        The private data (with `internal`): trajectories, a frame or a file.
    audit, evaluation
        The results of `wayveil.audit_synthetic` and `wayveil.evaluate`, or the JSON files of the command line (with
        `internal`). The evaluation is computed if it is not given.
    real_options
        Options of `wayveil.read` for the private data.

    Examples
    --------
    >>> import wayveil
    >>> made = wayveil.synthesize("rides.release.json")  # doctest: +SKIP
    >>> wayveil.write_report("rides.release.json", made, "data-sheet.html")  # doctest: +SKIP

    Privacy
    -------
    Free (post-processing); with `internal`, not private (trusted side only).
    """
    if not internal and (real is not None or audit is not None or evaluation is not None):
        raise InputError("real=, audit= and evaluation= belong to the internal report; add internal=True.")
    if internal and real is None:
        raise InputError("The internal report needs the private data; give it with real=.")
    output = Path(path)
    given: tuple[Any, ...] = (release, synthetic, roads, rules, real, audit, evaluation)
    check_page(output, [Path(file) for file in given if _is_path(file)], private=internal)
    progress("read", 0.0)
    released = release if isinstance(release, Release) else read_release(release)
    if not internal and _is_path(synthetic):
        check_origin(Path(synthetic), released)
    trajectories, notes = _synthetic(synthetic)
    if not internal and not _is_path(synthetic):
        check_notes(notes, "The synthetic data", released)
    roadmap = roads_of(roads)
    if roadmap is not None:
        check_inside(roadmap, released.scope)
    rule_list = None if rules is None else as_rules(rules, released.scope, roadmap)
    if not internal:
        progress("page", 0.5)
        sheet = public_sheet(released, trajectories, roads=roadmap, rules=rule_list, notes=notes)
        write_text(output, sheet, private=False)
        return
    true = _read(real, **(real_options or {}))
    verdict = _plain(audit)
    if evaluation is None:
        scores: Any = evaluate(true, trajectories, released.scope, progress=progress)
    else:
        scores = _plain(evaluation)
    progress("page", 0.5)
    page = internal_report(
        released, trajectories, true, roads=roadmap, rules=rule_list, evaluation=scores, audit=verdict, notes=notes
    )
    write_text(output, page, private=True)


def _is_path(given: Any) -> bool:
    return isinstance(given, str | os.PathLike)


def _synthetic(given: Any) -> tuple[Trajectories, dict[str, str]]:
    """Synthetic trajectories and their notes."""
    if _is_path(given):
        path = Path(given)
        return _read(path), {} if path.is_dir() else read_metadata(path)
    inside = getattr(given, "trajectories", None)
    if isinstance(inside, Trajectories):
        return inside, dict(given.notes)
    return _read(given), {}


def _read(data: Any, **options: Any) -> Trajectories:
    return data if isinstance(data, Trajectories) else read(data, **options)


def _plain(result: Any) -> Any:
    """A result as plain values, from its file, its object or a mapping."""
    if _is_path(result):
        return _read_json(Path(result))
    return result.to_dict() if hasattr(result, "to_dict") else result


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path, _MOST_JSON_BYTES))
    except TooLargeError:
        raise InputError(f"'{path.name}' is too large to be a result of wayveil.") from None
    except (OSError, ValueError, RecursionError):
        raise InputError(f"'{path.name}' is not readable JSON.") from None
