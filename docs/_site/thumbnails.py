"""A grid of the figures: small pictures with their claims, each leading to the figure on the same page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from mdit_py_plugins.anchors.index import slugify

FIGURES = Path(__file__).parents[2] / "figures"


class Thumbnails(Directive):
    """Every figure of figures/README.md."""

    def run(self) -> list[nodes.Node]:
        """A container of linked pictures."""
        grid = nodes.container(classes=["thumbnails"])
        page = (FIGURES / "README.md").read_text(encoding="utf-8")
        for path in sorted(FIGURES.glob("*.json"), key=lambda path: page.index(f"({path.stem}.png)")):
            title = json.loads(path.read_text(encoding="utf-8"))["title"]
            link = nodes.reference("", "", refuri=f"#{slugify(title)}", internal=True)
            link += nodes.image(uri=f"../figures/{path.stem}.png", alt="")
            link += nodes.inline("", title)
            grid += nodes.paragraph("", "", link)
        return [grid]


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("thumbnails", Thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
