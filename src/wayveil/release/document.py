"""The JSON file of a release.

It contains noisy integers, their scales and what each cost. It contains no seed, no digest of the data and no exact
count.
"""

import hashlib
import json
import math
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from wayveil.core.grid import base_grid
from wayveil.core.scope import Scope
from wayveil.errors import InputError, ReleaseError
from wayveil.io.atomic import write_text
from wayveil.io.inputs import TooLargeError, holds_only_words, open_regular, read_text
from wayveil.io.options import SYNTHETIC
from wayveil.io.outputs import check_output
from wayveil.privacy.budget import decimal_text
from wayveil.questions.answer import Answer, Centred, Clipping
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.norms import LARGEST_WEIGHT, Centre, clipped_resolution
from wayveil.questions.question import Frame, Question, size_of
from wayveil.release.check import check_release
from wayveil.release.release import Release

FORMAT = "wayveil-release"
VERSION = 1
"""The version of the file format."""
_MOST_BYTES = 1 << 30
"""Maximum size of a release file."""
_MOST_VALUES = 1 << 24
"""Maximum number of noisy values of one answer."""
_MOST_ANSWERS = 1000
"""Maximum number of answers of a release. These limits bound memory for hostile files."""
_START_BYTES = 1000
"""Bytes that are read to recognise a release: its format is the first entry of the file."""


