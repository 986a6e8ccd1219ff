"""The page of `boundcalc explore`, made when the site is built and shown inside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def _make(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        from boundcalc.lab.explore import page

        (Path(app.outdir) / "explore-page.html").write_text(page.build(), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("build-finished", _make)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
