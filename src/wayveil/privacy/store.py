"""The ledger's SQLite file: created as a whole, used under locks, and with one clear sentence for every failure.

The database file is opened and closed by SQLite alone. Anything else about it is read from its path (`os.stat`),
because closing a descriptor would drop the locks of a transaction in this process.
"""

import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io import ledger_paths
from wayveil.privacy import locks

APPLICATION_ID = 0x57564C47  # "WVLG"
VERSION = 3
"""The version of the tables."""

_SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, name TEXT NOT NULL, "
    "epsilon TEXT NOT NULL, delta TEXT NOT NULL, time_utc TEXT NOT NULL, purpose TEXT NOT NULL, "
    "measurement TEXT NOT NULL, digest TEXT NOT NULL, chain TEXT NOT NULL, unit TEXT NOT NULL, "
    "max_per_user TEXT NOT NULL)",
    "CREATE INDEX by_dataset ON entries (dataset)",
)


@contextmanager
def exclusive(path: Path, timeout_s: float, *, create: bool) -> Iterator[bool]:
    """Keep every other thread and process out of the ledger; yields whether the ledger exists.

    With `create` a missing ledger is created (mode 0600, its folder 0700). A file that is not a ledger is refused
    before anything is written, changed or created. Keep the ledger on a local disk; network shares may not lock.
    """
    deadline = time.monotonic() + timeout_s
    with locks.process_lock(path.name, deadline):
        if _exists(path):
            _check_kind(path)
        elif create:
            _make_folder(path)
        else:
            yield False
            return
        with locks.file_lock(ledger_paths.lock_file(path), path.name, deadline):
            if not _exists(path):
                _create(path)
            yield True


@contextmanager
def transaction(path: Path, timeout_s: float) -> Iterator[sqlite3.Connection]:
    """A connection inside one write transaction, which the caller commits; otherwise it is rolled back.

    Use it only inside `exclusive`. It has a rollback journal with synchronous=EXTRA: a commit is on disk, its journal's
    removal included, before it returns; and the ledger is one file, where a write-ahead log would keep the newest
    entries in a second one.
    """
    with _plain_errors(path.name):
        db = sqlite3.connect(path, timeout=timeout_s, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute("PRAGMA synchronous = EXTRA")
            db.execute("BEGIN IMMEDIATE")
            _check_tables(db, path)
            _make_private(path)
            yield db
        finally:
            discard(db)


def discard(db: sqlite3.Connection) -> None:
    """Roll back what is not committed, and close."""
    with suppress(sqlite3.Error):  # closed already; or the disk fails, and the journal is rolled back at the next use
        if db.in_transaction:
            db.execute("ROLLBACK")
    with suppress(sqlite3.Error):
        db.close()


def _exists(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # a null byte
        raise InputError("The path of the ledger cannot be used; choose another ledger=.") from None


def _check_kind(path: Path) -> None:
    """Refuse whatever is certainly not a ledger, without leaving a trace."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise locks.cannot_open(path.name, error) from None
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"The ledger '{path.name}' is a folder; name a file with ledger=.")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"The ledger '{path.name}' is not a regular file; name one with ledger=.")
    if found.st_size == 0:
        raise InputError(
            f"'{path.name}' is empty, so it is not a ledger; restore it from a copy, delete it, or name another with "
            "ledger=."
        )
    if found.st_nlink > 1:
        # SQLite finds its journal by name: a crash under one name could not be rolled back under the other.
        raise InputError(f"The ledger '{path.name}' has a second name (a hard link); remove that link first.")
    if any(map(os.path.lexists, ledger_paths.journal_files(path))):
        return  # In use, or to be recovered after a crash: the transaction checks it.
    # Immutable: SQLite reads the header and creates no lock, journal or shared memory.
    address = f"{path.as_uri()}?mode=ro&immutable=1"
    with _plain_errors(path.name), closing(sqlite3.connect(address, uri=True)) as db:
        try:
            (kind,) = db.execute("PRAGMA application_id").fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise
            return  # changed while it was read, or damaged: the transaction finds out which
    if kind != APPLICATION_ID:
        raise _not_a_ledger(path)


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise locks.cannot_open(path.name, error) from None


def _make_private(path: Path) -> None:
    """Withdraw other users' access to the file, which holds a secret; a copy or a lax umask may have granted it."""
    with suppress(OSError):
        if os.name == "posix" and os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o600)


def _create(path: Path) -> None:
    """A new ledger appears under its name complete or not at all, so an empty file is never one."""
    part = ledger_paths.new_file(path)
    if os.path.lexists(ledger_paths.journal_files(path)[0]):
        raise InputError(
            f"The journal of an earlier ledger '{path.name}' exists, but the ledger itself is missing; put it back, "
            "or move the journal away."
        )
    try:
        for stale in (part, *ledger_paths.journal_files(part)):
            stale.unlink(missing_ok=True)
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600))
    except OSError as error:
        raise locks.cannot_open(path.name, error) from None
    try:
        with _plain_errors(path.name), closing(sqlite3.connect(part, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {VERSION}")
            identity = (("id", secrets.token_hex(16)), ("secret", secrets.token_hex(32)))
            db.executemany("INSERT INTO meta VALUES (?, ?)", identity)
            db.execute("COMMIT")
        os.rename(part, path)
    except OSError as error:
        raise locks.cannot_open(path.name, error) from None
    finally:
        for unfinished in (part, *ledger_paths.journal_files(part)):
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)


def _check_tables(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is something else, another version, or altered."""
    (kind,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if kind != APPLICATION_ID:
        raise _not_a_ledger(path)
    if version != VERSION:
        raise InputError(
            f"The ledger '{path.name}' was made by another version of wayveil; use that version, or name another "
            "ledger with ledger=."
        )
    if {row[0] for row in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")} != set(_SCHEMA):
        # A trigger or a view of somebody else's could change what is written.
        raise InputError(f"The ledger '{path.name}' was altered; restore it from a copy or name another with ledger=.")


def _not_a_ledger(path: Path) -> InputError:
    return InputError(f"'{path.name}' is an SQLite file but not a ledger; name another with ledger=.")


@contextmanager
def _plain_errors(name: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise InputError(failure_text(error, name)) from None
    except UnicodeDecodeError:  # the text of an SQLite error may quote bytes of a damaged file
        raise InputError(failure_text(sqlite3.DatabaseError(), name)) from None


def failure_text(error: sqlite3.Error, name: str) -> str:
    """The message for a failure before the commit, when nothing has been spent or changed."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return str(locks.held(name))
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return (
            f"The ledger '{name}' could not be written (the disk is full or failing) and nothing was spent; "
            "free some space and try again."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return f"The ledger '{name}' or its folder cannot be written; change its mode or choose another ledger=."
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return f"'{name}' is not a ledger or is damaged; restore it from a copy or name another with ledger=."
    return f"The ledger '{name}' cannot be used ({type(error).__name__}); check the file or name another with ledger=."
