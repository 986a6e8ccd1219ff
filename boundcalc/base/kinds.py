"""The kinds of files this package writes, and how each is known again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.output import Kind, begins, holds, json_file, unchanged

if TYPE_CHECKING:
    from pathlib import Path

STORE_ID = 0x62636C64
"""What SQLite files of trials carry as their application."""


def _object(*needs: str, only: tuple[str, ...] | None = None, **values: str) -> Any:
    """JSON objects with some keys, no others than allowed, and values that begin so."""

    def fits(data: Any) -> bool:
        return (
            isinstance(data, Mapping)
            and set(needs) <= data.keys()
            and (only is None or data.keys() <= {*needs, *only})
            and all(str(data.get(key, "")).startswith(value) for key, value in values.items())
        )

    return fits


def _records(data: Any) -> bool:
    return isinstance(data, list) and all(_object("hash", "config", "result", "digest")(item) for item in data)


def _figure(path: Path) -> bool:
    """A figure's numbers, which carry their digest; the layout is that of the figure, not of `write_json`."""
    data = _parsed(path.read_text(encoding="utf-8"))
    if not _object("spec", "data", format="boundcalc-figure/")(data):
        return False
    return data.get("digest") == _digest(data["data"])


def with_digest(data: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object, and what tells whether anybody has changed it since."""
    rest = {key: value for key, value in data.items() if key != "digest"}
    return rest | {"digest": _digest(rest)}


def with_about(mapping: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping, what explains it, and what tells whether anybody has edited it since."""
    return {**mapping, "about": {**about, "digest": _digest(dict(mapping))}}


def _mapping(data: Any) -> bool:
    rest = {key: value for key, value in data.items() if key != "about"}
    return _object("architecture", "tensors")(rest) and data["about"]["digest"] == _digest(rest)


def _derivation(path: Path) -> bool:
    data = _parsed(path.read_text(encoding="utf-8"))
    return _object("steps", "digest")(data) and data == with_digest(data)


def _parsed(text: str | bytes) -> Any:
    import json

    return json.loads(text)


def _digest(data: Any) -> str:
    import hashlib  # where used: no command that writes nothing needs it
    import json

    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _store(path: Path) -> bool:
    """What names it may stand in the write-ahead log alone, beside the file, where a sweep was killed: then SQLite is asked."""
    with path.open("rb") as file:
        head = file.read(72)
    if not head.startswith(b"SQLite format 3\0"):
        return False
    return int.from_bytes(head[68:72]) == STORE_ID or _logged(path)


def _logged(path: Path) -> bool:
    """Whether a file with its log is a store, or one that was killed before it held anything."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return application == STORE_ID or not (application or tables)


def _weights(path: Path) -> bool:
    """Safetensors whose header, or .npz with a member, says that they are a model of this package."""
    if path.suffix == ".npz":
        return {"architecture.npy", "represents.npy"} <= _members(path)
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = _parsed(file.read(min(size, path.stat().st_size)))
    return header["__metadata__"]["format"].startswith("boundcalc-model/")


def _predictor(data: Any) -> bool:
    body = {key: value for key, value in data.items() if key != "sha256"}
    return _object(format="boundcalc-predictor-certificate/")(data) and data["sha256"] == _digest(body)


def _examples(path: Path) -> bool:
    return {"x.npy", "y.npy", "made_by.npy"} <= _members(path)


def _members(path: Path) -> set[str]:
    """The names of what an archive holds."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def _runs(path: Path) -> bool:
    return _object("of", "runs", only=())(_parsed(path.read_text(encoding="utf-8")))


def _journal(path: Path) -> bool:
    with path.open("rb") as file:
        return {"identity", "seed"} <= set(_parsed(file.readline()))


def _image(path: Path) -> bool:
    heads = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml", ".pgf": b"%%"}
    return begins(heads[path.suffix.lower()])(path) and holds(b"boundcalc")(path)


def safetensors_name(path: Path | str) -> None:
    """Refuse a name that promises another format than the one a model is written in."""
    name = os.path.basename(path)
    if os.path.splitext(name)[1] != ".safetensors":
        raise InvalidSetting(f"a model is written as safetensors, got {name!r}: name it *.safetensors")


CERTIFICATE = Kind("a certificate", json_file(_object("setting", format="boundcalc-certificate/")))
PREDICTOR = Kind("a certificate of a predictor", json_file(_predictor))
EXAMPLES = Kind("examples", _examples)
RUNS = Kind("the state of an unfinished run", _runs)
NORMS = Kind("a norms file", json_file(_object("budgets", only=("C", "measured", "failure"))))
MAPPING = Kind("a mapping that nobody has edited", json_file(_mapping))
SETTING = Kind("a setting", json_file(_object("architecture", "norms", only=())))
CURVES = Kind("the numbers of a figure of norms", json_file(_object("model", "curves", only=())))
FIGURE = Kind("the numbers of a figure", _figure)
IMAGE = Kind("a figure", _image)
WEIGHTS = Kind("weights", _weights)
STORE = Kind("a store of trials", _store)
JOURNAL = Kind("a journal of an interrupted run", _journal)
CSV = Kind("an export of trials", begins(b"hash,task,T,m,seed,"))
RECORDS = Kind("an export of trials", json_file(_records))
PARQUET = Kind("an export of trials", lambda path: begins(b"PAR1")(path) and holds(b"boundcalc")(path))
TEXT = Kind("a text", unchanged)
DERIVATION = Kind("a derivation", _derivation)
