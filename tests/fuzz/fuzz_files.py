"""Damaged scope, run and release files, made from good ones, and the tools to damage anything; see fuzz_kinds.py."""

import copy
import json
import random
import signal
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wayveil.io.scope_files import read_scope
from wayveil.release import read_release, release_to_json
from wayveil.release.check import check_complete
from wayveil.release.describe import describe, description
from wayveil.workflow.run_file import RunFile, _try_inputs, do_run, read_run

LIMIT_S = 5
EVIL = "</script><img src=x onerror=alert(1)>"
WORDS = [
    "", " ", "sentinel", "a" * 300, "a" * 5000, "../../x", "~no-such-user/x", "~", "/", "/dev/null", "a\nb", "a\x00b",
    "\x1b[2J", "\u202e\U0001f600", "[/red]", "{0}", "%s", EVIL, "NaN", "1e999999999", "1/0", "UTC", "Asia/Tokyo",
    "../etc", "-1", "0", "trajectory", "user", "x://y", "parquet", "1/3", "0." + "0" * 50 + "1", "9" * 60,
]  # fmt: skip
NUMBERS: list[Any] = [
    0, 1, -1, 2, 85, -85, 180, -180, 1e-300, 1e308, -1e308, 5e-324, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5,
    float("nan"), float("inf"), float("-inf"), 1e9, 39.9, -0.0,
]  # fmt: skip
TOML_VALUES = [
    "nan", "inf", "-inf", "1e999", "0x" + "f" * 5000, "9" * 4999, "1" + "0" * 400, "true", "[]", "{}", "[[1]]", '""',
    "0001-01-01", "9999-12-31", "2024-02-30", "1970-01-01T00:00:00Z", "00:00:00", "2024-01-01", "-0", "0o9", "1__0",
    '"\\uD800"', '"\\U0010FFFF"', "[" * 3000 + "]" * 3000, "{a=" * 2000 + "1" + "}" * 2000, "'''\n'''", "",
]  # fmt: skip
SCOPE = """name = "small"
south = 30.0
west = -40.0
north = 30.04
east = -39.96
timezone = "Europe/Paris"
first_day = 2024-01-01
last_day = 2024-03-31

[caps]
points = 500
length_km = 40.0
duration_h = 12.0
speed_kmh = 150
"""
RUN = """[measure]
file = "none.csv"
dataset = "rides"
scope = "demo-city"
epsilon = "1"
unit = "user"
max_per_user = 10
delta = "1e-6"
ledger = "ledger.sqlite"

[measure.columns]
traj_id = "ride"
timezone = "Europe/Paris"

[synthesize]
rules = "rules.geojson"
n = 1000
seed = 1

[output]
release = "rides.release.json"
synthetic = "synthetic.parquet"
report = "rides.html"
"""


def odd_value(rng: random.Random, old: Any = None) -> Any:
    """A value of any JSON kind, sometimes close to the old one."""
    kind = rng.randrange(9)
    if kind == 0 and isinstance(old, int | float):
        return old * rng.choice([-1, 2, 1.0000001, 1e-9]) if abs(old) < 1e300 else 0
    if kind == 1 and isinstance(old, str | list):
        return old * rng.choice([0, 2, 3])
    if kind == 2 and isinstance(old, str) and old:
        at = rng.randrange(len(old))
        return old[:at] + rng.choice(WORDS) + old[at + 1 :]
    if kind <= 3:
        return rng.choice([None, True, False, [], {}, [[]], {"a": None}])
    if kind == 4:
        value: Any = rng.choice(NUMBERS)
        for _ in range(rng.choice([1, 5, 100])):
            value = [value] if rng.random() < 0.5 else {"a": value}
        return value
    return rng.choice(NUMBERS) if kind <= 6 else rng.choice(WORDS)


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flipped bits, a cut, a doubled or a lost piece, noise."""
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(5)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + rng.randbytes(rng.randint(1, 40)) + data[at:]
    if kind == 2:
        end = at + rng.randint(1, 200)
        return data[:at] + data[at:end] * rng.randint(2, 40) + data[end:]
    if kind == 3:
        return data[:at] + data[at + rng.randint(1, 60) :]
    flipped = bytearray(data)
    for _ in range(rng.randint(1, 6) if data else 0):
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def toml(value: Any) -> str:
    """A JSON value in TOML's words, as far as there are any."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(one)}" for name, one in value.items()) + "}"
    return json.dumps(value)


def damaged_toml(good: str, rng: random.Random) -> bytes:
    """Values swapped for odd ones, lines lost, doubled, renamed or moved; then perhaps bytes."""
    lines = good.splitlines()
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(lines))
        name, sign, old = lines[at].partition(" = ")
        kind = rng.randrange(12)
        if kind == 0:
            lines[at] = ""
        elif kind == 1:
            lines.insert(at, rng.choice(lines))
        elif kind == 2:
            lines[at] = f"{json.dumps(rng.choice(WORDS))} = {old or 1}"
        elif kind == 3:
            lines[at] = "[" + ".".join(["a"] * rng.choice([1, 50, 3000])) + "]"
        elif sign:
            new = rng.choice(TOML_VALUES) if kind < 7 else toml(odd_value(rng, old.strip('"')))
            lines[at] = f"{name} = {new}"
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    return damaged_bytes(data, rng) if rng.random() < 0.2 else data


