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

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.train.trial import Trial, canonical

if TYPE_CHECKING:
    from boundcalc.lab.train.certify import Issued

_WAIT = 60.0
"""Seconds to wait for another writer."""
_APPLICATION, _SCHEMA = 0x62636C64, 4
_TABLES = (
    "CREATE TABLE trials (hash TEXT PRIMARY KEY, config TEXT NOT NULL, result TEXT NOT NULL, digest TEXT NOT NULL, "
    "created REAL NOT NULL, weights TEXT, task TEXT, T INTEGER, m INTEGER, seed INTEGER, depth INTEGER, status TEXT, "
    "steps INTEGER, train_error REAL, test_error REAL, gap REAL)",
    "CREATE TABLE sweeps (name TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (name, hash)) WITHOUT ROWID",
    "CREATE TABLE certificates (hash TEXT NOT NULL, asked TEXT NOT NULL, content TEXT NOT NULL, "
    "digest TEXT NOT NULL, created REAL NOT NULL, PRIMARY KEY (hash, asked))",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_SCHEMA}",
)


class StoreError(BoundcalcError):
    """A store that cannot be read or written."""


@dataclass(frozen=True)
class Record:
    """A stored trial."""

    hash: str
    config: dict[str, Any]
    result: dict[str, Any]
    digest: str
    created: float
    certificates: tuple[Mapping[str, Any], ...] = ()
    """Of what the trial's data taught: what was asked, the entry in short, the certificate (None: refused)."""

    @property
    def trial(self) -> Trial:
        """The trial, ready to be run again."""
        return Trial.from_json(self.config)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "hash": self.hash,
            "config": self.config,
            "result": self.result,
            "digest": self.digest,
            "created": self.created,
            **({"certificates": list(self.certificates)} if self.certificates else {}),
        }


def digest_of(key: str, config: str, result: str) -> str:
    """What proves that a record is as it was written."""
    return hashlib.sha256("\n".join((key, config, result)).encode()).hexdigest()


