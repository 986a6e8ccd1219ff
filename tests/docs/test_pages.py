"""The documents: their commands are understood, their Python runs, and the site is built from them without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commands import PAGES, ROOT, parsed, shown

LINES = [(page.name, line) for page in PAGES for line in shown(page.read_text(encoding="utf-8"))]
BLOCKS = [
    (page.name, number, block)
    for page in PAGES
    if page.name != "tutorial.md"  # which runs when the site is built
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    )
]


@pytest.mark.parametrize(("page", "line"), LINES)
def test_every_command_of_a_page_is_understood(page: str, line: str) -> None:
    assert parsed(line) is not None, page


def test_there_are_commands_and_one_with_a_wrong_option_is_seen() -> None:
    assert len(LINES) > 40
    assert shown("```sh\nboundcalc eval --dpeth 2  # deep\n```") == ["boundcalc eval --dpeth 2"]
    with pytest.raises(Exception, match="dpeth"):
        parsed("boundcalc eval --dpeth 2")
    assert shown("```sh\nboundcalc norms MODEL\n```") == []


@pytest.mark.parametrize(("page", "number", "block"), BLOCKS)
def test_python_of_a_page_is_python(page: str, number: int, block: str) -> None:
    compile(block, f"{page}, block {number}", "exec")


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_for_nothing(tmp_path: Path) -> None:
    for module in ("sphinx", "myst_parser", "furo", "latex2mathml"):
        pytest.importorskip(module)
    words = [sys.executable, "-m", "sphinx", "-q", "-W", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for page in tmp_path.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"(?:src|<link[^>]*href)=\"https?://", text) == [], page
    assert (tmp_path / "theory.html").read_text(encoding="utf-8").count("<math") > 500


def test_mathematics_becomes_mathml_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("latex2mathml")
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    import mathml  # type: ignore[import-not-found]

    assert "<mi>log</mi>" in mathml.mathml(r"\log N(\varepsilon)\le\Big\lceil a\Big\rceil", display=True)
    with pytest.raises(Exception, match="not all of this formula became MathML"):
        mathml.mathml(r"a \nosuchcommand b", display=False)
    theory = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    formulas = re.findall(r"^```math\n(.*?)^```", theory, re.DOTALL | re.MULTILINE)
    assert len(formulas) > 20
    for formula in formulas:
        assert "<math" in mathml.mathml(formula, display=True)
