"""Mathematics as MathML, made when the site is built: no script, no font, no network, and it can be selected and read out."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError

_SIZES = re.compile(r"\\[bB]igg?[lrm]?\s*(?=\\[lr](?:brace|ceil|floor|vert|Vert|angle)(?![a-zA-Z]))")
"""Sizes before delimiters with names, which the converter would print as they stand; MathML stretches these by itself."""
_FUNCTIONS = re.compile(r"\\(log|min|max|sup|inf|exp)\s*(?=[A-Za-z]|\\[A-Z])")
"""Names of functions before a letter, where the converter leaves no space."""
_WORDS = {r"\coloneqq": r"\mathrel{:=}", r"\operatorname*": r"\operatorname", r"\tfrac": r"\frac", r"\dfrac": r"\frac"}


def mathml(latex: str, *, display: bool) -> str:
    """MathML of a formula; one that cannot be converted whole fails the build."""
    text = _SIZES.sub("", latex)
    for word, plain in _WORDS.items():
        text = text.replace(word, plain)
    text = _FUNCTIONS.sub(r"\\\1\\,", text)
    found = convert(text, display="block" if display else "inline")
    shown = re.sub(r"<annotation.*?</annotation>|<[^>]*>", " ", found)
    if "\\" in shown.replace("\\;", ""):
        raise ExtensionError(f"not all of this formula became MathML: {latex!r} gave {' '.join(shown.split())!r}")
    return found


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), display=False))
    raise nodes.SkipNode


def _display(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{mathml(node.astext(), display=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
