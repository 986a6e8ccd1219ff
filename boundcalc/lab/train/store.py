"""Results in one SQLite file: a transaction per trial, so what was finished is there whatever happens next."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.output import write_bytes
from boundcalc.lab.train.own_row import with_own_row
from boundcalc.lab.train.record import Record, content_of, digest_of, summary_columns
from boundcalc.lab.train.store_file import StoreError, StoreFile
from boundcalc.lab.train.trial import Trial, canonical

if TYPE_CHECKING:
    from boundcalc.lab.train.certify import Made

_S = "json_extract(config, '$.task.s')"
_LAW = "coalesce(json_extract(config, '$.task.law'), 'balanced')"


class Store(StoreFile):
    """An open store. Several processes may have one file open and write to it."""

    def __init__(self, path: Path | str, *, create: bool = True, read_only: bool = False) -> None:
        self.damaged: list[str] = []
        """Records that were left out when reading, and why."""
        super().__init__(path, create=create, read_only=read_only)

    # -- writing

    def add(
        self, trial: Trial, result: Mapping[str, Any], *, sweep: str = "", weights: Mapping[str, Any] | None = None
    ) -> bool:
        """Store a finished trial; False when it was there already."""
        name = None
        if weights is not None:
            with self.explained():
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
        with self.explained(), self.transaction():
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
        wanted, content = canonical(asked), content_of({"entry": entry, "certificate": certificate})
        with self.explained(), self.transaction():
            self.connection.execute(
                "INSERT OR IGNORE INTO certificates VALUES (?, ?, ?, ?, ?)",
                (key, wanted, content, digest_of(key, wanted, content), time.time()),
            )

    def certified(self) -> set[tuple[str, str]]:
        """Trials that have been certified, with what was asked for as canonical JSON."""
        with self.explained():
            return {(row[0], row[1]) for row in self.connection.execute("SELECT hash, asked FROM certificates")}

    def _certificates(self, key: str) -> tuple[Mapping[str, Any], ...]:
        query = "SELECT asked, content, digest FROM certificates WHERE hash = ? ORDER BY asked"
        found: list[Mapping[str, Any]] = []
        for asked, content, digest in self.connection.execute(query, (key,)).fetchall():
            if digest_of(key, asked, content) == digest:
                found.append({"asked": json.loads(asked), **json.loads(content), "digest": digest})
                continue
            self._left_out(
                f"a certificate of {key[:12]} was changed after it was written: `boundcalc runs rm {key[:12]}`"
            )
        return tuple(found)

    def _left_out(self, said: str) -> None:
        if said not in self.damaged:
            self.damaged.append(said)

    def enrol(self, sweep: str, hashes: Iterable[str]) -> None:
        """Note that trials belong to a sweep, whoever ran them."""
        with self.explained(), self.transaction():
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
        write_bytes(self.weights_folder / name, data, force=True)
        return f"{name} {hashlib.sha256(data).hexdigest()}"

    def remove(self, hashes: Iterable[str]) -> int:
        """Forget trials and their weights."""
        count = 0
        for key in hashes:
            with self.explained(), self.transaction():
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
                if digest_of(key, canonical(stored["asked"]), content_of(stored)) != stored["digest"]:
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
        with self.explained():
            return {row[0] for row in self.connection.execute("SELECT hash FROM trials")}

    def __len__(self) -> int:
        with self.explained():
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
        with self.explained():
            for key, config, result, digest, created, weights in self.connection.execute(query, values):
                if digest_of(key, config, result) == digest:
                    yield Record(
                        key, json.loads(config), json.loads(result), digest, created, weights, self._certificates(key)
                    )
                    continue
                again = f"`boundcalc runs rm {key[:12]}`, then train it again"
                self._left_out(f"{key[:12]} was changed after it was written: {again}")

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
        with self.explained():
            return dict(self.connection.execute("SELECT task, count(*) FROM trials GROUP BY task ORDER BY task"))

    def sweeps(self) -> dict[str, int]:
        """Names of sweeps, and how many of their trials are here."""
        query = "SELECT name, count(*) FROM sweeps JOIN trials USING (hash) GROUP BY name ORDER BY name"
        with self.explained():
            return dict(self.connection.execute(query).fetchall())

    def verify(self) -> list[str]:
        """What is wrong with the store: nothing, one hopes."""
        problems: list[str] = []
        with self.explained():
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
