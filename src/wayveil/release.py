"""Release: everything that left the private side, in one JSON file that anybody may have.

It holds noisy integers, their scales and the receipt. It holds no seed, no digest of the data and no exact count.
"""

import hashlib
import json
import math
import os
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from wayveil.atomic import write_text
from wayveil.errors import InputError, ReleaseError
from wayveil.inputs import TooLargeError, read_text
from wayveil.privacy.budget import decimal_text
from wayveil.scope import Scope

FORMAT = "wayveil-release"
VERSION = 1
SYNTHETIC = "synthetic trajectories"
"""How the origin of every synthetic file begins."""
_MOST_BYTES = 1 << 30
_MOST_VALUES = 1 << 24
_MOST_ANSWERS = 1000


@dataclass(frozen=True, eq=False)
class Answer:
    """The noisy answer to one view: Σ φ(T) · resolution + integer noise of the given scale."""

    name: str
    parameters: dict[str, Any]
    """What a reader needs to know about the view: bin edges, the side of a cell, the regions."""
    shape: tuple[int, ...]
    resolution: int
    mechanism: str
    """'laplace' or 'gaussian'."""
    scale: float
    """Of the noise on `noisy`, in the same whole units: b of a Laplace, σ of a Gaussian."""
    epsilon: Fraction
    noisy: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.float64]:
        """Noisy answers in units of one trajectory, in the view's shape."""
        return (self.noisy / self.resolution).reshape(self.shape)

    @property
    def noise(self) -> float:
        """Scale of the noise in units of one trajectory; a Gaussian is given as the Laplace of equal variance."""
        return self.scale / self.resolution / (1.0 if self.mechanism == "laplace" else math.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy answers, what they cost, and the promise in words.

    Privacy: free (everything in it has been paid for).
    """

    scope: Scope
    answers: tuple[Answer, ...]
    epsilon: Fraction
    delta: float
    unit: Literal["trajectory", "user"]
    max_per_user: int
    neighbours: str
    """The neighbouring relation in plain words."""
    private: bool
    """False where the noise was injected by a test; nothing made from such a release may be published."""
    software: str

    def __post_init__(self) -> None:
        names = [answer.name for answer in self.answers]
        if len(set(names)) != len(names):
            raise ReleaseError("Two answers of the release have the same name.")

    @property
    def ledger(self) -> tuple[tuple[str, Fraction], ...]:
        """(name, ε) of each answer; they add up to `epsilon`."""
        return tuple((answer.name, answer.epsilon) for answer in self.answers)

    def __getitem__(self, name: str) -> Answer:
        for answer in self.answers:
            if answer.name == name:
                return answer
        raise ReleaseError(f"The release has no answer '{name}'; it was made for another version of wayveil.")

    def __contains__(self, name: str) -> bool:
        return any(answer.name == name for answer in self.answers)


def release_to_json(release: Release) -> str:
    """The release as JSON text; numbers that must be exact are decimal strings beside the plain ones."""
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
        "views": [
            {
                "name": answer.name,
                "parameters": answer.parameters,
                "shape": list(answer.shape),
                "resolution": answer.resolution,
                "mechanism": answer.mechanism,
                "scale": answer.scale,
                "noisy": answer.noisy.tolist(),
            }
            for answer in release.answers
        ],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def origin_notes(release: Release) -> dict[str, str]:
    """What a synthetic file says about itself, its very release included.

    Privacy: free (post-processing).
    """
    return {
        "origin": f"{SYNTHETIC}, made by {release.software} from noisy counts; nobody drove them",
        "private": "true" if release.private else "false",
        "epsilon": decimal_text(release.epsilon),
        "delta": f"{release.delta:g}",
        "unit": release.unit,
        "neighbours": release.neighbours,
        "scope": release.scope.name,
        "release": hashlib.sha256(release_to_json(release).encode()).hexdigest(),
    }


def made_notes(release: Release, *, rules: int, roads: bool) -> dict[str, str]:
    """`origin_notes`, and what else went into a synthetic file: how many rules (their names are nobody's), and a map.

    Privacy: free (post-processing).
    """
    return {**origin_notes(release), "rules": str(rules), "roads": "true" if roads else "false"}


def write_release(release: Release, path: str | Path) -> None:
    """Write the release, whole or not at all, with the mode that the umask gives."""
    write_text(path, release_to_json(release), private=False)


def read_release(path: str | Path) -> Release:
    """Read and check a release; a file that was altered so that it no longer fits together is refused.

    Privacy: free (post-processing).
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
    from wayveil.release_check import check_release

    another = f"'{origin}' is not a wayveil release; give a file written by `wayveil measure`."
    if not text.lstrip().startswith("{"):
        raise ReleaseError(another)
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
        if document.get("format") != FORMAT:
            raise ReleaseError(another)
        if document.get("version") != VERSION:
            raise ReleaseError(f"'{origin}' is of another version; measure again or use the matching wayveil.")
        release = _from_document(document, origin)
        check_release(release)
        return release
    except ReleaseError:
        raise
    except InputError:
        raise ReleaseError(f"'{origin}' promises something impossible; it was altered.") from None
    except ValidationError:
        raise ReleaseError(f"'{origin}': its scope is damaged.") from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, ZeroDivisionError):
        raise ReleaseError(f"'{origin}' is damaged; measure again, or ask its publisher for the original.") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _from_document(document: dict[str, Any], origin: str) -> Release:
    epsilon = _exact(document["epsilon_exact"], document["epsilon"])
    costs = {line["name"]: _exact(line["epsilon_exact"], line["epsilon"]) for line in document["ledger"]}
    if not 1 <= len(document["views"]) <= _MOST_ANSWERS:
        raise ValueError("views")
    answers = tuple(_answer(view, costs[view["name"]]) for view in document["views"])
    delta = float(document["delta"])
    if len(costs) != len(answers) or len(document["ledger"]) != len(costs) or sum(costs.values()) != epsilon:
        raise ReleaseError(f"'{origin}': its ledger lines do not add up to its epsilon; it was altered.")
    if not 0 < epsilon <= 1000 or not 0 <= delta < 1 or document["unit"] not in ("trajectory", "user"):
        raise ReleaseError(f"'{origin}': epsilon, delta or unit is not a possible value; it was altered.")
    return Release(
        scope=Scope.model_validate(document["scope"]),
        answers=answers,
        epsilon=epsilon,
        delta=delta,
        unit=document["unit"],
        max_per_user=document["max_per_user"],
        neighbours=_text(document["neighbours"]),
        private=bool(document["private"] is True),
        software=_text(document["software"]),
    )


def _exact(text: Any, plain: Any) -> Fraction:
    # Checked before it is read: '1e999999999' is a short text and a very long number.
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,60}([./][0-9]{1,60})?", text):
        raise ValueError("epsilon")
    value = Fraction(text)
    if float(value) != plain:
        raise ValueError("epsilon")
    return value


def _answer(view: dict[str, Any], epsilon: Fraction) -> Answer:
    if any(type(side) is not int for side in view["shape"]) or type(view["resolution"]) is not int:
        raise ValueError("shape")
    shape = tuple(view["shape"])
    size = math.prod(shape)
    if min(shape) < 1 or size > _MOST_VALUES or len(view["noisy"]) != size:
        raise ValueError("shape")
    scale, resolution = float(view["scale"]), int(view["resolution"])
    if not (math.isfinite(scale) and scale > 0 and resolution >= 1) or view["mechanism"] not in ("laplace", "gaussian"):
        raise ValueError("scale")
    if set(map(type, view["noisy"])) != {int}:
        raise ValueError("noisy")
    noisy = np.array(view["noisy"], dtype=np.int64)
    parameters = view["parameters"]
    if not isinstance(parameters, dict):
        raise ValueError("parameters")
    return Answer(_text(view["name"]), parameters, shape, resolution, view["mechanism"], scale, epsilon, noisy)


def _text(value: object) -> str:
    # Printable: it is shown in a terminal, where control characters act; and lone surrogates cannot be written.
    if not isinstance(value, str) or len(value) > 10_000 or not value.isprintable():
        raise ValueError("text")
    return value
