"""The page as one file: markup, style, script and data together, with a policy that lets in nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from importlib import metadata, resources
from typing import Any

from boundcalc.lab.explore import content
from boundcalc.setting import Setting

_SCRIPTS = ("state.js", "drawing.js", "page.js")
"""One script, in this order: what the page shows and where its numbers are from, how it draws, what can be done with it."""


def build(setting: Setting, *, points: Sequence[dict[str, Any]] = (), served: bool = False, base: str = "") -> str:
    """The whole page.

    Args:
        setting: where it starts; what the page has no field for stays as it is there.
        points: measured values, each {"axis": letter, "x": ..., "y": ..., "low": ..., "high": ...}.
        served: whether an engine answers behind it; else a table of checked values is computed now.
        base: options of `boundcalc eval` for what the page has no field for, with a space at the end.
    """
    start = content.letters(setting)
    theorems = content.theorems()
    formulas = ",\n".join(f"{json.dumps(t['name'])}: {t.pop('js')}" for t in theorems)
    tables = {} if served else content.tables(setting)
    data = {
        "start": start,
        "style": setting.architecture.style,
        "styles": content.STYLES if served else list(tables),
        "fields": {name: _field(name) for name in content.FIELDS},
        "extras": {name: _extra(name) for name in content.EXTRAS},
        "theorems": theorems,
        "tables": tables,
        "closed": content.has_closed_forms(setting),
        "points": list(points),
        "served": served,
        "base": base,
    }
    script = "\n".join(['"use strict";', f"const FORMULAS = {{{formulas}}};", *map(_read, _SCRIPTS)])
    style = _read("page.css")
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    about = (
        f"boundcalc {metadata.version('boundcalc')} · {content.describe(setting)} · the checked values come from its "
    )
    about += "interval checker, the curves from the same formulas in your browser's floating point; nothing is sent anywhere."
    page = _read("page.html")
    for name, value in {
        "POLICY": policy(script, style, served=served),
        "STYLE": style,
        "ABOUT": about,
        "DATA": text,
        "SCRIPT": script,
    }.items():
        page = page.replace(f"@{name}@", value)
    return page


def policy(script: str, style: str, *, served: bool) -> str:
    """The content policy: this script, this style, pictures the page makes itself; no requests but to its own server."""
    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{_hash(script)}'",
        "style-src": f"'sha256-{_hash(style)}'",
        "style-src-attr": "'none'",
        "img-src": "data: blob:",
        "connect-src": "'self'" if served else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _read(name: str) -> str:
    return resources.files("boundcalc.lab.explore").joinpath(name).read_text(encoding="utf-8")


def _field(name: str) -> dict[str, Any]:
    _, words, least, most, whole = content.FIELDS[name]
    symbol = {"gamma": "γ", "delta": "δ"}.get(name, name)
    many = most / least > 100 or not whole
    return {"words": words, "least": least, "most": most, "whole": whole, "log": many, "symbol": symbol}


def _extra(name: str) -> dict[str, Any]:
    value, words, least, most, whole = content.EXTRAS[name]
    wide = math.log10(most / least) > 1.7
    return {"words": words, "value": value, "least": least, "most": most, "whole": whole, "log": wide}
