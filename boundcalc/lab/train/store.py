"""Results in one SQLite file: a transaction per trial, so what was finished is there whatever happens next."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from boundcalc.base.errors import BoundcalcError
from boundcalc.lab.train.trial import Trial, canonical
from boundcalc.setting import Architecture

if TYPE_CHECKING:
    from boundcalc.lab.train.certify import Issued

_WAIT = 60.0
"""Seconds to wait for another writer."""
_MARKS = {"application_id": 0x62636C64, "user_version": 4}
_TABLES = (
    *(f"PRAGMA {name} = {value}" for name, value in _MARKS.items()),
    "CREATE TABLE IF NOT EXISTS trials (hash TEXT PRIMARY KEY, config TEXT, result TEXT)",
    "CREATE TABLE IF NOT EXISTS sweeps (name TEXT, hash TEXT, PRIMARY KEY (name, hash)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS certificates (hash TEXT, asked TEXT, content TEXT, PRIMARY KEY (hash, asked))",
)
"""What makes a new store; its marks come first, so that two processes may make it at once."""


class StoreError(BoundcalcError):
    """A store that cannot be read or written."""


@dataclass(frozen=True)
class Record:
    """A stored trial, with the certificates of what its data taught: request, entry in short, certificate or None."""

    hash: str
    config: dict[str, Any]
    result: dict[str, Any]
    certificates: tuple[Mapping[str, Any], ...] = ()

    @property
    def trial(self) -> Trial:
        """The trial, ready to be run again."""
        return Trial.from_json(self.config)

    @property
    def places(self) -> dict[str, Any]:
        """Where it lies on every axis that trials are listed, chosen and drawn by; T is L of a latent-variable task."""
        task, model, rule = (self.config[part] for part in ("task", "architecture", "optimisation"))
        return {
            "task": task.get("function", task["task"]),
            "T": int(task.get("T", task.get("L", model["seq_len"] - 1))),
            "s": task.get("s"),
            "law": task.get("law", "balanced"),
            "m": self.config["m"],
            "depth": int(model.get("depth", Architecture.depth)),
            "d": model.get("d", Architecture.d),
            **{name: rule[name] for name in ("lr", "batch", "steps")},
            "seed": self.config["seed"],
        }


class Store:
    """An open store. Several processes may have one file open and write to it."""

    def __init__(self, path: Path | str, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.exists():
            raise StoreError(f"there is no store {self.path}: `boundcalc sweep smoke --store {self.path}` makes one")
        with self._errors():
            self.connection = sqlite3.connect(self.path, timeout=_WAIT)
            if create and not self._rows("SELECT * FROM sqlite_master LIMIT 1"):
                for statement in _TABLES:
                    self.connection.execute(statement)
        if {name: self._rows(f"PRAGMA {name}")[0][0] for name in _MARKS} != _MARKS:
            raise StoreError(f"{self.path} is of another program, or version of boundcalc: choose another --store")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Name the store in errors of SQLite and of the disk."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"store {self.path}: {error}; trials that were finished are kept") from error

    def _rows(self, query: str, *values: str) -> list[Any]:
        with self._errors():
            return self.connection.execute(query, values).fetchall()

    def _insert(self, table: str, rows: Iterable[tuple[str, ...]]) -> int:
        """Add rows in one transaction, and count them; a row whose key is there already is left."""
        values = "(?, ?)" if table == "sweeps" else "(?, ?, ?)"
        with self._errors(), self.connection:
            done = self.connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES {values}", rows)
        return done.rowcount

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def add(self, trial: Trial, result: Mapping[str, Any]) -> bool:
        """Store a finished trial; False when it was there already."""
        return self._insert("trials", [(trial.hash, canonical(trial.to_json()), canonical(result))]) == 1

    def add_certificate(self, issued: Issued, key: str) -> None:
        """Store what came of certifying a trial, a refusal too; what was there is left."""
        certificate = None if issued.certificate is None else issued.certificate.to_json()
        content = canonical({"entry": issued.entry, "certificate": certificate})
        self._insert("certificates", [(key, canonical(issued.request.to_json()), content)])

    def enrol(self, sweep: str, hashes: Iterable[str]) -> None:
        """Note which trials belong to a sweep, stored yet or not."""
        self._insert("sweeps", ((sweep, key) for key in hashes))

    def hashes(self) -> set[str]:
        """Hashes of all stored trials."""
        return {key for (key,) in self._rows("SELECT hash FROM trials")}

    def certified(self) -> set[tuple[str, str]]:
        """Trials that have been certified, with the request as canonical JSON."""
        return set(self._rows("SELECT hash, asked FROM certificates"))

    def sweeps(self) -> dict[str, int]:
        """Names of sweeps, and how many of their trials are stored."""
        return dict(
            self._rows("SELECT name, count(*) FROM sweeps JOIN trials USING (hash) GROUP BY name ORDER BY name")
        )

    def records(self, *, sweep: str = "") -> list[Record]:
        """Stored trials, or those of a sweep, by task, T, m, depth and seed."""
        where = "WHERE hash IN (SELECT hash FROM sweeps WHERE name = ?)" if sweep else "WHERE ? = ''"
        certificates: dict[str, list[Mapping[str, Any]]] = {}
        query = f"SELECT hash, asked, content FROM certificates {where} ORDER BY asked"
        for key, request, content in self._rows(query, sweep):
            certificates.setdefault(key, []).append({"asked": json.loads(request), **json.loads(content)})
        records = [
            Record(key, json.loads(config), json.loads(result), tuple(certificates.get(key, ())))
            for key, config, result in self._rows(f"SELECT hash, config, result FROM trials {where}", sweep)
        ]
        order = itemgetter("task", "T", "m", "depth", "seed")
        return sorted(records, key=lambda record: (order(record.places), record.hash))
