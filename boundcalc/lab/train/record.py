"""A stored trial, what proves that it is as it was written, and what lists show of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boundcalc.lab.train.trial import Trial, canonical


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


def content_of(stored: Mapping[str, Any]) -> str:
    """What a stored certificate says, as it is digested."""
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
