"""How this library is installed, and what to type to add an extra."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

NAME = "boundcalc"
EXTRAS = {
    "train": ("torch", "joblib", "safetensors"),
    "weights": ("yaml",),
    "plot": ("matplotlib",),
    "ray": ("ray",),
    "dask": ("dask",),
}
"""The extras, and what of each is imported."""


def origin() -> str:
    """Where pip took it from: a checkout, a wheel; "" where it does not say."""
    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        text = None
    address = urlparse(json.loads(text)["url"]) if text else None
    path = "" if address is None or address.scheme != "file" else unquote(address.path)
    return path if path and Path(path).exists() else ""


def install(extra: str) -> str:
    """What to type for an extra: from where the library itself came."""
    return f"pip install '{origin() or NAME}[{extra}]'"


def extra_of(library: str) -> str | None:
    """The extra that installs a library."""
    return next((extra for extra, names in EXTRAS.items() if library in names), None)
