"""The site as built: whole, linked, silent, and in reach of everyone.

`BOUNDCALC_SITE` names one that is built already.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from boundcalc.base.theory import papers
from tests.docs.commands import PAGES, ROOT
from tests.lab.explore import axe
from tests.lab.explore.browser import Browser
from tests.readme.test_readme import ANSWERS

NEEDED = ("sphinx", "myst_parser", "furo", "quickjs", "sphinxcontrib.katex")
ADDRESSES = {
    "https://arxiv.org/abs/": "papers, by the numbers of docs/theory.md",
    "https://keepachangelog.com/en/1.1.0/": "the form of the changelog",
    "https://github.com/pradyunsg/furo": "the theme, which names itself below every page",
}
"""Every address outside that a page may lead to, and why; nothing is ever loaded from one."""
_ARXIV = re.compile(r"(\d{4}\.\d{5})(v\d+)?")


def pages_of(site: Path) -> dict[Path, tuple[set[str], list[tuple[str, str]]]]:
    """Of every page the names that it defines, and where it leads: the attribute that does and the address."""
    found: dict[Path, tuple[set[str], list[tuple[str, str]]]] = {}
    for path in (path for path in site.rglob("*.html") if "_static" not in path.parts):
        names, links = set[str](), list[tuple[str, str]]()
        for tag, attributes in re.findall(r"<(\w+)\s([^>]*)>", path.read_text(encoding="utf-8")):
            for name, value in re.findall(r"(?<![\w-])(id|name|href|src|srcset|poster|data)=\"([^\"]+)\"", attributes):
                names |= {html.unescape(value)} if name in ("id", "name") else set()
                links += [] if name in ("id", "name") else [(f"{tag} {name}", html.unescape(value))]
        found[path.resolve()] = names, links
    return found


def broken(site: Path) -> list[str]:
    """Links to files and anchors that are not there, and to the outside that nobody allowed."""
    pages, found = pages_of(site), list[str]()
    for path, (_, links) in pages.items():
        for where, link in links:
            if re.match(r"[a-z][a-z+.-]*:|//", link):
                led = where == "a href" and link.startswith(tuple(ADDRESSES))
                found += [] if led or link.startswith("data:") else [f"{path.name}: {where} {link}"]
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not target.exists() or (anchor and target in pages and anchor not in pages[target][0]):
                found.append(f"{path.name}: {where} {link}")
    return found


def unknown_papers(text: str) -> list[str]:
    """arXiv numbers that are not those of a source, in the version that was read."""
    known = {source.eprint: source.version for source in papers().values()}
    known.pop("", None)
    found = (_ARXIV.fullmatch(number) for number in re.findall(r"(?:arXiv:|arxiv\.org/abs/)([\d.]+\d(?:v\d+)?)", text))
    return [m[0] if m else "?" for m in found if m is None or m[1] not in known or (m[2] or known[m[1]]) != known[m[1]]]


# -- of what pages are made


def test_papers_are_those_of_the_sources() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*PAGES, ROOT / "CITATION.cff", ROOT / "CHANGELOG.md")]
    assert [number for text in texts for number in unknown_papers(text)] == []
    assert sum(len(re.findall("arXiv:", text)) for text in texts) > 15
    assert unknown_papers("arXiv:2110.10090v2, arXiv:2110.10090, https://arxiv.org/abs/2110.10090v2") == []
    assert unknown_papers("arXiv:2110.10090v1") == ["2110.10090v1"]
    assert unknown_papers("arXiv:2110.10091") == ["2110.10091"]


def test_what_pages_cite_is_listed_with_the_words_of_its_source() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in PAGES}
    cited = {key for text in texts.values() for key in re.findall(r"\[([a-z]+\d{4})\](?!\()", text)}
    listed = {
        m[1]: " ".join(m[2].split())
        for m in re.finditer(r"^- \[(\w+)\] ((?:.+\n)(?:  .+\n)*)", texts["theory.md"], re.M)
    }
    assert cited == set(listed)
    for key, entry in listed.items():
        source = papers()[key]
        assert entry.startswith(f"{source.authors}. {source.title}."), key
        assert str(source.year) in entry, key
        assert not source.eprint or entry.endswith(f"arXiv:{source.eprint}{source.version}."), key


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    import linked  # type: ignore[import-not-found]

    return linked


def test_names_of_statements_become_links_and_nothing_else(linked: ModuleType) -> None:
    places = {"T2": "theory.html#t2", "G1": "c.html#g1", "G1’": "c.html#g1-1"}
    text = "By T2 (not T25, T2b, xT2 or W.T2), G1’ and G1: arXiv:2110.10090v2."
    parts = linked.linked(text, places)
    assert "".join(part.astext() for part in parts) == text
    links = [(part.astext(), part["refuri"]) for part in parts if part.children]
    assert links == [
        ("T2", "theory.html#t2"),
        ("G1’", "c.html#g1-1"),
        ("G1", "c.html#g1"),
        ("arXiv:2110.10090v2", "https://arxiv.org/abs/2110.10090v2"),
    ]
    assert linked.linked("nothing", places) == []


def test_a_broken_link_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="top">b</h1>')
    good = '<a href="b.html#top">b</a><a href="#x" id="x">x</a><a href="https://arxiv.org/abs/2110.10090">p</a>'
    (tmp_path / "a.html").write_text(good)
    assert broken(tmp_path) == []
    for wrong in (
        '<a href="c.html">c</a>',
        '<a href="b.html#bottom">b</a>',
        '<a href="#y">y</a>',
        '<a href="https://example.org">e</a>',
        '<a href="http://arxiv.org/abs/2110.10090">p</a>',
        '<script src="https://arxiv.org/abs/x.js"></script>',
        '<link href="//fonts.example.org/a.css">',
        '<img src="none.png">',
    ):
        (tmp_path / "a.html").write_text(good + wrong)
        assert len(broken(tmp_path)) == 1, wrong


# -- as it is built


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if made := os.environ.get("BOUNDCALC_SITE"):
        return Path(made).resolve()
    for module in NEEDED:
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "sphinx", "-q", "-W", str(ROOT / "docs"), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert broken(site) == []
    assert len(pages_of(site)) > 20
    theory = "".join(page.read_text(encoding="utf-8") for page in (site / "theory").glob("*.html"))
    assert theory.count("<math") > 500
    assert len(re.findall(r'href="[\w./]*#[a-z]+\d+[a-z]*-[^"]*">[A-Z]+\d+[a-z]*<', theory)) > 150  # statements by name
    assert len(list((site / "theory").glob("*.html"))) == 9
    assert "Perceptron cover of a matrix with a (2,1) budget (T2)" in theory
    assert [page for page in site.glob("*.html") if unknown_papers(page.read_text(encoding="utf-8"))] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["index", "theory/covers", "gallery", "explore", "explore-page", "tutorial", "api/bounds", "screens"]
)
def test_axe_finds_nothing_grave_on_the_site(name: str, site: Path, browser: Browser) -> None:
    """Wide and on a phone.

    The rules take seconds per thousand elements of a formula, so in theory a word stands for each.
    """
    browser.resize(1200, 1000)
    browser.forget()
    browser.open((site / f"{name}.html").as_uri())
    if name == "theory/covers":
        browser.run("document.querySelectorAll('math').forEach(e => e.replaceWith('formula'))")
    for width in (1200, 390):
        browser.resize(width, 900)
        assert axe.findings(browser) == []
    if name == "explore":  # the page inside it is there, and draws
        assert browser.run("return document.querySelector('iframe').title") == "boundcalc explore"
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []
    assert browser.complaints() == []


@pytest.mark.slow
def test_ten_questions_are_answered_one_click_from_the_first_page(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr.*?<td>(.*?)</td>\s*<td>.*?href=\"(.*?)\"", front, re.DOTALL)
    links = {words_of(question): link for question, link in rows}
    assert list(links) == list(ANSWERS)
    for question, link in links.items():
        name, _, anchor = link.partition("#")
        text = (site / name).read_text(encoding="utf-8")
        text = text[text.index(f'id="{anchor}"') :] if anchor else text
        assert [words for words in ANSWERS[question][2].split("; ") if words not in words_of(text)] == [], question


def words_of(text: str) -> str:
    """What a reader sees of HTML."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())


def test_a_section_without_a_page_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    import theory_pages  # type: ignore[import-not-found]

    homes = theory_pages.homes()
    assert homes["k-the-gap-by-gaussian-comparison"] == "theory/comparison"
    text = "[t](theory.md), [k](theory.md#k-the-gap-by-gaussian-comparison), [own](#here)"
    assert theory_pages.expanded(text, "papers") == (
        "[t](theory/index.md), [k](theory/comparison.md#k-the-gap-by-gaussian-comparison), [own](#here)"
    )
    with pytest.raises(Exception, match="no heading"):
        theory_pages.expanded("[k](theory.md#nothing)", "papers")
    more = {**theory_pages.sections(), "Z": "## Z: new"}
    monkeypatch.setattr(theory_pages, "sections", lambda: more)
    theory_pages.homes.cache_clear()
    with pytest.raises(Exception, match="not on one page"):
        theory_pages.homes()
    theory_pages.homes.cache_clear()
