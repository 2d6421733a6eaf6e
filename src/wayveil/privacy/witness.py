"""The state of a ledger, recorded outside the ledger, so that an older copy is noticed.

A witness is the number of ledger entries and the head of their hash chain. One is next to the ledger, a second one,
named after the ledger's random id, in the user's state folder (see `wayveil.io.ledger_paths`). A ledger that has
fewer entries than a witness, or a different chain value at the entry that the witness recorded, was rolled back,
replaced, or copied and used elsewhere.

What this cannot notice: the ledger and both witnesses set back together (a restored home folder or machine image); a
copy used by another account or on another machine; a whole folder deleted and created again; and anybody who edits all
of them on purpose, which their owner can always do.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Witness:
    """Ledger `ledger` once had `count` entries, the last of which had the chain value `head`."""

    ledger: str
    count: int
    head: str


def read(path: Path) -> Witness | None:
    """The witness, or None if there is none that can be read."""
    try:
        fields = json.loads(path.read_text(encoding="ascii"))
        found = Witness(str(fields["ledger"]), int(fields["count"]), str(fields["head"]))
        return found if 0 <= found.count < 1 << 63 else None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def write(path: Path, witness: Witness) -> None:
    """Replace the witness as a whole; OSError if that cannot be done.

    There is no fsync: after a power failure the witness may be older, or empty and so ignored, but never ahead of the
    ledger.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One name for the unfinished file: writers hold the ledger's lock, and a killed one leaves nothing that piles up.
    part = path.with_name(f".{path.name}.part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        json.dump(witness.__dict__, file)
    os.replace(part, path)
