"""What an output may replace: never an input, a ledger, another output of the same call, or a special file.

Files are compared by device and inode, so hard links and symbolic links to them are recognized; a file that does not
exist yet is compared by its resolved path. `force` overrides none of this. A symbolic link is refused as
an output: replacing the link would leave the data where nobody expects it, and writing through it could replace a
file elsewhere.
"""

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.inputs import open_regular
from wayveil.io.ledger_paths import SUFFIXES, far_witness, ledger_files, near_witness

Place = str | os.PathLike[str]

_measured: set[str] = set()
"""Resolved paths of the data that this process has measured; `write` and `write_release` must not replace them."""


def remember_private(path: Place) -> None:
    """From now on this process refuses to replace the private file, or a file in the private folder, at `path`."""
    if "://" not in str(path):
        _measured.add(os.path.realpath(path))


def check_target(path: Place) -> None:
    """InputError if `path` must not be replaced: a ledger's file, measured private data, or not a regular file."""
    target = Path(path)
    try:
        mode = os.lstat(target).st_mode
    except (OSError, ValueError):
        mode = None  # no such file; a folder that is missing or not writable is reported when it is used
    if mode is not None and stat.S_ISLNK(mode):
        raise InputError(f"'{target.name}' is a symbolic link; name the file that it points to, or remove the link.")
    if mode is not None and stat.S_ISDIR(mode):
        raise InputError(f"'{target.name}' is a folder; choose the name of a file.")
    if mode is not None and not stat.S_ISREG(mode):
        raise InputError(f"'{target.name}' is not a regular file; choose another name for the output.")
    if _belongs_to_ledger(target):
        raise _is_ledger(target)
    if mode is not None and any(_holds(private, target) for private in _measured):
        raise InputError(
            f"'{target.name}' was measured as private data and must not be overwritten; choose another name for the "
            "output."
        )


def check_outputs(
    outputs: Iterable[Place | None], *, inputs: Iterable[Place | None] = (), ledger: Place | None = None
) -> None:
    """InputError where writing `outputs` would destroy an input, the ledger, another output or a special file.

    Call it before anything is spent or computed. `inputs` may be files or folders; those that do not exist (a shipped
    scope's name, an address) are skipped.
    """
    targets = [Path(path) for path in outputs if path is not None]
    sources = [path for path in inputs if path is not None and "://" not in str(path)]
    account = () if ledger is None else ledger_files(ledger)
    protected = {_identity(path) for path in account}
    seen: set[tuple[object, ...]] = set()
    for target in targets:
        check_target(target)
        identity = _identity(target)
        if identity in protected:
            raise _is_ledger(target)
        if os.path.exists(target) and any(_holds(source, target) for source in sources):
            raise InputError(
                f"'{target.name}' is one of the inputs and must not be overwritten; choose another output."
            )
        if identity in seen:
            raise InputError(f"'{target.name}' is used for two outputs; choose different files.")
        seen.add(identity)


def check_output(path: Place, *, force: bool = False, room_bytes: int = 0) -> None:
    """InputError unless a file can be written at `path`; checked before the work, so that no budget is wasted.

    An existing file is overwritten only with `force`. `room_bytes` must be free on the disk.
    """
    target = Path(path)
    check_target(target)
    try:
        if os.path.exists(target) and not force:
            raise InputError(f"'{target.name}' already exists; choose another name, or overwrite it with force=True.")
        with tempfile.TemporaryFile(dir=target.parent) as file:
            if room_bytes and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, room_bytes)
    except (OSError, ValueError) as error:
        raise unwritable(target, error) from None


_HEAD_BYTES = 2048
"""Bytes of an existing page that are read to find out its kind."""
_PRIVATE_MARK = b'<meta name="robots" content="noindex">'
"""In the first bytes of internal reports (`report/templates/page.html.j2`)."""


def check_page(output: Path, inputs: Iterable[Place | None] = (), *, private: bool = False) -> None:
    """InputError unless the page can be written; of existing files it may overwrite only an earlier page.

    A private page may overwrite private pages only, because a public page may be shared or published where it is.
    """
    check_outputs([output], inputs=inputs)
    check_output(output, force=True)
    if output.exists():
        with open_regular(output) as there:
            start = there.read(_HEAD_BYTES).strip().lower()
        if start and not start.startswith(b"<!doctype html"):
            raise InputError(f"'{output.name}' already exists and is not a page of wayveil; choose another output.")
        if start and private and _PRIVATE_MARK not in start:
            raise InputError(f"'{output.name}' already exists and is not an internal report; choose another output.")
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"The page is written as HTML; choose a name that ends in .html instead of '{output.name}'.")


def unwritable(target: Path, error: OSError | ValueError) -> InputError:
    """Why nothing can be written into the folder of `target`."""
    if isinstance(error, FileNotFoundError) and not target.parent.exists():
        return InputError(
            f"The folder for '{target.name}' does not exist; create it first (mkdir), or choose another output."
        )
    return InputError(f"Cannot write to the folder of '{target.name}': {reason(error)}; choose another output.")


def reason(error: OSError | ValueError) -> str:
    """The operating system's message, without the text that libraries add to it."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else getattr(error, "strerror", None) or "invalid file name"


def _is_ledger(target: Path) -> InputError:
    return InputError(
        f"'{target.name}' belongs to a privacy ledger and must not be overwritten; choose another output."
    )


def _belongs_to_ledger(target: Path) -> bool:
    """Whether a path is a file of the default ledger, of a ledger with a witness, or a witness in the state folder.

    The file itself is not opened: closing it would drop the locks of a transaction that another thread has open.
    """
    identity = _identity(target)
    for ledger in _candidates(target):
        if os.path.exists(ledger) and os.path.exists(near_witness(ledger)):
            return True
    try:
        if any(_identity(path) == identity for path in ledger_files()):
            return True
    except InputError:  # no home folder, so there is no default ledger either
        return False
    witness = far_witness("x")
    return witness is not None and os.path.realpath(target.parent) == os.path.realpath(witness.parent)


def _candidates(target: Path) -> Iterator[Path]:
    """Every path at which a ledger would have `target` as one of its files."""
    for ending in ("", *SUFFIXES):
        if target.name.endswith(ending) and len(target.name) > len(ending):
            yield target.with_name(target.name[: len(target.name) - len(ending)])


def _identity(path: Place) -> tuple[object, ...]:
    try:
        found = os.stat(path)
        return found.st_dev, found.st_ino
    except (OSError, ValueError):
        return (os.path.realpath(path),)


def _holds(source: Place, target: Path) -> bool:
    """Whether an existing `target` is `source`, or one of the files in it."""
    try:
        if os.path.samefile(source, target):
            return True
    except (OSError, ValueError):
        return False
    if not os.path.isdir(source):
        return False
    if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(source)):
        return True
    identity = _identity(target)
    return any(_identity(path) == identity for path in _files_in(source))


def _files_in(folder: Place) -> Iterator[str]:
    """Every file below a folder, including linked folders; each folder once, so that a loop of links ends."""
    seen: set[tuple[object, ...]] = set()
    for here, folders, names in os.walk(folder, followlinks=True):
        identity = _identity(here)
        if identity in seen:
            folders.clear()
            continue
        seen.add(identity)
        yield from (os.path.join(here, name) for name in names)