@cache
def good_release() -> dict[str, Any]:
    """A whole release of invented data, small enough to be read ten thousand times."""
    from wayveil.measurement import measure
    from wayveil.privacy.noise import SeededNoise
    from wayveil.simulate import simulate_city, simulate_trajectories

    city = simulate_city(0, size_km=(3, 3))
    data = simulate_trajectories(city, 20, seed=3)
    release = measure(data, city.scope, epsilon="0.5", unit="trajectory", noise=SeededNoise(1))
    document: dict[str, Any] = json.loads(release_to_json(release))
    return document


def damaged_tree(document: Any, rng: random.Random, most: int = 3) -> Any:
    """A JSON value in which up to `most` values, anywhere, were swapped, lost, renamed or doubled."""
    document = copy.deepcopy(document)
    for _ in range(rng.randint(0, most)):
        spot = document
        for _ in range(rng.randint(0, 6)):
            inner = list(spot.values()) if isinstance(spot, dict) else spot
            inner = [one for one in inner if isinstance(one, dict | list) and one]
            if not inner:
                break
            spot = rng.choice(inner)
        place: Any = rng.choice(list(spot)) if isinstance(spot, dict) else rng.randrange(len(spot))
        kind = rng.randrange(8)
        if kind == 0:
            del spot[place]
        elif kind == 1 and isinstance(spot, list):
            spot.insert(place, copy.deepcopy(spot[place]))
        elif kind == 2 and isinstance(spot, dict):
            spot[rng.choice(WORDS)] = spot.pop(place)
        else:
            spot[place] = odd_value(rng, spot[place])
        if not document:
            break
    return document


def damaged_json(document: Any, rng: random.Random) -> bytes:
    """`damaged_tree` as text; sometimes with lone surrogates, damaged bytes, or nothing of the document at all."""
    if rng.random() < 0.05:
        return rng.choice([b"[" * 200_000, b'{"a":' * 50_000, b"9" * 10_000, b"", b"\xff\xfe", b"null", b'"\\ud800"'])
    text = json.dumps(damaged_tree(document, rng), separators=(",", ":"))
    if rng.random() < 0.1:  # lone surrogates: JSON can say them, UTF-8 cannot
        text = text.replace('"software":"', '"software":"\\ud800', 1)
    return damaged_bytes(text.encode(), rng) if rng.random() < 0.15 else text.encode()


def damaged_release(rng: random.Random) -> bytes:
    return damaged_json(good_release(), rng)


def use_scope(path: Path) -> None:
    scope = read_scope(path)
    assert scope.width_m > 0 and scope.height_m > 0
    scope.time_window()
    scope.model_dump_json().encode()


def use_run(path: Path) -> None:
    run: RunFile = read_run(path)
    # A damaged name may lead anywhere on the machine; what lies outside the test's folder is neither read nor written.
    inputs = run.measure.file, run.measure.ledger, run.synthesize.roads, run.synthesize.rules
    named = [*inputs, *run.output.model_dump().values()]
    if not all(Path(name).resolve().is_relative_to(path.parent.resolve()) for name in named if name is not None):
        return
    _try_inputs(run)
    # The private file is not there: nothing can be measured, and that is one sentence as well.
    if not Path(run.output.release).exists():
        do_run(run)


def use_release(path: Path) -> None:
    release = read_release(path)
    describe(release).encode()
    json.dumps(description(release), allow_nan=False).encode()
    check_complete(release)


def scope_bytes(rng: random.Random) -> bytes:
    return damaged_toml(SCOPE, rng)


def run_bytes(rng: random.Random) -> bytes:
    good = RUN if rng.random() < 0.5 else RUN.replace('rules = "rules.geojson"\n', "")
    return damaged_toml(good, rng)


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, a good one, how damaged ones are made, and every way in which wayveil uses one."""

    name: str
    good: Callable[[], bytes]
    make: Callable[[random.Random], bytes]
    use: Callable[[Path], None]
    limit_s: int = LIMIT_S


KINDS = {
    "scope": Kind("x.toml", SCOPE.encode, scope_bytes, use_scope),
    "run": Kind("run.toml", RUN.replace('rules = "rules.geojson"\n', "").encode, run_bytes, use_run),
    "release": Kind("x.release.json", lambda: json.dumps(good_release()).encode(), damaged_release, use_release),
}


@contextmanager
def alarm(seconds: float = LIMIT_S):
    """TimeoutError, wherever the program is, after so much CPU time, or twelve times as much on the clock.

    The clock alone would blame a file for a busy machine, the CPU alone would wait for ever on a pipe.
    """

    rang = []

    def ring(*_: object) -> None:
        rang.append(True)
        raise TimeoutError(f"more than {seconds} s")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, 12 * seconds)}
    before = {number: signal.signal(number, ring) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
    if rang:  # raised where Python ignores exceptions: in a finaliser or a collector's callback
        raise TimeoutError(f"more than {seconds} s")
