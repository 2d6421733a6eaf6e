"""Every kind of file that the fuzzers damage, and one attempt; shared with research/benchmarks/fuzz_long.py."""

import random
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

import fuzz_files
import fuzz_ledger
import fuzz_maps
import fuzz_synthesis

from wayveil.errors import WayveilError

QUICK = {**fuzz_files.KINDS, **fuzz_maps.KINDS, **fuzz_ledger.KINDS}
KINDS = {**QUICK, **fuzz_synthesis.KINDS}


@cache
def warm(kind: str, folder: Path) -> None:
    """Import what the first file of a kind imports, before any time is taken."""
    path = folder / f"good-{KINDS[kind].name}"
    path.write_bytes(KINDS[kind].good())
    with suppress(WayveilError):
        KINDS[kind].use(path)


def attempt(kind: str, folder: Path, seed: int) -> str:
    """Use one damaged file: "read", or "refused" in one sentence; any other exception is a defect."""
    warm(kind, folder)
    path = folder / KINDS[kind].name
    path.write_bytes(KINDS[kind].make(random.Random(f"{kind} {seed}")))
    with fuzz_files.alarm(KINDS[kind].limit_s):
        try:
            KINDS[kind].use(path)
        except WayveilError as error:
            said = str(error)
            assert said and said.isprintable() and len(said) < 1000, f"not one clear sentence: {said[:200]!r}"
            # Suggested commands name the ledger that was given; nothing else names a folder.
            rest = re.sub(r"--ledger \S+|wayveil\.Ledger\('[^']*'\)", "", said)
            assert str(folder) not in rest, f"tells its folder: {said[:200]!r}"
            return "refused"
    return "read"
