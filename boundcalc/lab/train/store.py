"""Results in one SQLite file: a transaction per trial, so what was finished is there whatever happens next."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from boundcalc.base.errors import BoundcalcError
from boundcalc.lab.train.trial import Trial, canonical

if TYPE_CHECKING:
    from boundcalc.lab.train.certify import Issued

_WAIT = 60.0
"""Seconds to wait for another writer."""
_APPLICATION, _SCHEMA = 0x62636C64, 4
_TABLES = (
    "CREATE TABLE trials (hash TEXT PRIMARY KEY, config TEXT, result TEXT, digest TEXT, created REAL)",
    "CREATE TABLE sweeps (name TEXT, hash TEXT, PRIMARY KEY (name, hash)) WITHOUT ROWID",
    "CREATE TABLE certificates (hash TEXT, asked TEXT, content TEXT, digest TEXT, created REAL, "
    "PRIMARY KEY (hash, asked))",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_SCHEMA}",
)


class StoreError(BoundcalcError):
    """A store that cannot be read or written."""


@dataclass(frozen=True)
class Record:
    """A stored trial, with the certificates of what its data taught: request, entry in short, certificate or None."""

    hash: str
    config: dict[str, Any]
    result: dict[str, Any]
    digest: str
    created: float
    certificates: tuple[Mapping[str, Any], ...] = ()

    @property
    def trial(self) -> Trial:
        """The trial, ready to be run again."""
        return Trial.from_json(self.config)

    @property
    def summary(self) -> dict[str, Any]:
        """What a list of trials shows and sorts by."""
        task, model, result = self.config["task"], self.config["architecture"], self.result
        return {
            "task": task.get("function", task["task"]),
            "T": task.get("T", task.get("L", model.get("seq_len", 0))),
            "m": self.config["m"],
            "depth": model.get("depth", 2),
            "seed": self.config["seed"],
            **{name: result[name] for name in ("status", "steps")},
            "train_error": result["train"]["error"],
            "test_error": result["test"]["error"],
            "gap": result["gap"],
        }


def digest_of(key: str, config: str, result: str) -> str:
    """What proves that a record is as it was written."""
    return hashlib.sha256("\n".join((key, config, result)).encode()).hexdigest()


class Store:
    """An open store. Several processes may have one file open and write to it.

    Attributes:
        damaged: records that were left out when reading, and why.
    """

    def __init__(self, path: Path | str, *, create: bool = True) -> None:
        self.path = Path(path)
        self.damaged: list[str] = []
        if not create and not self.path.exists():
            raise StoreError(f"there is no store {self.path}: `boundcalc sweep smoke --store {self.path}` makes one")
        with self._errors():
            self.connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
            self.connection.text_factory = lambda data: data.decode("utf-8", "replace")
            with self._transaction() if create else self._errors():
                if create and not self._fetch_all("SELECT * FROM sqlite_master LIMIT 1"):
                    for statement in _TABLES:
                        self.connection.execute(statement)
                marks = [self._fetch_all(f"PRAGMA {name}")[0][0] for name in ("application_id", "user_version")]
                if marks[0] != _APPLICATION:
                    raise StoreError(f"{self.path} is a SQLite file of another program: choose another --store")
                if marks[1] != _SCHEMA:
                    raise StoreError(f"{self.path} has schema {marks[1]}; this version of boundcalc reads {_SCHEMA}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Name the store in errors of SQLite and of the disk."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"store {self.path}: {error}; trials that were finished are kept") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All that is written in it, or nothing."""
        with self._errors(), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            yield

    def _fetch_all(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._errors():
            return self.connection.execute(query, values).fetchall()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    # -- writing

    def add(self, trial: Trial, result: Mapping[str, Any], *, sweep: str = "") -> bool:
        """Store a finished trial; False when it was there already."""
        key, texts = trial.hash, (canonical(trial.to_json()), canonical(result))
        row = key, *texts, digest_of(key, *texts), time.time()
        with self._transaction():
            done = self.connection.execute("INSERT OR IGNORE INTO trials VALUES (?, ?, ?, ?, ?)", row)
            if sweep:
                self.connection.execute("INSERT OR IGNORE INTO sweeps VALUES (?, ?)", (sweep, key))
        return done.rowcount == 1

    def add_certificate(self, issued: Issued, key: str) -> None:
        """Store what came of certifying a trial, a refusal too; what was there is left."""
        certificate = None if issued.certificate is None else issued.certificate.to_json()
        texts = canonical(issued.request.to_json()), canonical({"entry": issued.entry, "certificate": certificate})
        row = key, *texts, digest_of(key, *texts), time.time()
        with self._transaction():
            self.connection.execute("INSERT OR IGNORE INTO certificates VALUES (?, ?, ?, ?, ?)", row)

    def enrol(self, sweep: str, hashes: Iterable[str]) -> None:
        """Note that trials belong to a sweep, whatever process ran them."""
        with self._transaction():
            self.connection.executemany("INSERT OR IGNORE INTO sweeps VALUES (?, ?)", ((sweep, h) for h in hashes))

    def remove(self, hashes: Sequence[str]) -> None:
        """Forget trials and their certificates."""
        with self._transaction():
            for table in ("trials", "sweeps", "certificates"):
                self.connection.executemany(f"DELETE FROM {table} WHERE hash = ?", [(key,) for key in hashes])

    # -- reading

    def hashes(self) -> set[str]:
        """Hashes of all stored trials."""
        return {row[0] for row in self._fetch_all("SELECT hash FROM trials")}

    def certified(self) -> set[tuple[str, str]]:
        """Trials that have been certified, with the request as canonical JSON."""
        return set(self._fetch_all("SELECT hash, asked FROM certificates"))

    def sweeps(self) -> dict[str, int]:
        """Names of sweeps, and how many of their trials are stored."""
        return dict(
            self._fetch_all("SELECT name, count(*) FROM sweeps JOIN trials USING (hash) GROUP BY name ORDER BY name")
        )

    def records(self, *, sweep: str = "") -> list[Record]:
        """Stored trials, or those of a sweep.

        Records that were changed after they were written are left out, and noted in `damaged`.
        """
        where = "hash IN (SELECT hash FROM sweeps WHERE name = ?)" if sweep else "? = ''"
        records: list[Record] = []
        for key, *texts, created in self._fetch_all(f"SELECT * FROM trials WHERE {where}", (sweep,)):
            if self._unchanged("", key, *texts):
                config, result = map(json.loads, texts[:2])
                records.append(Record(key, config, result, texts[2], created, self._certificates(key)))
        names = ("task", "T", "m", "depth", "seed")
        return sorted(records, key=lambda record: (*[record.summary[name] for name in names], record.hash))

    def _certificates(self, key: str) -> tuple[Mapping[str, Any], ...]:
        query = "SELECT asked, content, digest FROM certificates WHERE hash = ? ORDER BY asked"
        return tuple(
            {"asked": json.loads(request), **json.loads(content), "digest": digest}
            for request, content, digest in self._fetch_all(query, (key,))
            if self._unchanged("a certificate of ", key, request, content, digest)
        )

    def _unchanged(self, what: str, key: str, *texts: str) -> bool:
        *content, digest = texts
        text = f"{what}{key[:12]} was changed after it was written: remove it (Store.remove), then train it again"
        if digest_of(key, *content) != digest and text not in self.damaged:
            self.damaged.append(text)
        return digest_of(key, *content) == digest

    def verify(self) -> list[str]:
        """What is wrong with the file, a record or a certificate; nothing where all is as it was written."""
        problems = [f"SQLite: {line}" for (line,) in self._fetch_all("PRAGMA integrity_check") if line != "ok"]
        for record in self.records():
            problems += [f"{record.hash[:12]}: {text}" for text in _problems(record)]
        return problems + self.damaged


def _problems(record: Record) -> Iterator[str]:
    from boundcalc.predictors.certificate import PredictorCertificate, verify_predictor

    try:
        if record.trial.hash != record.hash:
            yield "the hash is not that of its configuration (computed by another version?)"
        for stored in record.certificates:
            if stored["certificate"] is not None:
                verify_predictor(PredictorCertificate.from_json(stored["certificate"]))
    except BoundcalcError as error:
        yield f"its configuration or a certificate does not hold: {error}"
