"""How this library is installed: its version, its pages, its address, and what to type to add an extra."""

from __future__ import annotations

import json
from functools import cache
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


@cache
def _installed() -> metadata.Distribution | None:
    try:
        return metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return None


def version() -> str:
    """The version that runs."""
    from boundcalc import __version__

    return __version__


def url() -> str:
    """The project's address, if `[project.urls]` of pyproject.toml names one ("Source", or the first)."""
    found = _installed()
    listed = [] if found is None else found.metadata.get_all("Project-URL") or []
    urls = {name.strip(): address.strip() for name, _, address in (line.partition(",") for line in listed)}
    return urls.get("Source") or next(iter(urls.values()), "")


def origin() -> str:
    """Where pip took it from: a checkout, a wheel; "" where it does not say."""
    found = _installed()
    text = None if found is None else found.read_text("direct_url.json")
    address = urlparse(json.loads(text)["url"]) if text else None
    path = "" if address is None or address.scheme != "file" else unquote(address.path)
    return path if path and Path(path).exists() else ""


def install(extra: str) -> str:
    """What to type for an extra: from where the library itself came."""
    return f"pip install '{origin() or NAME}[{extra}]'"


def extra_of(library: str) -> str | None:
    """The extra that installs a library."""
    return next((extra for extra, names in EXTRAS.items() if library in names), None)


def pages() -> Path | None:
    """The folder of the documentation: in the package (wheels), or beside it (a checkout)."""
    package = Path(__file__).parents[1]
    for folder in (package / "docs", package.parent / "docs"):
        if (folder / "cli.md").is_file():
            return folder
    return None
