"""The page as one file: markup, style, script and data together, with a policy that lets in nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from importlib import metadata, resources

from boundcalc.base.rounding import confidence
from boundcalc.lab.explore import _checked as checked
from boundcalc.lab.explore import _content as content
from boundcalc.lab.figures.names import dark_theme, look
from boundcalc.statements.strategies import STRATEGIES

_SCRIPTS = ("state.js", "chart.js", "page.js")
"""One script, in this order: the numbers, the picture, the controls."""


def build(*, served: bool = False, progress: Callable[[int, int], None] = lambda done, total: None) -> str:
    """The whole page.

    Args:
        served: whether an engine answers behind it; else a grid of settings is checked now.
        progress: called with the number of settings checked so far, and of all.
    """
    theorems, delta = content.theorems(), content.FIXED["delta"]
    formulas = ",\n".join(f"{json.dumps(t['name'])}: {t.pop('js')}" for t in theorems)
    points = [checked.checked(content.SETTING)] if served else checked.grid(progress)
    data = {
        "start": content.letters(content.SETTING),
        "fixed": content.FIXED,
        "fields": {name: vars(field) for name, field in content.FIELDS.items()},
        "falling": content.FALLING,
        "presets": content.PRESETS,
        "strategies": {name: strategy.title for name, strategy in STRATEGIES.items()},
        "theorems": theorems,
        "points": checked.packed(points),
        "runs": content.measured_runs(),
        "served": served,
    }
    script = "\n".join(['"use strict";', f"const FORMULAS = {{{formulas}}};", *map(_read, _SCRIPTS)])
    style = _colours() + _read("page.css")
    about = (
        f"boundcalc {metadata.version('boundcalc')} · failure probability {delta:g} · Bounds and floors were confirmed "
        "by its interval checker; published formulas are computed by your browser. Nothing is sent anywhere."
    )
    page = _read("page.html")
    for name, value in {
        "POLICY": policy(script, style, served=served),
        "STYLE": style,
        "CONFIDENCE": confidence(delta),
        "ABOUT": about,
        "DATA": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        "SCRIPT": script,
    }.items():
        page = page.replace(f"@{name}@", value)
    return page


def policy(script: str, style: str, *, served: bool) -> str:
    """The content policy: this script, this style, pictures the page makes itself.

    No requests but to its own server.
    """
    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{_hash(script)}'",
        "style-src": f"'sha256-{_hash(style)}'",
        "style-src-attr": "'none'",
        "img-src": "data:",
        "connect-src": "'self'" if served else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def _colours() -> str:
    """The colours of curves: those of the figures, and their lighter counterparts in a dark theme."""
    keys = {"bound": "best", "floor": "gap-floor", "run": "run"}
    keys |= {f"c{place}": name for place, name in enumerate(content.SHOWN)}
    light = {name: look(key).colour for name, key in keys.items()}
    themes = [light, {name: dark_theme(colour) for name, colour in light.items()}]
    rules = [
        "".join(f"--{name}: {colour}; " for name, colour in theme.items()) + f"--band: {theme['bound']}2a"
        for theme in themes
    ]
    return f":root {{ {rules[0]} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {rules[1]} }} }}\n"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _read(name: str) -> str:
    return resources.files("boundcalc.lab.explore").joinpath(name).read_text(encoding="utf-8")