def summary_columns(config: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """What `list` shows and filters by; all of it follows from the record."""
    task = config["task"]
    name = task.get("function") if task["task"] == "boolean" else task["task"]
    length = task.get("T", task.get("L", config["architecture"].get("seq_len")))
    return {
        "task": name,
        "T": length,
        "m": config["m"],
        "seed": config["seed"],
        "depth": config["architecture"].get("depth", 2),
        "status": result["status"],
        "steps": result["steps"],
        "train_error": result["train"]["error"],
        "test_error": result["test"]["error"],
        "gap": result["gap"],
    }


class Store:
    """An open store. Several processes may have one file open and write to it."""

    def __init__(self, path: Path | str, *, create: bool = True, read_only: bool = False) -> None:
        self.path = Path(path)
        self.damaged: list[str] = []
        """Records that were left out when reading, and why."""
        if (read_only or not create) and not self.path.exists():
            raise StoreError(f"there is no store {self.path}: `boundcalc sweep smoke --store {self.path}` makes one")
        if not self.path.parent.is_dir():
            raise StoreError(f"cannot make {self.path}: there is no directory {self.path.parent}")
        with self._errors():
            self.connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
            self.connection.text_factory = lambda data: data.decode("utf-8", "replace")
            run = self.connection.execute
            with self._transaction() if not read_only else self._errors():
                ours = run("PRAGMA application_id").fetchone()[0] == _APPLICATION
                version = run("PRAGMA user_version").fetchone()[0]
                empty = not run("SELECT count(*) FROM sqlite_master").fetchone()[0]
                if empty and not read_only:
                    for statement in _TABLES:
                        run(statement)
                elif not ours:
                    raise StoreError(f"{self.path} is a SQLite file of another program: choose another --store")
                elif version != _SCHEMA:
                    raise StoreError(f"{self.path} has schema {version}; this version of boundcalc reads {_SCHEMA}")

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
        key, config = trial.hash, trial.to_json()
        texts = canonical(config), canonical(result)
        columns = {
            **dict(zip(("hash", "config", "result"), (key, *texts), strict=True)),
            **{"digest": digest_of(key, *texts), "created": time.time()},
            **summary_columns(config, result),
        }
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        with self._transaction():
            done = self.connection.execute(
                f"INSERT OR IGNORE INTO trials ({names}) VALUES ({marks})", tuple(columns.values())
            )
            if sweep:
                self.connection.execute("INSERT OR IGNORE INTO sweeps VALUES (?, ?)", (sweep, key))
        return done.rowcount == 1

    def add_certificate(self, issued: Issued, key: str) -> None:
        """Store what came of certifying a trial, a refusal too; what was there is left."""
        certificate = None if issued.certificate is None else issued.certificate.to_json()
        request = canonical(issued.request.to_json())
        content = canonical({"entry": issued.entry, "certificate": certificate})
        row = key, request, content, digest_of(key, request, content), time.time()
        with self._transaction():
            self.connection.execute("INSERT OR IGNORE INTO certificates VALUES (?, ?, ?, ?, ?)", row)

    def enrol(self, sweep: str, hashes: Iterable[str]) -> None:
        """Note that trials belong to a sweep, whatever process ran them."""
        with self._transaction():
            self.connection.executemany("INSERT OR IGNORE INTO sweeps VALUES (?, ?)", ((sweep, h) for h in hashes))

    def remove(self, hashes: Iterable[str]) -> int:
        """Forget trials and their certificates."""
        count = 0
        for key in hashes:
            with self._transaction():
                count += self.connection.execute("DELETE FROM trials WHERE hash = ?", (key,)).rowcount
                self.connection.execute("DELETE FROM sweeps WHERE hash = ?", (key,))
                self.connection.execute("DELETE FROM certificates WHERE hash = ?", (key,))
        return count

    # -- reading

    def hashes(self) -> set[str]:
        """Hashes of all stored trials."""
        return {row[0] for row in self._fetch_all("SELECT hash FROM trials")}

    def __len__(self) -> int:
        return int(self._fetch_all("SELECT count(*) FROM trials")[0][0])

    def certified(self) -> set[tuple[str, str]]:
        """Trials that have been certified, with the request as canonical JSON."""
        return {(row[0], row[1]) for row in self._fetch_all("SELECT hash, asked FROM certificates")}

    def sweeps(self) -> dict[str, int]:
        """Names of sweeps, and how many of their trials are stored."""
        return dict(
            self._fetch_all("SELECT name, count(*) FROM sweeps JOIN trials USING (hash) GROUP BY name ORDER BY name")
        )

    def named(self, prefix: str) -> str:
        """The one hash that begins so."""
        if not prefix or set(prefix) - set("0123456789abcdef"):
            raise InvalidSetting(f"a trial is named by the first digits of its hash, got {prefix!r}")
        matches = [key for key in self.hashes() if key.startswith(prefix)]
        if len(matches) != 1:
            what = "no trial begins" if not matches else f"{len(matches)} trials begin"
            raise InvalidSetting(f"{what} with {prefix!r}: see `boundcalc runs --store {self.path}`")
        return matches[0]

    def find(self, prefix: str) -> Record:
        """The one trial whose hash begins so."""
        records = list(self.records("hash = ?", (self.named(prefix),)))
        if not records:
            raise StoreError(f"store {self.path}: {self.damaged[-1]}")
        return records[0]

    def records(self, where: str = "1", values: tuple[Any, ...] = ()) -> Iterator[Record]:
        """Stored trials, in a fixed order; those that were changed are left out, and noted in `damaged`."""
        query = (
            f"SELECT hash, config, result, digest, created FROM trials WHERE {where} "
            "ORDER BY task, T, m, depth, seed, hash"
        )
        with self._errors():
            for key, config, result, digest, created in self.connection.execute(query, values):
                if digest_of(key, config, result) != digest:
                    self._leave_out(f"{key[:12]} was changed after it was written", key)
                    continue
                yield Record(key, json.loads(config), json.loads(result), digest, created, self._certificates(key))

    def _certificates(self, key: str) -> tuple[Mapping[str, Any], ...]:
        query = "SELECT asked, content, digest FROM certificates WHERE hash = ? ORDER BY asked"
        certificates: list[Mapping[str, Any]] = []
        for plan, content, digest in self._fetch_all(query, (key,)):
            if digest_of(key, plan, content) == digest:
                certificates.append({"asked": json.loads(plan), **json.loads(content), "digest": digest})
            else:
                self._leave_out(f"a certificate of {key[:12]} was changed after it was written", key)
        return tuple(certificates)

    def _leave_out(self, why: str, key: str) -> None:
        text = f"{why}: `boundcalc runs {key[:12]} --forget`, then train it again"
        if text not in self.damaged:
            self.damaged.append(text)

    def select(
        self, *, task: str | None = None, T: int | None = None, m: int | None = None, sweep: str | None = None
    ) -> Iterator[Record]:
        """Trials by task, T, m and sweep."""
        filters = {
            "task = ?": task,
            "T = ?": T,
            "m = ?": m,
            "hash IN (SELECT hash FROM sweeps WHERE name = ?)": sweep,
        }
        kept = {part: value for part, value in filters.items() if value is not None}
        return self.records(" AND ".join(["1", *kept]), tuple(kept.values()))

    def verify(self) -> list[str]:
        """What is wrong with the file, a record or a certificate; nothing where all is as it was written."""
        problems = [f"SQLite: {line}" for (line,) in self._fetch_all("PRAGMA integrity_check") if line != "ok"]
        for record in self.records():
            problems += [f"{record.hash[:12]}: {text}" for text in self._problems(record)]
        return problems + self.damaged

    def _problems(self, record: Record) -> Iterator[str]:
        from boundcalc.predictors.certificate import PredictorCertificate, verify_predictor

        try:
            if record.trial.hash != record.hash:
                yield "the hash is not that of its configuration (computed by another version?)"
        except InvalidSetting as error:
            yield f"the configuration cannot be read: {error}"
        for stored in record.certificates:
            try:
                if stored["certificate"] is not None:
                    verify_predictor(PredictorCertificate.from_json(stored["certificate"]))
            except BoundcalcError as error:
                yield f"a certificate does not hold: {error}"
