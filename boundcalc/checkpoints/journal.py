"""Finished measurements of an audit, kept in a file so that one which was interrupted goes on from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.maps import Found
from boundcalc.checkpoints.readers import Checkpoint
from boundcalc.checkpoints.task import Want
from boundcalc.norms.matrix import Measured
from boundcalc.setting import Architecture


def identity(checkpoint: Checkpoint, reference: Model | None, architecture: Architecture, want: Want) -> dict[str, Any]:
    """What was measured, and how: another audit does not go on from this one."""
    return {
        "journal": 1,
        "files": checkpoint.fingerprint,
        "reference": None if reference is None else reference.checkpoint.fingerprint,
        "architecture": architecture.to_json(),
        "want": asdict(want),
    }


class Journal:
    """A file of finished measurements, one JSON object per line, and the identity of what was measured first."""

    def __init__(self, path: Path | None, identity: dict[str, Any]) -> None:
        self.path = path
        self.identity = json.loads(json.dumps(identity))
        self.seed: int | None = None
        self.names: set[str] = set()
        self.found: Found = {}
        self._lines: list[str] = []
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        """Every whole line; the last may have been cut off by the interruption."""
        head, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
        try:
            first = json.loads(head or '{"identity": null, "seed": null}')
            known, seed = first["identity"], first["seed"]
        except (ValueError, KeyError, TypeError):
            raise InvalidSetting(f"{path} is no journal of an audit: name another file, or remove it") from None
        if known != self.identity:
            return
        try:
            self.seed = int(seed)
            for line in lines:
                entry = json.loads(line)
                found = {key: _measured(value) for key, value in entry["found"].items()}
                self.names.add(entry["task"])
                self.found |= found
                self._lines.append(line)
        except (ValueError, KeyError, TypeError):
            return

    def begin(self, seed: int) -> None:
        """Go on after the last whole line, or start afresh when the seed is another."""
        if seed != self.seed:
            self.seed, self.names, self.found, self._lines = seed, set(), {}, []
        if self.path is not None:
            head = json.dumps({"identity": self.identity, "seed": seed})
            output.write_text(self.path, "\n".join([head, *self._lines]) + "\n", force=True)

    def add(self, name: str, found: Found) -> None:
        """Keep one task's norms."""
        if self.path is None:
            return
        entry = {"task": name, "found": {key: _plain(m) for key, m in found.items()}}
        output.append_line(self.path, json.dumps(entry))

    def drop(self) -> None:
        """All is done: the journal is not needed any more."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _plain(measured: Measured) -> dict[str, Any]:
    return {key: value for key, value in asdict(measured).items() if value is not None}


def _measured(data: Mapping[str, Any]) -> Measured:
    values = dict(data)
    values["shape"] = tuple(values["shape"])
    if values.get("spectrum") is not None:
        values["spectrum"] = tuple(values["spectrum"])
    return Measured(**values)
