"""Mathematics by KaTeX when the site is built, as MathML: no script, no font, no network.

It can be selected and read out.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.errors import ExtensionError

_START = """
  var katex = typeof module.exports.renderToString === "function" ? module.exports : globalThis.katex;
  (text, display) => katex.renderToString(text, {displayMode: display, output: "mathml", strict: "error"});
"""
_SPACE = '<mspace width="0.17em"></mspace>'
_AFTER = re.compile(r'(<mo>\u2061</mo>)(?!<mspace|<mo stretchy="false">|<mo fence="true">)')
_BEFORE = re.compile(r"(</(?:mi|mn|msup|msub|msubsup|mfrac|mrow)>)(<mi>[a-z]{2,}</mi><mo>\u2061</mo>)")
"""Browsers leave no space around the names of functions, where TeX does."""


@cache
def _katex() -> Any:
    """KaTeX's function, from the copy that sphinxcontrib-katex brings, in a JavaScript engine of its own."""
    import quickjs

    package = find_spec("sphinxcontrib.katex")
    if package is None or package.origin is None:
        raise ExtensionError("the site needs sphinxcontrib-katex: pip install -e '.[docs]'")
    engine = quickjs.Context()
    engine.eval("var module = {exports: {}}, exports = module.exports;")
    engine.eval((Path(package.origin).parent / "katex.min.js").read_text(encoding="utf-8"))
    return engine.eval(_START)


def mathml(latex: str, *, display: bool) -> str:
    """MathML of a formula; one that KaTeX does not know whole fails the build."""
    try:
        found = _katex()(latex.strip(), display).removeprefix('<span class="katex">').removesuffix("</span>")
    except Exception as error:
        raise ExtensionError(f"this formula is not LaTeX that KaTeX knows: {latex!r}: {error}") from None
    return _AFTER.sub(r"\1" + _SPACE, _BEFORE.sub(r"\1" + _SPACE + r"\2", found))


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), display=False))
    raise nodes.SkipNode


def _display(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula" tabindex="0">{mathml(node.astext(), display=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
