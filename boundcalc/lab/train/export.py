"""Stored trials as tables and files for other programs."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.output import write_text, writing
from boundcalc.base.strict_json import read_json
from boundcalc.lab.train.record import Record, summary_columns
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.store_file import StoreError


class DamagedRecord(UserWarning):
    """A record that is not as it was written, and was left out."""


FORMATS = ("csv", "json", "parquet")


def flat(record: Record) -> dict[str, Any]:
    """A trial as one row: what identifies it, and what was measured."""
    config, result = record.config, record.result
    rule = config["optimisation"]
    attention = (result.get("attention") or [{}])[-1]
    return {
        "hash": record.hash,
        **summary_columns(config, result),
        "s": config["task"].get("s"),
        "lr": rule["lr"],
        "batch": rule["batch"],
        "weight_decay": rule["weight_decay"],
        "reason": result["reason"],
        "train_loss": result["train"]["loss"],
        "test_loss": result["test"]["loss"],
        "n_test": result["test"]["n"],
        "test_low": result["test"]["interval"][0],
        "test_high": result["test"]["interval"][1],
        "attention_best_head": attention.get("best_head"),
        "attention_value_weighted": attention.get("value_weighted"),
        "cpu_seconds": result.get("cpu_seconds"),
        "device": result["device"],
    }


def export(records: Iterable[Record], form: str, path: Path | None = None) -> str:
    """Write (or return) trials as csv, json (complete, can be imported) or parquet."""
    if form == "json":
        text = json.dumps([record.to_json() for record in records], indent=1) + "\n"
    else:
        rows = [flat(record) for record in records]
        if form == "parquet":
            return _parquet(rows, path)
        text = _csv(rows)
    if path is None:
        return text
    write_text(path, text)
    return ""


def _csv(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue()


def _parquet(rows: list[dict[str, Any]], path: Path | None) -> str:
    if path is None:
        raise InvalidSetting("parquet is binary: give a file with -o runs.parquet")
    try:
        import pyarrow as pa  # type: ignore[import-not-found]
        import pyarrow.parquet as pq  # type: ignore[import-not-found]
    except ImportError:
        raise StoreError("parquet needs pyarrow: pip install pyarrow, or export csv") from None
    table = pa.Table.from_pylist(rows)
    with writing(path) as part:
        pq.write_table(table.replace_schema_metadata({"made by": "boundcalc"}), part)
    return ""


def is_database(path: Path) -> bool:
    """Whether a file is a store rather than an export of one."""
    try:
        with path.open("rb") as file:
            return file.read(16).startswith(b"SQLite format 3")
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from None


def read_records(path: Path) -> list[Mapping[str, Any]]:
    """The records of another store, or of a JSON export."""
    if is_database(path):
        with Store(path, create=False, read_only=True) as store:
            found: list[Mapping[str, Any]] = [record.to_json() for record in store.records()]
            for said in store.damaged:
                warnings.warn(f"{path}: left out a record: {said}", DamagedRecord, stacklevel=2)
            return found
    try:
        data = read_json(path, "an import", StoreError)
    except StoreError as error:
        raise StoreError(f"{path} is neither a store nor a JSON export of one: {error}") from None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise StoreError(f"{path} is not a JSON export: it must be a list of records")
    return data
