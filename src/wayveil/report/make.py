"""From files to a page on disk."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wayveil.atomic import write_text
from wayveil.errors import InputError
from wayveil.inputs import TooLargeError, open_regular, read_text
from wayveil.outputs import check_output, check_outputs
from wayveil.progress import Progress, quiet
from wayveil.release import read_release
from wayveil.report.page import internal_report, public_sheet

_MOST_JSON_BYTES = 100 << 20


def make_page(
    release: Path,
    synthetic: Path,
    output: Path,
    *,
    roads: Path | None = None,
    rules: Path | None = None,
    internal: bool = False,
    real: Path | None = None,
    audit: Path | None = None,
    evaluation: Path | None = None,
    real_options: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
) -> None:
    """Write the public data sheet, or the internal report, which only its owner may read.

    A public sheet is made only of a file that says it is synthetic and from this release.

    `real_options` are keyword arguments of `wayveil.formats.read` for the private file.

    Privacy: free (post-processing); with `internal`, not private (trusted side only).
    """
    from wayveil.formats import read, read_metadata
    from wayveil.formats.roads import read_roads
    from wayveil.roads import check_inside
    from wayveil.rules import read_rules
    from wayveil.steps import check_origin

    if not internal and (real is not None or audit is not None or evaluation is not None):
        raise InputError("--real, --audit and --evaluation belong to the internal report; add --internal.")
    if internal and real is None:
        raise InputError("The internal report compares with the private data; give it with --real.")
    check_page(output, (release, synthetic, roads, rules, real, audit, evaluation))
    progress("read", 0.0)
    released = read_release(release)
    if not internal:
        check_origin(synthetic, released)
    made = read(synthetic)
    notes = {} if synthetic.is_dir() else read_metadata(synthetic)
    roadmap = None if roads is None else read_roads(roads)
    if roadmap is not None:
        check_inside(roadmap, released.scope)
    laws = None if rules is None else read_rules(rules, released.scope, roadmap)
    if not internal:
        progress("page", 0.5)
        sheet = public_sheet(released, made, roads=roadmap, rules=laws, notes=notes)
        write_text(output, sheet, private=False)
        return
    true = read(real, **(real_options or {}))
    verdict = None if audit is None else _read_json(audit)
    if evaluation is None:
        from wayveil.evaluation import evaluate

        scores: Any = evaluate(true, made, released.scope, progress=progress)
    else:
        scores = _read_json(evaluation)
    progress("page", 0.5)
    page = internal_report(
        released, made, true, roads=roadmap, rules=laws, evaluation=scores, audit=verdict, notes=notes
    )
    write_text(output, page, private=True)


def check_page(output: Path, inputs: Iterable[str | Path | None] = ()) -> None:
    """InputError unless the page can be written and overwrites nothing but an earlier page."""
    check_outputs([output], inputs=inputs)
    check_output(output, force=True)
    if output.exists():
        with open_regular(output) as there:
            start = there.read(64).strip().lower()
        if start and not start.startswith(b"<!doctype html"):
            raise InputError(f"'{output.name}' is there and is not a page; choose another -o.")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path, _MOST_JSON_BYTES))
    except TooLargeError:
        raise InputError(f"'{path.name}' is too large to be a result of wayveil.") from None
    except (OSError, ValueError, RecursionError):
        raise InputError(f"'{path.name}' is not readable JSON.") from None
