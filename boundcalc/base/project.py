"""How this library is installed, and what to type to add an extra."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

EXTRAS = {
    "train": ("torch", "joblib", "safetensors"),
    "plot": ("matplotlib",),
    "ray": ("ray",),
    "dask": ("dask",),
}
"""The extras, and what of each is imported."""


def install(extra: str) -> str:
    """What to type for an extra: from where pip took the library (a checkout, a wheel), where that is recorded."""
    try:
        text = metadata.distribution("boundcalc").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        text = None
    address = urlparse(json.loads(text)["url"] if text else "")
    path = unquote(address.path) if address.scheme == "file" else ""
    return f"pip install '{path if path and Path(path).exists() else 'boundcalc'}[{extra}]'"


def extra_of(library: str) -> str | None:
    """The extra that installs a library."""
    return next((extra for extra, names in EXTRAS.items() if library in names), None)
