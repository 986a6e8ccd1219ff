"""Names of statements (T2, G4) lead to where they are proved, and arXiv numbers to their papers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from docutils import nodes

_TITLE = re.compile(r"([A-Z]+\d*[a-z]*['’]?)\. ")
_PAPER = r"arXiv:(?P<paper>\d{4}\.\d{5}(?:v\d+)?)"
_NOT_IN = (nodes.reference, nodes.literal, nodes.literal_block, nodes.title, nodes.math, nodes.math_block, nodes.raw)


def statements(doctree: nodes.document) -> dict[str, str]:
    """Names of statements and the anchors of their sections, on one page."""
    found: dict[str, str] = {}
    for section in doctree.findall(nodes.section):
        named = _TITLE.match(section[0].astext()) if section.children else None
        name = section.get("statement") or (named[1] if named is not None else "")
        if re.search(r"\d", name):  # H is a letter of formulas, too
            found[name] = section["ids"][0]
    return found


def linked(text: str, places: Mapping[str, str]) -> list[nodes.Node]:
    """A text with references instead of the names that have a place."""
    names = "|".join(re.escape(name) for name in sorted(places, key=len, reverse=True))
    pattern = re.compile(rf"{_PAPER}|(?<![\w.'’])(?P<name>{names or '(?!)'})(?![\w'’])")
    parts, at = list[nodes.Node](), 0
    for found in pattern.finditer(text):
        parts.append(nodes.Text(text[at : found.start()]))
        paper = found["paper"]
        where = f"https://arxiv.org/abs/{paper}" if paper else places[found["name"]]
        parts.append(nodes.reference("", found[0], refuri=where, internal=not paper))
        at = found.end()
    return [*parts, nodes.Text(text[at:])] if parts else []


def _collect(app: Any, doctree: nodes.document) -> None:
    if app.env.docname == "certificates" or app.env.docname.startswith("theory/"):
        for name, anchor in statements(doctree).items():
            app.env.metadata[app.env.docname][f"statement {name}"] = anchor


def _link(app: Any, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    places = {
        key.removeprefix("statement "): f"{app.builder.get_relative_uri(docname, page)}#{anchor}"
        for page, kept in app.env.metadata.items()
        for key, anchor in kept.items()
        if key.startswith("statement ")
    }
    for text in list(doctree.findall(nodes.Text)):
        inside, up = False, text.parent
        while up is not None and not inside:
            inside, up = isinstance(up, _NOT_IN), up.parent
        if not inside and (parts := linked(text.astext(), places)):
            text.parent.replace(text, parts)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("doctree-read", _collect)
    app.connect("doctree-resolved", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
