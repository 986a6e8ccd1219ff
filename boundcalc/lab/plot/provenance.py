"""Where a figure is from: a JSON beside the image, and the same in short inside it."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from boundcalc.base.documents import read_document
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.plot.data import FigureData
from boundcalc.lab.plot.spec import Spec
from boundcalc.setting import validate

_FORMAT = "boundcalc-figure/1"
_KEYS = ("format", "spec", "command", "caption", "alt", "versions", "digest", "data")
_LIBRARIES = ("boundcalc", "matplotlib", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Of what the numbers and the picture depend on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def digest(data: Mapping[str, Any]) -> str:
    """The hash of the data drawn."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def record(spec: Spec, data: FigureData, command: str, caption: str, alt: str) -> dict[str, Any]:
    """What is written beside the image."""
    content = json.loads(json.dumps(data.to_json(), allow_nan=False))
    return {
        "format": _FORMAT,
        "spec": json.loads(json.dumps(spec.but(store=Path(spec.store).name).to_json())),
        "command": command,
        "caption": caption,
        "alt": alt,
        "versions": versions(),
        "digest": digest(content),
        "data": content,
    }


def read(path: Path) -> tuple[Spec, FigureData, str]:
    """Specification, data and command of a figure's JSON; data that were changed are refused."""
    raw = validate.known_keys(f"{path}: a figure's JSON", read_document(path, "the figure's JSON"), _KEYS)
    if raw.get("format") != _FORMAT:
        raise InvalidSetting(f"{path} is no figure's JSON (format {_FORMAT}): boundcalc plot FIGURE makes one")
    missing = [key for key in ("spec", "data", "digest") if key not in raw]
    if missing:
        raise InvalidSetting(f"{path} has no {missing[0]!r}: it is incomplete, draw the figure anew")
    if digest(raw["data"]) != raw["digest"]:
        raise InvalidSetting(f"{path}: the data were changed after they were drawn (their hash differs); draw it anew")
    return Spec.from_json(raw["spec"]), FigureData.from_json(raw["data"]), str(raw.get("command", ""))


def titled(title: str, suffix: str) -> dict[str, Any]:
    """Metadata that say who drew an image, and of what."""
    creator = {".png": "Software", ".pdf": "Creator", ".svg": "Creator"}.get(suffix)
    dates = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(suffix, {})
    return {"Title": title, creator: "boundcalc", **dates} if creator else {}


def inside(found: Mapping[str, Any], suffix: str) -> dict[str, Any]:
    """Metadata for the image itself; without a date, so that the same data give the same file."""
    title = f"{found['spec']['figure']} by boundcalc {found['versions'].get('boundcalc', '')}"
    text = json.dumps(
        {
            "command": found["command"],
            "digest": found["digest"],
            "versions": found["versions"],
            "trials": len(found["data"]["trials"]),
        }
    )
    known = titled(title, suffix)
    return known | {"Subject" if suffix == ".pdf" else "Description": text} if known else {}
