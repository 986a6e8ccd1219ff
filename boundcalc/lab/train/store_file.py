"""The SQLite file of a store: opened, brought up to date, written to whole or not at all, its errors explained."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from boundcalc.base.errors import BoundcalcError
from boundcalc.lab.train.record import summary_columns

_WAIT = 60.0
"""Seconds to wait for another writer."""
_FULL = "the disk is full; what was finished is kept: make room and run the same command again"


class StoreError(BoundcalcError):
    """A store that cannot be read or written."""


def _columns_from_json(connection: sqlite3.Connection) -> None:
    for key, config, result in connection.execute("SELECT hash, config, result FROM trials").fetchall():
        values = summary_columns(json.loads(config), json.loads(result))
        names = ", ".join(f"{name} = ?" for name in values)
        connection.execute(f"UPDATE trials SET {names} WHERE hash = ?", (*values.values(), key))


_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE trials (hash TEXT PRIMARY KEY, config TEXT NOT NULL, result TEXT NOT NULL, "
        "digest TEXT NOT NULL, created REAL NOT NULL, weights TEXT)",
    ),
    (
        *(
            f"ALTER TABLE trials ADD COLUMN {column}"
            for column in (
                "task TEXT",
                "T INTEGER",
                "m INTEGER",
                "seed INTEGER",
                "depth INTEGER",
                "status TEXT",
                "steps INTEGER",
                "train_error REAL",
                "test_error REAL",
                "gap REAL",
            )
        ),
        "CREATE INDEX trials_by_task ON trials (task, T, m)",
        "CREATE TABLE sweeps (name TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (name, hash)) WITHOUT ROWID",
    ),
    (
        "CREATE TABLE certificates (hash TEXT NOT NULL, asked TEXT NOT NULL, content TEXT NOT NULL, "
        "digest TEXT NOT NULL, created REAL NOT NULL, PRIMARY KEY (hash, asked))",
    ),
)
_AFTER = {2: _columns_from_json}
STORE_ID = 0x62636C64
"""Application id of the SQLite files that are stores of trials."""
SCHEMA = len(_MIGRATIONS)
"""The schema this version writes; older files are brought up to it, newer ones are refused."""


class StoreFile:
    """An open file of the kind. Several processes may have it open and write to it."""

    def __init__(self, path: Path | str, *, create: bool = True, read_only: bool = False) -> None:
        self.path = Path(path)
        create = create and not read_only
        if not create and not self.path.exists():
            raise StoreError(f"there is no store {self.path}: `boundcalc sweep smoke --store {self.path}` makes one")
        if not self.path.parent.is_dir():
            raise StoreError(f"cannot make {self.path}: there is no directory {self.path.parent}")
        with self.explained():
            if read_only and self._open_to_read():
                return
            self._connect(str(self.path))
            self._prepare()

    def _connect(self, where: str) -> None:
        self.connection = sqlite3.connect(where, timeout=_WAIT, isolation_level=None, uri=where.startswith("file:"))
        self.connection.text_factory = lambda data: data.decode("utf-8", "replace")

    def _open_to_read(self) -> bool:
        """Open without writing anything; False where the file must be brought up to date first.

        SQLite cannot open a file with a write-ahead log where it may not write: there the file alone is read.
        """
        name = self.path.absolute().as_uri()
        try:
            self._connect(f"{name}?mode=ro")
            return self._version() == SCHEMA
        except sqlite3.OperationalError as error:
            if "unable to open" not in str(error) and "readonly" not in str(error):
                raise
        log = self.path.with_name(self.path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise StoreError(
                f"store {self.path} cannot be written to, and {log.name} holds trials that are not in it yet: copy both "
                "files where they can be written"
            )
        self._connect(f"{name}?mode=ro&immutable=1")
        if self._version() != SCHEMA:
            raise StoreError(
                f"store {self.path} cannot be written to, and has an older schema: copy it where it can be written"
            )
        return True

    def _version(self) -> int:
        """The schema of the file; files of another program, or of a later version, are refused."""
        run = self.connection.execute
        version = int(run("PRAGMA user_version").fetchone()[0])
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[
            0
        ]  # before its owner: another may be making it now
        application = int(run("PRAGMA application_id").fetchone()[0])
        if application != STORE_ID and (tables or application):
            raise StoreError(f"{self.path} is a SQLite file of another program: choose another --store")
        if version > SCHEMA:
            raise StoreError(
                f"{self.path} has schema {version}, this version of boundcalc knows up to {SCHEMA}: "
                "upgrade boundcalc (pip install -U boundcalc)"
            )
        return version

    def _prepare(self) -> None:
        version = self._version()
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        if version < SCHEMA:
            self._migrate()

    def _migrate(self) -> None:
        with self.transaction():
            version = int(self.connection.execute("PRAGMA user_version").fetchone()[0])  # another may have been first
            for number in range(version + 1, SCHEMA + 1):
                for statement in _MIGRATIONS[number - 1]:
                    self.connection.execute(statement)
                if number in _AFTER:
                    _AFTER[number](self.connection)
            self.connection.execute(f"PRAGMA application_id = {STORE_ID}")
            self.connection.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written in it, or nothing."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Errors of SQLite and of the disk, with what to do about them."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if "full" in text or ("disk I/O" in text and _free(self.path) < 2**20):
                why = _FULL
            elif "disk I/O" in text:
                why = (
                    "it cannot be written any further (a quota, a limit of file sizes, or a failing disk); what was "
                    "finished is kept: lift the limit and run the same command again"
                )
            elif "locked" in text:
                why = (
                    f"another process has kept it locked for {_WAIT:g} s: wait for it, then run the same command again"
                )
            elif "not a database" in text or "malformed" in text:
                why = "it is not a SQLite file, or it is damaged: choose another --store"
            else:
                why = text
            raise StoreError(f"store {self.path}: {why}") from error
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StoreError(f"store {self.path}: {_FULL}") from error
            raise StoreError(f"store {self.path}: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.connection.close()


def _free(path: Path) -> int:
    try:
        stats = os.statvfs(path.parent)
    except OSError:
        return 2**62
    return stats.f_bavail * stats.f_frsize
