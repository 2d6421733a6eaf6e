"""Damaged files of every format: success or one clear sentence, never anything else.

WAYVEIL_FUZZ says how many inputs are tried (300 by default), WAYVEIL_FUZZ_SEED where to start.
"""

import os
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from wayveil.core.trajectories import Trajectories
from wayveil.errors import WayveilError
from wayveil.io.check import check
from wayveil.io.files import read, read_metadata, write
from wayveil.io.options import ReadOptions
from wayveil.io.source import open_source

COUNT = int(os.environ.get("WAYVEIL_FUZZ", "300"))
SEED = int(os.environ.get("WAYVEIL_FUZZ_SEED", "0"))
LIMIT_S = 20.0
SENTINEL = b"sentinel"
TOKENS = [
    b"", b"\x00", b"\n", b"\r", b",", b";", b'"', b"'", b"nan", b"inf", b"-inf", b"1e999", b"-0", b"9" * 400,
    b"\xff\xfe", b"\xef\xbb\xbf", b"<", b">", b"&amp;", b"&#0;", b"<!DOCTYPE a>", b"]]>", b"<trkseg>", b"</trk>",
    b"T25:61:61Z", b"0000-00-00", b"9999-12-31T23:59:59.999999999Z", b"2024-02-30 10:00:00", b"null", b"PAR1",
    b"user", b"time", b"traj_id", b"-9223372036854775809", b"18446744073709551616",
    "\u202e\U0001f600".encode(), b"=" * 70_000,
]  # fmt: skip


def sample(rng: np.random.Generator) -> Trajectories:
    counts = rng.integers(1, 6, rng.integers(1, 6))
    n = int(counts.sum())
    users = [None, np.arange(len(counts)), np.array([f"sentinel{i}" for i in range(len(counts))])][rng.integers(3)]
    t_utc = 1.2e9 + np.arange(n) * (10 if rng.random() < 0.5 else 10.25)
    return Trajectories(np.cumsum(np.r_[0, counts]), rng.uniform(-180, 180, n), rng.uniform(-90, 90, n), t_utc, users)


def folder_files(kind: str, rng: np.random.Generator) -> dict[str, bytes]:
    rows = range(int(rng.integers(1, 8)))
    if kind == "geolife":
        text = "h\r\n" * 6 + "".join(f"39.{k},116.{k},0,492,39744.1,2008-10-23,02:00:0{k}\r\n" for k in rows)
        return {"Data/000/Trajectory/a.plt": text.encode(), "Data/001/Trajectory/b.plt": text.encode()}
    if kind == "tdrive":
        text = "".join(f"1,2008-02-02 15:36:0{k},116.{k},39.{k}\n" for k in rows)
        return {"1.txt": text.encode(), "2.txt": text.encode()}
    text = "".join(f"37.{k} -122.{k} {int(rng.integers(2))} {1211000000 - k}\n" for k in rows)
    return {"new_a.txt": text.encode(), "new_b.txt": text.encode()}


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    for _ in range(int(rng.integers(0, 5))):
        place = int(rng.integers(0, len(data) + 1))
        kind = rng.integers(8)
        if kind == 0:
            data = data[:place]
        elif kind == 1:
            data = data[:place] + TOKENS[rng.integers(len(TOKENS))] + data[place:]
        elif kind == 2 and data:
            flipped = bytearray(data)
            for at in rng.integers(0, len(data), rng.integers(1, 9)):
                flipped[at] ^= 1 << int(rng.integers(8))
            data = bytes(flipped)
        elif kind == 3:
            end = place + int(rng.integers(1, 200))
            data = data[:place] + data[place:end] * int(rng.integers(2, 50)) + data[end:]
        elif kind == 4:
            data = data[:place] + data[place + int(rng.integers(1, 100)) :]
        elif kind == 5:
            lines = data.split(b"\n")
            data = b"\n".join(lines[i] for i in rng.permutation(len(lines)))
        elif kind == 6:
            data = data[:place] + rng.bytes(int(rng.integers(1, 64))) + data[place:]
        else:
            cells = data.split(b",")
            cells[int(rng.integers(len(cells)))] = TOKENS[rng.integers(len(TOKENS))]
            data = b",".join(cells)
        data = data[: 1 << 22]
    return data


