"""The extras of this library, and what to type to add one."""

from __future__ import annotations

EXTRA_OF = {name: "train" for name in ("torch", "joblib", "safetensors")} | {"matplotlib": "plot"}
EXTRA_OF |= {name: name for name in ("ray", "dask")}


def install(extra: str) -> str:
    """What to type for an extra."""
    return f"in a clone of boundcalc, pip install '.[{extra}]'"


def extra_of(library: str) -> str | None:
    """The extra that installs a library."""
    return EXTRA_OF.get(library)
