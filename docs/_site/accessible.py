"""What the theme leaves out for those who do not see or point: headings, landmarks, keys for code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_CHANGES = {
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Site">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    "<pre>": '<pre tabindex="0">',  # which scroll where lines are long
    "<pre class": '<pre tabindex="0" class',
}


def accessible(page: str) -> str:
    """A page of HTML with what is missing."""
    for given, better in _CHANGES.items():
        page = page.replace(given, better)
    return page


def _change(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            path.write_text(accessible(path.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect(
        "build-finished", _change, priority=400
    )  # before the page of `explore`, which has its own care, is added
    return {"parallel_read_safe": True, "parallel_write_safe": True}
