"""Results in one SQLite file: a transaction per trial, so what was finished is there whatever happens next."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.kinds import STORE_ID, WEIGHTS
from boundcalc.base.output import write_bytes
from boundcalc.lab.train.own_row import with_own_row
from boundcalc.lab.train.trial import Trial, canonical

if TYPE_CHECKING:
    from boundcalc.lab.train.certify import Made

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
SCHEMA = len(_MIGRATIONS)
"""The schema this version writes; older files are brought up to it, newer ones are refused."""


@dataclass(frozen=True)
class Record:
    """A stored trial."""

    hash: str
    config: dict[str, Any]
    result: dict[str, Any]
    digest: str
    created: float
    weights: str | None
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
            "weights": self.weights,
            **({"certificates": list(self.certificates)} if self.certificates else {}),
        }


def digest_of(key: str, config: str, result: str) -> str:
    """What proves that a record is as it was written."""
    return hashlib.sha256("\n".join((key, config, result)).encode()).hexdigest()


def _content(stored: Mapping[str, Any]) -> str:
    return canonical({"entry": stored["entry"], "certificate": stored["certificate"]})


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


_S = "json_extract(config, '$.task.s')"
_LAW = "coalesce(json_extract(config, '$.task.law'), 'balanced')"


class Store:
    """An open store. Several processes may have one file open and write to it."""

    def __init__(self, path: Path | str, *, create: bool = True, read_only: bool = False) -> None:
        self.path = Path(path)
        self.damaged: list[str] = []
        """Records that were left out when reading, and why."""
        create = create and not read_only
        if not create and not self.path.exists():
            raise StoreError(f"there is no store {self.path}: `boundcalc sweep smoke --store {self.path}` makes one")
        if not self.path.parent.is_dir():
            raise StoreError(f"cannot make {self.path}: there is no directory {self.path.parent}")
        with self._explained():
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
        application = int(run("PRAGMA application_id").fetchone()[0])
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
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
        with self._transaction():
            version = int(self.connection.execute("PRAGMA user_version").fetchone()[0])  # another may have been first
            for number in range(version + 1, SCHEMA + 1):
                for statement in _MIGRATIONS[number - 1]:
                    self.connection.execute(statement)
                if number in _AFTER:
                    _AFTER[number](self.connection)
            self.connection.execute(f"PRAGMA application_id = {STORE_ID}")
            self.connection.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
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

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    # -- writing

    def add(
        self, trial: Trial, result: Mapping[str, Any], *, sweep: str = "", weights: Mapping[str, Any] | None = None
    ) -> bool:
        """Store a finished trial; False when it was there already."""
        name = None
        if weights is not None:
            with self._explained():
                name = self._write_weights(trial, weights)
        return self._insert(trial.hash, canonical(trial.to_json()), canonical(result), time.time(), name, sweep)

    def _insert(self, key: str, config: str, result: str, created: float, weights: str | None, sweep: str = "") -> bool:
        columns = {
            "hash": key,
            "config": config,
            "result": result,
            "digest": digest_of(key, config, result),
            "created": created,
            "weights": weights,
            **summary_columns(json.loads(config), json.loads(result)),
        }
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        with self._explained(), self._transaction():
            done = self.connection.execute(
                f"INSERT OR IGNORE INTO trials ({names}) VALUES ({marks})",
                tuple(columns.values()),
            )
            if sweep:
                self.connection.execute("INSERT OR IGNORE INTO sweeps VALUES (?, ?)", (sweep, key))
        return done.rowcount == 1

    def add_certificate(self, made: Made, key: str) -> None:
        """Store what came of certifying a trial, a refusal too; what was there is left."""
        certificate = None if made.certificate is None else made.certificate.to_json()
        self._insert_certificate(key, made.asked.to_json(), made.entry, certificate)

    def _insert_certificate(
        self, key: str, asked: Mapping[str, Any], entry: Mapping[str, Any], certificate: Mapping[str, Any] | None
    ) -> None:
        wanted, content = canonical(asked), _content({"entry": entry, "certificate": certificate})
        with self._explained(), self._transaction():
            self.connection.execute(
                "INSERT OR IGNORE INTO certificates VALUES (?, ?, ?, ?, ?)",
                (key, wanted, content, digest_of(key, wanted, content), time.time()),
            )

    def certified(self) -> set[tuple[str, str]]:
        """Trials that have been certified, with what was asked for as canonical JSON."""
        with self._explained():
            return {(row[0], row[1]) for row in self.connection.execute("SELECT hash, asked FROM certificates")}

    def _certificates(self, key: str) -> tuple[Mapping[str, Any], ...]:
        query = "SELECT asked, content, digest FROM certificates WHERE hash = ? ORDER BY asked"
        found: list[Mapping[str, Any]] = []
        for asked, content, digest in self.connection.execute(query, (key,)).fetchall():
            if digest_of(key, asked, content) == digest:
                found.append({"asked": json.loads(asked), **json.loads(content), "digest": digest})
                continue
            said = f"a certificate of {key[:12]} was changed after it was written: `boundcalc runs rm {key[:12]}`"
            if said not in self.damaged:
                self.damaged.append(said)
        return tuple(found)

    def enrol(self, sweep: str, hashes: Iterable[str]) -> None:
        """Note that trials belong to a sweep, whoever ran them."""
        with self._explained(), self._transaction():
            self.connection.executemany("INSERT OR IGNORE INTO sweeps VALUES (?, ?)", ((sweep, h) for h in hashes))

    @property
    def weights_folder(self) -> Path:
        """Where kept weights lie, beside the store."""
        return self.path.with_name(self.path.name + ".weights")

    def _write_weights(self, trial: Trial, weights: Mapping[str, Any]) -> str:
        from safetensors.numpy import save

        self.weights_folder.mkdir(exist_ok=True)
        name = f"{trial.hash}.safetensors"
        metadata = {
            "format": "boundcalc-model/1",
            "architecture": json.dumps(with_own_row(trial.architecture, trial.task.shape).to_json()),
            "trial": trial.hash,
        }
        data = save(dict(weights), metadata)
        write_bytes(self.weights_folder / name, data, WEIGHTS)
        return f"{name} {hashlib.sha256(data).hexdigest()}"

    def remove(self, hashes: Iterable[str]) -> int:
        """Forget trials and their weights."""
        count = 0
        for key in hashes:
            with self._explained(), self._transaction():
                count += self.connection.execute("DELETE FROM trials WHERE hash = ?", (key,)).rowcount
                self.connection.execute("DELETE FROM sweeps WHERE hash = ?", (key,))
                self.connection.execute("DELETE FROM certificates WHERE hash = ?", (key,))
            (self.weights_folder / f"{key}.safetensors").unlink(missing_ok=True)
        return count

    def merge(self, records: Iterable[Mapping[str, Any]]) -> int:
        """Take over records of another store or export; damaged ones are refused, before anything is written."""
        checked: list[tuple[str, str, str, float]] = []
        certified: list[tuple[str, Mapping[str, Any]]] = []
        for record in records:
            try:
                config, result = canonical(record["config"]), canonical(record["result"])
                key, created = str(record["hash"]), float(record["created"])
                sound = digest_of(key, config, result) == record["digest"]
            except (KeyError, TypeError, ValueError) as error:
                raise StoreError(f"a record to import is malformed: {error!r}") from None
            if not sound:
                raise StoreError(f"the record {key[:12]} to import has been changed since it was written")
            checked.append((key, config, result, created))
            for stored in record.get("certificates", ()):
                if not isinstance(stored, Mapping) or set(stored) != {"asked", "entry", "certificate", "digest"}:
                    raise StoreError(f"a certificate of the record {key[:12]} to import is malformed")
                if digest_of(key, canonical(stored["asked"]), _content(stored)) != stored["digest"]:
                    raise StoreError(
                        f"a certificate of the record {key[:12]} to import was changed since it was written"
                    )
                certified.append((key, stored))
        for key, stored in certified:
            self._insert_certificate(key, stored["asked"], stored["entry"], stored["certificate"])
        return sum(self._insert(*record, weights=None) for record in checked)

    # -- reading

    def hashes(self) -> set[str]:
        """What is there."""
        with self._explained():
            return {row[0] for row in self.connection.execute("SELECT hash FROM trials")}

    def __len__(self) -> int:
        with self._explained():
            return int(self.connection.execute("SELECT count(*) FROM trials").fetchone()[0])

    def named(self, prefix: str) -> str:
        """The one hash that begins so."""
        if not prefix or set(prefix) - set("0123456789abcdef"):
            raise InvalidSetting(f"a trial is named by the first digits of its hash, got {prefix!r}")
        found = [key for key in self.hashes() if key.startswith(prefix)]
        if len(found) != 1:
            what = "no trial begins" if not found else f"{len(found)} trials begin"
            raise InvalidSetting(f"{what} with {prefix!r}: see `boundcalc runs list --store {self.path}`")
        return found[0]

    def find(self, prefix: str) -> Record:
        """The one trial whose hash begins so."""
        records = list(self.records("hash = ?", (self.named(prefix),)))
        if not records:
            raise StoreError(f"store {self.path}: {self.damaged[-1]}")
        return records[0]

    def records(self, where: str = "1", values: tuple[Any, ...] = ()) -> Iterator[Record]:
        """Stored trials, in a fixed order; those that are not as they were written are left out, and noted in `damaged`."""
        query = (
            f"SELECT hash, config, result, digest, created, weights FROM trials WHERE {where} "
            "ORDER BY task, T, m, depth, seed, hash"
        )
        with self._explained():
            for key, config, result, digest, created, weights in self.connection.execute(query, values):
                if digest_of(key, config, result) == digest:
                    yield Record(
                        key, json.loads(config), json.loads(result), digest, created, weights, self._certificates(key)
                    )
                    continue
                said = (
                    f"{key[:12]} was changed after it was written: `boundcalc runs rm {key[:12]}`, then train it again"
                )
                if said not in self.damaged:
                    self.damaged.append(said)

    def select(
        self,
        *,
        task: str | None = None,
        T: int | None = None,
        m: int | None = None,
        s: int | None = None,
        law: str | None = None,
        sweep: str | Sequence[str] | None = None,
        status: str | None = None,
    ) -> Iterator[Record]:
        """Trials by what they are; of several sweeps, those of any."""
        parts: list[str] = ["1"]
        values: list[Any] = []
        of_task = (("task", task), ("T", T), ("m", m), ("status", status), (_S, s), (_LAW, law))
        for name, value in of_task:
            if value is not None:
                parts.append(f"{name} = ?")
                values.append(value)
        if sweep is not None:
            names = [sweep] if isinstance(sweep, str) else list(sweep)
            parts.append(f"hash IN (SELECT hash FROM sweeps WHERE name IN ({', '.join('?' * len(names))}))")
            values += names
        return self.records(" AND ".join(parts), tuple(values))

    def tasks(self) -> dict[str, int]:
        """Names of tasks, and how many trials are here of each."""
        with self._explained():
            return dict(self.connection.execute("SELECT task, count(*) FROM trials GROUP BY task ORDER BY task"))

    def sweeps(self) -> dict[str, int]:
        """Names of sweeps, and how many of their trials are here."""
        query = "SELECT name, count(*) FROM sweeps JOIN trials USING (hash) GROUP BY name ORDER BY name"
        with self._explained():
            return dict(self.connection.execute(query).fetchall())

    def verify(self) -> list[str]:
        """What is wrong with the store: nothing, one hopes."""
        problems: list[str] = []
        with self._explained():
            for (line,) in self.connection.execute("PRAGMA integrity_check"):
                if line != "ok":
                    problems.append(f"SQLite: {line}")
            rows = self.connection.execute("SELECT hash, config, result, digest, weights FROM trials").fetchall()
            certificates = self.connection.execute("SELECT hash, asked, content, digest FROM certificates").fetchall()
        for key, asked, content, digest in certificates:
            if digest_of(key, asked, content) != digest:
                problems.append(f"{key[:12]}: a certificate was changed after it was written")
                continue
            problems += [f"{key[:12]}: {text}" for text in _wrong_with(json.loads(content)["certificate"])]
        for key, config, result, digest, weights in rows:
            problems += [f"{key[:12]}: {text}" for text in self._problems(key, config, result, digest, weights)]
        return problems

    def _problems(self, key: str, config: str, result: str, digest: str, weights: str | None) -> Iterator[str]:
        if digest_of(key, config, result) != digest:
            yield "the record was changed after it was written"
            return
        try:
            if Trial.from_json(json.loads(config)).hash != key:
                yield "the hash is not that of its configuration (computed by another version?)"
        except InvalidSetting as error:
            yield f"the configuration cannot be read: {error}"
        if weights:
            name, _, wanted = weights.partition(" ")
            try:
                if hashlib.sha256((self.weights_folder / name).read_bytes()).hexdigest() != wanted:
                    yield f"the weights {name} were changed"
            except OSError:
                yield f"the weights {name} are missing"


def _wrong_with(certificate: Mapping[str, Any] | None) -> Iterator[str]:
    """What is wrong with a stored certificate's number: it is derived from its facts again."""
    from boundcalc.predictors.certificate import PredictorCertificate
    from boundcalc.predictors.verify import verify_predictor

    if certificate is None:
        return
    try:
        verify_predictor(PredictorCertificate.from_json(certificate))
    except BoundcalcError as error:
        yield f"a certificate does not hold: {error}"


def _free(path: Path) -> int:
    try:
        stats = os.statvfs(path.parent)
    except OSError:
        return 2**62
    return stats.f_bavail * stats.f_frsize
