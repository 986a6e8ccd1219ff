"""The pages of docs/theory/: each shows some sections of docs/theory.md, which stays one text.

A line `<!-- sections: T; S -->` in a page stands for the sections whose headings begin so ("T: covers ..." or
"Limitations"). Links to theory.md, and within it, lead to the page that has the section.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from mdit_py_plugins.anchors.index import slugify
from sphinx.errors import ExtensionError

SOURCE = Path(__file__).parents[1] / "theory.md"
_MARK = re.compile(r"^<!-- sections: (.+?) -->$", re.MULTILINE)
_LINK = re.compile(r"\]\((?P<page>(?:\.\./)*theory\.md)?(?:#(?P<anchor>[\w-]+))?\)")
_BESIDE = re.compile(r"\]\(([\w-]+\.md)")
_ENTRY = re.compile(r"([A-Z]+\d*[a-z]*['’]?)\. (.+)", re.DOTALL)


@cache
def sections() -> dict[str, str]:
    """The sections of the text, by the first word of their headings or the heading itself."""
    parts = re.split(r"^## (.+)\n", SOURCE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        heading.partition(":")[0]: f"## {heading}\n{body}"
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


@cache
def homes() -> dict[str, str]:
    """The page (as docs/theory/NAME) of every heading's anchor; each section stands on one page."""
    found: dict[str, str] = {}
    shown: list[str] = []
    for page in sorted(SOURCE.with_suffix("").glob("*.md")):
        for mark in _MARK.findall(page.read_text(encoding="utf-8")):
            for name in (word.strip() for word in mark.split(";")):
                shown.append(name)
                text = sections().get(name)
                if text is None:
                    raise ExtensionError(f"{page.name}: theory.md has no section {name!r}")
                code = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
                for heading in re.findall(r"^#{2,4} (.+)$", code, re.MULTILINE):
                    found.setdefault(slugify(heading), f"theory/{page.stem}")
    if sorted(shown) != sorted(sections()):
        wrong = {*shown} ^ {*sections()} or {name for name in shown if shown.count(name) > 1}
        raise ExtensionError(f"sections of theory.md that are not on one page: {sorted(wrong)}")
    return found


def expanded(text: str, page: str) -> str:
    """A page with the sections that it asks for, and links that lead to where sections are."""
    inside = bool(_MARK.search(text))
    text = _MARK.sub(lambda mark: "\n".join(sections()[name.strip()] for name in mark[1].split(";")), text)

    def led(link: re.Match[str]) -> str:
        anchor = link["anchor"]
        if link["page"] is None and not (inside and anchor):
            return link[0]
        home = homes().get(anchor) if anchor else "theory/index"
        if home is None:
            raise ExtensionError(f"{page}: theory.md has no heading for #{anchor}")
        where = "" if home == page else posixpath.relpath(f"{home}.md", posixpath.dirname(page) or ".")
        return f"]({where}{f'#{anchor}' if anchor else ''})"

    if not inside:
        return _LINK.sub(led, text)
    mine = {path.name for path in SOURCE.with_suffix("").glob("*.md")}
    text = _LINK.sub(led, text)  # other pages lie next to theory.md, one folder above
    return _BESIDE.sub(lambda link: link[0] if link[1] in mine else f"](../{link[1]}", text)


def _read(app: Any, docname: str, source: list[str]) -> None:
    source[0] = expanded(source[0], docname)


def _name_first(app: Any, doctree: nodes.document) -> None:
    """Titles of statements: the name before the number, "Perceptron cover (T1)"."""
    if not app.env.docname.startswith("theory/"):
        return
    for section in doctree.findall(nodes.section):
        title = section[0]
        first = title.children[0] if isinstance(title, nodes.title) and title.children else None
        if not isinstance(title, nodes.title) or not isinstance(first, nodes.Text):
            continue
        named = _ENTRY.fullmatch(first.astext())
        if named is None or not re.search(r"\d|^PUB", named[1]):
            continue
        section["statement"] = named[1]
        title.replace(first, nodes.Text(named[2]))
        title += nodes.Text(f" ({named[1]})")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("source-read", _read)
    app.connect("doctree-read", _name_first, priority=100)  # before titles are collected
    return {"parallel_read_safe": True, "parallel_write_safe": True}