def release_to_json(release: Release) -> str:
    """The release as JSON text; numbers that must be exact are also given as decimal strings."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "software": release.software,
        "private": release.private,
        "epsilon": float(release.epsilon),
        "epsilon_exact": decimal_text(release.epsilon),
        "delta": release.delta,
        "unit": release.unit,
        "max_per_user": release.max_per_user,
        "neighbours": release.neighbours,
        "scope": release.scope.model_dump(mode="json"),
        "ledger": [
            {"name": name, "epsilon": float(epsilon), "epsilon_exact": decimal_text(epsilon)}
            for name, epsilon in release.ledger
        ],
        "answers": [
            {
                "name": answer.name,
                "parameters": answer.question.to_json(),
                "shape": list(answer.shape),
                "resolution": answer.question.resolution,
                "mechanism": answer.mechanism,
                "scale": answer.scale,
                "noisy": answer.noisy.tolist(),
                **({} if answer.clipping is None else {"clipping": _clipping_to_json(answer.clipping)}),
                **({} if answer.centred is None else {"centred": _centred_to_json(answer.centred)}),
            }
            for answer in release.answers
        ],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _centred_to_json(centred: Centred) -> dict[str, Any]:
    return {
        "centre": centred.centre.values.tolist(),
        **({} if centred.centre.weights is None else {"weights": centred.centre.weights.tolist()}),
        "count": centred.count,
        "scale": centred.scale,
        "noisy": centred.noisy.tolist(),
        "clipping": _clipping_to_json(centred.clipping),
    }


def _clipping_to_json(clipping: Clipping) -> dict[str, Any]:
    return {
        "resolution": clipping.resolution,
        "bound": clipping.bound,
        "kept": clipping.kept,
        "norms": None if clipping.norms is None else clipping.norms.tolist(),
        "norms_scale": clipping.norms_scale,
    }


def origin_notes(release: Release) -> dict[str, str]:
    """The notes of a synthetic file about its origin, including its release.

    Privacy: free (post-processing).
    """
    return {
        "origin": f"{SYNTHETIC}, made by {release.software} from noisy counts; these are not real trips",
        "differentially_private": "true" if release.private else "false",
        "epsilon": decimal_text(release.epsilon),
        "delta": f"{release.delta:g}",
        "unit": release.unit,
        "neighbours": release.neighbours,
        "scope": release.scope.name,
        "timezone": release.scope.timezone,
        "release": hashlib.sha256(release_to_json(release).encode()).hexdigest(),
    }


def synthesis_notes(release: Release, *, rules: int, roads: bool) -> dict[str, str]:
    """`origin_notes`, the number of rules that a synthetic file was made with, and whether it was made with a road map.

    Privacy: free (post-processing).
    """
    return {**origin_notes(release), "rules": str(rules), "roads": "true" if roads else "false"}


def write_release(release: Release, path: str | Path, *, force: bool = False) -> None:
    """Write a release to a JSON file, complete or not at all, with the usual permissions of new files.

    Parameters
    ----------
    release
        The result of `wayveil.measure`.
    path
        The file, by convention X.release.json.
    force
        Whether an earlier release, for which budget may have been spent, is overwritten.

    Examples
    --------
    >>> import wayveil
    >>> wayveil.write_release(release, "rides.release.json")  # doctest: +SKIP

    Privacy
    -------
    Free (its cost was charged when it was measured).
    """
    check_release_output(Path(path), force=force)
    write_text(path, release_to_json(release), private=False)


def check_release_output(output: Path, *, force: bool = False, room_bytes: int = 0) -> None:
    """InputError unless a release can be written to `output`; with `force` it may replace another release."""
    check_output(output, force=force, room_bytes=room_bytes)
    if output.exists() and not (_is_release(output) or holds_only_words(output)):
        raise InputError(
            f"'{output.name}' is not a release, so it is not overwritten; choose another name, or delete the file "
            "first."
        )


def _is_release(path: Path) -> bool:
    try:
        with open_regular(path) as stream:
            return f'"{FORMAT}"'.encode() in stream.read(_START_BYTES)
    except OSError:
        return False


def read_release(path: str | Path) -> Release:
    """Read and check a release; a file that was altered and is no longer consistent is refused.

    Parameters
    ----------
    path
        A file that `wayveil.write_release` or `wayveil measure` wrote.

    Raises
    ------
    ReleaseError
        If the file is not a release, has another version, or was altered.

    Examples
    --------
    >>> import wayveil
    >>> release = wayveil.read_release("rides.release.json")  # doctest: +SKIP

    Privacy
    -------
    Free (post-processing).
    """
    path = Path(path)
    if not os.path.exists(path):
        raise ReleaseError(f"There is no file '{path.name}'; `wayveil measure` writes a release.")
    try:
        text = read_text(path, _MOST_BYTES)
    except TooLargeError:
        raise ReleaseError(f"'{path.name}' is larger than 1 GB; that is not a release.") from None
    except (OSError, UnicodeDecodeError):
        raise ReleaseError(f"'{path.name}' cannot be read; give a file written by `wayveil measure`.") from None
    return release_from_json(text, path.name)


def release_from_json(text: str, origin: str = "release") -> Release:
    """Parse and check the JSON text of a release; `origin` names it in messages."""
    not_a_release = f"'{origin}' is not a wayveil release; give a file written by `wayveil measure`."
    if not text.lstrip().startswith("{"):
        raise ReleaseError(not_a_release)
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
        if document.get("format") != FORMAT:
            raise ReleaseError(not_a_release)
        if document.get("version") != VERSION:
            raise ReleaseError(
                f"'{origin}' has another format version; measure again, or use the matching version of wayveil."
            )
        release = _from_document(document, origin)
        check_release(release)
        return release
    except ReleaseError:
        raise
    except InputError:
        raise ReleaseError(f"'{origin}' states an impossible guarantee; it was altered.") from None
    except ValidationError:
        raise ReleaseError(f"The scope of '{origin}' is damaged.") from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, ZeroDivisionError):
        raise ReleaseError(f"'{origin}' is damaged; measure again, or ask its publisher for the original.") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _from_document(document: dict[str, Any], origin: str) -> Release:
    epsilon = _exact(document["epsilon_exact"], document["epsilon"])
    costs = {line["name"]: _exact(line["epsilon_exact"], line["epsilon"]) for line in document["ledger"]}
    if not 1 <= len(document["answers"]) <= _MOST_ANSWERS:
        raise ValueError("answers")
    scope = Scope.model_validate(document["scope"])
    answers: dict[str, Answer] = {}
    for entry in document["answers"]:
        earlier = {name: answer.question for name, answer in answers.items()}
        answer = _answer(entry, costs[entry["name"]], Frame(scope, base_grid(scope), earlier))
        if answer.name in answers:
            raise ReleaseError("Two answers of the release have the same name.")
        answers[answer.name] = answer
    delta = float(document["delta"])
    if len(costs) != len(answers) or len(document["ledger"]) != len(costs) or sum(costs.values()) != epsilon:
        raise ReleaseError(f"The costs in '{origin}' do not add up to its epsilon; it was altered.")
    if not 0 < epsilon <= 1000 or not 0 <= delta < 1 or document["unit"] not in ("trajectory", "user"):
        raise ReleaseError(f"The epsilon, delta or unit of '{origin}' is impossible; it was altered.")
    return Release(
        scope=scope,
        answers=tuple(answers.values()),
        epsilon=epsilon,
        delta=delta,
        unit=document["unit"],
        max_per_user=document["max_per_user"],
        neighbours=_text(document["neighbours"]),
        private=bool(document["private"] is True),
        software=_text(document["software"]),
    )


def _exact(text: Any, plain: Any) -> Fraction:
    # Checked before it is parsed: '1e999999999' is a short text and a very long number.
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,60}([./][0-9]{1,60})?", text):
        raise ValueError("epsilon")
    value = Fraction(text)
    if float(value) != plain:
        raise ValueError("epsilon")
    return value


def _answer(entry: dict[str, Any], epsilon: Fraction, frame: Frame) -> Answer:
    name = _text(entry["name"])
    if name not in QUESTIONS:
        raise ReleaseError(f"The release answers a question '{name}' that this version of wayveil does not know.")
    if any(type(side) is not int for side in entry["shape"]) or type(entry["resolution"]) is not int:
        raise ValueError("shape")
    size = math.prod(entry["shape"])
    if min(entry["shape"]) < 1 or size > _MOST_VALUES or len(entry["noisy"]) != size:
        raise ValueError("shape")
    scale = float(entry["scale"])
    if not (math.isfinite(scale) and scale > 0) or entry["mechanism"] not in ("laplace", "gaussian"):
        raise ValueError("scale")
    if set(map(type, entry["noisy"])) != {int}:
        raise ValueError("noisy")
    noisy = np.array(entry["noisy"], dtype=np.int64)
    question = _question(name, entry, frame)
    if entry["mechanism"] == "laplace":
        return Answer(question, entry["mechanism"], scale, epsilon, noisy)
    clipping, centred = _clipping(entry["clipping"], question), entry.get("centred")
    second = None if centred is None else _centred(centred, question)
    return Answer(question, entry["mechanism"], scale, epsilon, noisy, clipping, second)


def _centred(found: dict[str, Any], question: Question) -> Centred:
    size, limit = size_of(question), clipped_resolution(question)
    for name in ("centre", "noisy", *(("weights",) if "weights" in found else ())):
        if not (isinstance(found[name], list) and len(found[name]) == size and set(map(type, found[name])) == {int}):
            raise ValueError(name)
    if not all(0 <= value <= limit for value in found["centre"]):
        raise ValueError("centre")
    if not all(1 <= value <= LARGEST_WEIGHT for value in found.get("weights", ())):
        raise ValueError("weights")
    for name in ("count", "scale"):
        if not (isinstance(found[name], float) and math.isfinite(found[name]) and found[name] > 0):
            raise ValueError(name)
    values, noisy = (np.array(found[name], np.int64) for name in ("centre", "noisy"))
    weights = np.array(found["weights"], np.int64) if "weights" in found else None
    centre = Centre(values, weights)
    clipping = _clipping(found["clipping"], question, centre)
    return Centred(centre, found["count"], found["scale"], noisy, clipping)


def _clipping(found: dict[str, Any], question: Question, centre: Centre | None = None) -> Clipping:
    resolution = clipped_resolution(question) if centre is None else centre.resolution(question)
    bound, kept, norms, scale = found["bound"], found["kept"], found["norms"], found["norms_scale"]
    if found["resolution"] != resolution or type(bound) is not int or bound < 1:
        raise ValueError("bound")
    if not (isinstance(kept, float) and 0 < kept <= 1) or (norms is None) != (scale is None):
        raise ValueError("clipping")
    if norms is None:
        return Clipping(found["resolution"], bound, kept)
    if not (isinstance(norms, list) and set(map(type, norms)) == {int} and math.isfinite(scale) and scale > 0):
        raise ValueError("norms")
    return Clipping(found["resolution"], bound, kept, np.array(norms, np.int64), float(scale))


def _question(name: str, entry: dict[str, Any], frame: Frame) -> Question:
    """The question of an answer; refused unless it matches the answer's own description."""
    try:
        question = QUESTIONS[name].from_json(entry["parameters"], frame)
        described = entry["parameters"], tuple(entry["shape"]), entry["resolution"]
        if (question.to_json(), question.shape, question.resolution) == described:
            return question
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError, OverflowError):
        pass
    raise ReleaseError(f"The answer '{name}' does not match its own description; the release was altered.")


def _text(value: object) -> str:
    # Printable only: control characters would act on a terminal, and lone surrogates cannot be written.
    if not isinstance(value, str) or len(value) > 10_000 or not value.isprintable():
        raise ValueError("text")
    return value
