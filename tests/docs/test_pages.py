"""The documents: commands of their tables are understood, mathematics converts, links show titles."""

from __future__ import annotations

import re

import pytest

from tests.docs.commands import PAGES, ROOT, parsed, shown

LINES = [(page.name, line) for page in PAGES for line in shown(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("page", "line"), LINES)
def test_every_command_of_a_page_is_understood(page: str, line: str) -> None:
    assert parsed(line) is not None, page


def test_there_are_commands_and_one_with_a_wrong_option_is_seen() -> None:
    assert len(LINES) > 5
    assert shown("| `boundcalc eval --dpeth 2` | deep |\n| `boundcalc norms MODEL` | |") == ["boundcalc eval --dpeth 2"]
    with pytest.raises(Exception, match="dpeth"):
        parsed("boundcalc eval --dpeth 2")


def test_mathematics_becomes_mathml_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("quickjs")
    pytest.importorskip("sphinxcontrib.katex")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    import mathml  # type: ignore[import-not-found]

    assert "<mi>log</mi>" in mathml.mathml(r"\log N(\varepsilon)\le\Big\lceil a\Big\rceil", display=True)
    with pytest.raises(Exception, match="not LaTeX that KaTeX knows"):
        mathml.mathml(r"a \nosuchcommand b", display=False)
    theory = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    formulas = re.findall(r"^```math\n(.*?)^```", theory, re.DOTALL | re.MULTILINE)
    assert len(formulas) > 20
    for formula in formulas:
        assert "<math" in mathml.mathml(formula, display=True)


def bare_names(text: str) -> list[str]:
    """Links that show the name of a file in place of a title."""
    return re.findall(r"\[`?[\w/.-]+\.md`?\]\(", text)


def test_links_show_titles_of_pages() -> None:
    pages = [*PAGES, *(ROOT / "docs").rglob("*.md"), ROOT / "figures" / "README.md"]
    assert {page.name: found for page in pages if (found := bare_names(page.read_text(encoding="utf-8")))} == {}
    assert bare_names("See [a/theory.md](theory.md#k) or [Theory](theory.md).") == ["[a/theory.md]("]