def odd_frame(rng: np.random.Generator) -> pa.Table:
    n = int(rng.integers(0, 6))
    pool = [
        pa.array([1, 2, None, 4, 5, 6][:n]), pa.array([0.5, np.nan, np.inf, 91, -181, None][:n]), pa.nulls(n),
        pa.array(["a", "", None, "1", "2024-01-01", "nan"][:n]), pa.array([b"a"] * n), pa.array([[1.0]] * n),
        pa.array([{"x": 1}] * n), pa.array([True] * n), pa.array([2**63] * n, pa.uint64()),
        pa.array([2**62] * n, pa.timestamp("s")), pa.array([-(2**62)] * n, pa.timestamp("ns", "UTC")),
        pa.array([5] * n, pa.date32()), pa.array([5] * n, pa.duration("s")), pa.array([5] * n, pa.time32("s")),
        pa.array(["a", "b", None, "a", "", "c"][:n]).dictionary_encode(), pa.array([1] * n, pa.decimal128(38, 3)),
        pa.array([1.0] * n, pa.float16()), pa.array(["x"] * n, pa.large_string()), pa.array([3] * n, pa.int8()),
    ]  # fmt: skip
    names = ["traj_id", "lat", "lon", "t", "user", "time", "LAT"][: rng.integers(3, 8)]
    return pa.Table.from_arrays([pool[rng.integers(len(pool))] for _ in names], names)


def build(kind: str, place: Path, rng: np.random.Generator):
    if kind == "frame":
        return odd_frame(rng)
    if kind in ("geolife", "tdrive", "cabspotting"):
        for name, data in folder_files(kind, rng).items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(mutate(data, rng))
        return place
    ending = {"parts": ".parquet"}.get(kind, "." + kind)
    for i in range(2 if kind == "parts" else 1):
        path = place / f"x{i}{ending}"
        write(sample(rng), path)
        path.write_bytes(mutate(path.read_bytes(), rng))
    return place if kind == "parts" else path


KINDS = ("csv", "parquet", "geo.parquet", "gpx", "geolife", "tdrive", "cabspotting", "parts", "frame")


def attempt(kind: str, place: Path, seed: int) -> str:
    """Read one damaged input in every way; the outcome, or an exception that should not be."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    place.mkdir()
    data = build(kind, place, rng)
    options = {"timezone": "Asia/Tokyo"} if rng.random() < 0.3 else {}
    options |= {"on_bad_rows": "drop"} if rng.random() < 0.5 else {}
    ways = [
        lambda: read(data, **options),
        lambda: list(open_source(data, ReadOptions(**options)).batches()),
        lambda: [list(part.batches()) for part in open_source(data, ReadOptions(**options)).partitions()],
        lambda: check(data, **options),
    ]
    ways += [] if kind == "frame" else [lambda: read_metadata(data)]
    outcome = "read"
    for way in ways:
        try:
            way()
        except WayveilError as error:
            outcome, message = "refused", str(error)
        else:
            continue
        assert "\n" not in message and SENTINEL.decode() not in message and str(place) not in message
    return outcome


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_inputs(tmp_path, kind):
    import shutil

    outcomes: Counter[str] = Counter()
    for i in range(-(-COUNT // len(KINDS))):
        began = time.monotonic()
        try:
            outcomes[attempt(kind, tmp_path / str(i), SEED + i)] += 1
        except Exception as error:
            raise AssertionError(f"{kind}, seed {SEED + i}: {type(error).__name__}") from error
        assert time.monotonic() - began < LIMIT_S, f"{kind}, seed {SEED + i} took too long"
        shutil.rmtree(tmp_path / str(i))
    print(kind, dict(outcomes))
    assert len(outcomes) == 2 or COUNT < 200, "the fuzzer damages everything or nothing"
