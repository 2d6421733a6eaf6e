"""The ledger's SQLite file: made with the right modes, opened durably, every failure one clear sentence."""

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wayveil.errors import InputError

APPLICATION_ID = 0x57564C47  # "WVLG"
VERSION = 1

_SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, name TEXT NOT NULL, "
    "epsilon TEXT NOT NULL, delta TEXT NOT NULL, time_utc TEXT NOT NULL, purpose TEXT NOT NULL, "
    "measurement TEXT NOT NULL, digest TEXT NOT NULL, chain TEXT NOT NULL)",
    "CREATE INDEX by_dataset ON entries (dataset)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
_OWN = set(_SCHEMA[:3])


def ledger_files(path: Path) -> tuple[Path, ...]:
    """The ledger at `path` and every file beside it that belongs to it; none of them may be an output."""
    return tuple(path.with_name(path.name + ending) for ending in ("", ".witness", ".lock", "-journal", "-wal", "-shm"))


@contextmanager
def connect(path: Path, timeout_s: float) -> Iterator[sqlite3.Connection]:
    """A connection for one call, with the file created (0600, its folder 0700) and its kind checked.

    A rollback journal with synchronous=EXTRA: a commit is on disk, its journal's removal included, before it returns;
    and the ledger is one file, where a write-ahead log would leave the newest entries in a second one.
    Processes are kept apart by the file system's locks: keep the ledger on a local disk, not on a network share.
    """
    _create(path)
    with _plain_errors(path):
        db = sqlite3.connect(path, timeout=timeout_s, isolation_level=None)
    try:
        with _plain_errors(path):
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute("PRAGMA synchronous = EXTRA")
            (kind,) = db.execute("PRAGMA application_id").fetchone()
        if kind != APPLICATION_ID:
            # On its own, so that a first spend that is refused does not take the ledger's identity back with it.
            with immediate(db, path):
                pass
        yield db
    finally:
        db.close()


@contextmanager
def immediate(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    """One write transaction: committed at the end, rolled back on any exception."""
    with _plain_errors(path):
        db.execute("BEGIN IMMEDIATE")
        try:
            _prepare(db, path)
            yield
            db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")


def _create(path: Path) -> None:
    try:
        if path.is_dir():
            raise InputError(f"The ledger '{path.name}' is a folder; name a file with --ledger.")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            kind = os.fstat(handle)
            if not stat.S_ISREG(kind.st_mode):
                raise InputError(f"The ledger '{path.name}' is not a plain file; name one with --ledger.")
            if os.name == "posix" and kind.st_mode & 0o077:
                os.fchmod(handle, 0o600)  # It holds a secret; a copy or a careless umask may have opened it up.
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(
            f"Cannot open the ledger '{path.name}' for writing: {error.strerror}; choose another --ledger."
        ) from None


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables in an empty file; refuse a file that is something else."""
    (kind,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if kind != APPLICATION_ID:
        if tables or kind or version:
            raise InputError(f"'{path.name}' is an SQLite file but not a ledger; name another with --ledger.")
        for statement in _SCHEMA:
            db.execute(statement)
        identity = (("id", secrets.token_hex(16)), ("secret", secrets.token_hex(32)))
        db.executemany("INSERT INTO meta VALUES (?, ?)", identity)
    elif version != VERSION:
        raise InputError(f"The ledger '{path.name}' was made by another version of wayveil; update wayveil.")
    elif {row[0] for row in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")} != _OWN:
        # A trigger or a view of somebody else's could change what is written.
        raise InputError(f"The ledger '{path.name}' was altered; restore it from a copy or name another with --ledger.")


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise InputError(_sentence(error, path.name)) from None
    except UnicodeDecodeError:  # of an error's own text, which quotes the damaged file
        raise InputError(_sentence(sqlite3.DatabaseError(), path.name)) from None


def _sentence(error: sqlite3.Error, name: str) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"The ledger '{name}' is held by another process; nothing was spent, try again when that has finished."
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return (
            f"The ledger '{name}' could not be written (the disk is full or failing) and nothing was released; "
            "free some space and try again."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return f"The ledger '{name}' or its folder cannot be written; change its mode or choose another --ledger."
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return f"'{name}' is not a ledger or is damaged; restore it from a copy or name another with --ledger."
    return f"The ledger '{name}' cannot be used ({type(error).__name__}); check the file or name another with --ledger."
