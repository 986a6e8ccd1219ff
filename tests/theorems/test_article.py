"""The generated LaTeX compiles without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from boundcalc.cli import main
from boundcalc.statements.texts import STATEMENTS
from boundcalc.theorems import THEOREMS
from boundcalc.theorems.derivation import derive
from boundcalc.theorems.prose import plain, tex
from boundcalc.theorems.render import article as article_of
from boundcalc.theorems.render import files
from tests.tutorials import walk

needs_tex = pytest.mark.skipif(
    shutil.which("pdflatex") is None or shutil.which("bibtex") is None,
    reason="no TeX (pdflatex, bibtex) is installed: the generated LaTeX was not compiled",
)
PROBLEMS = ("Warning", "Overfull", "Underfull", "undefined")


def compiled(folder: Path, name: str) -> list[str]:
    """Problems that TeX and BibTeX report, after as many runs as references need."""
    for command in ("pdflatex", "bibtex", "pdflatex", "pdflatex"):
        arguments = [command, name] if command == "bibtex" else [command, "-interaction=nonstopmode", name]
        subprocess.run(arguments, cwd=folder, capture_output=True, check=False, timeout=120)
    assert (folder / f"{name}.pdf").exists(), (folder / f"{name}.log").read_text(errors="replace")[-2000:]
    lines = (folder / f"{name}.log").read_text(errors="replace").splitlines()
    lines += (folder / f"{name}.blg").read_text(errors="replace").splitlines()
    return [line for line in lines if line.startswith("!") or any(word in line for word in PROBLEMS)]


@needs_tex
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in ("edelman2022", "zhang2022", "K1") else pytest.mark.slow) for n in THEOREMS],
)
def test_articles_compile_without_warnings(name: str, tmp_path: Path) -> None:
    written = files(derive(name))
    for file, text in written.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert compiled(tmp_path, next(iter(written)).removesuffix(".tex")) == []


@needs_tex
def test_a_warning_would_be_noticed(tmp_path: Path) -> None:
    """Negative control: a line that is too long and a citation that does not exist are reported."""
    (tmp_path / "bad.tex").write_text(
        r"\documentclass{article}\begin{document}\cite{nobody}\hbox to 2\textwidth{x\hfill x}"
        r"\par\noindent\hbox{\rule{2\textwidth}{1pt}}\bibliographystyle{plain}\bibliography{none}\end{document}"
    )
    (tmp_path / "none.bib").write_text("")
    assert len(compiled(tmp_path, "bad")) >= 2


# ------------------------------------------------------------------------------------------- several in one article

THREE = ("edelman2022", "trauger2024", "zhang2022")


def article(folder: Path, monkeypatch: pytest.MonkeyPatch, *, columns: int, force: bool = False) -> str:
    """What the tutorial has one type and write, in a folder; the text of its paper."""
    monkeypatch.chdir(folder)
    for line in walk.commands("article.md"):
        walk.run(line.replace("--columns 2", f"--columns {columns}") + " --force" * force, folder)
    return walk.files("article.md")["paper.tex"]


def test_fragments_share_their_statements_and_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    article(tmp_path, monkeypatch, columns=2)
    texts = {path.name: path.read_text("utf-8") for path in tmp_path.glob("*.tex")}
    labels = [label for text in texts.values() for label in re.findall(r"\\label\{(.*?)\}", text)]
    assert len(labels) == len(set(labels))
    assert {f"bc:{name}" for name in THREE} <= set(labels)
    assert {ref for text in texts.values() for ref in re.findall(r"\\ref\{(.*?)\}", text)} <= set(labels)
    keys = re.findall(r"^@\w+\{(.*?),", (tmp_path / "boundcalc.bib").read_text("utf-8"), re.MULTILINE)
    assert len(keys) == len(set(keys))
    assert {*THREE, "boundcalc"} <= set(keys)
    cited = {
        key
        for text in texts.values()
        for keys in re.findall(r"\\cite(?:\[.*?\])?\{(.*?)\}", text)
        for key in keys.split(",")
    }
    assert cited <= set(keys)
    again = {path.name: path.read_text("utf-8") for path in tmp_path.glob("boundcalc*")}
    article(tmp_path, monkeypatch, columns=2, force=True)
    assert {path.name: path.read_text("utf-8") for path in tmp_path.glob("boundcalc*")} == again


def test_references_of_ones_own_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    article(tmp_path, monkeypatch, columns=1)
    shared = tmp_path / "boundcalc.bib"
    shared.write_text(shared.read_text("utf-8") + "@misc{mine, title={mine}}\n", "utf-8")
    words = ["derive", "--bound", "edelman2022_head", "--format", "latex", "--fragment", "-o", "."]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert "@misc{mine" in shared.read_text("utf-8")
    assert CliRunner().invoke(main, words).exit_code == 2  # its own files are there


@needs_tex
def test_three_theorems_in_two_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "paper.tex").write_text(article(tmp_path, monkeypatch, columns=2), "utf-8")
    assert compiled(tmp_path, "paper") == []


# ------------------------------------------------------------------------------------------- what an article says


def outside_mathematics(text: str) -> str:
    """The words of an article, without references and mathematics."""
    displays = r"\\begin\{(align|gather)\*?\}.*?\\end\{(align|gather)\*?\}|\\\[.*?\\\]"
    pattern = rf"\\(ref|label|begin|cite)\{{[^}}]*\}}(\{{[^}}]*\}})?|\$[^$]*\$|{displays}"
    return re.sub(pattern, "", text, flags=re.DOTALL)


def unexplained(text: str, lemmas: set[str]) -> set[str]:
    """Names of statements in an article that are not among its lemmas."""
    names = "|".join(sorted(STATEMENTS, key=len, reverse=True))
    return set(re.findall(rf"(?<![\w:-])({names})(?![\w'-])", outside_mathematics(text))) - lemmas - {"E"}


@pytest.mark.parametrize("name", THEOREMS)
def test_an_article_refers_to_its_own_lemmas_alone(name: str) -> None:
    derivation = derive(name)
    text = article_of(derivation)
    lemmas = {statement.name for statement in derivation.statements()}
    assert unexplained(text, lemmas) == set()
    assert unexplained(text, lemmas - {sorted(lemmas)[0]}) == {sorted(lemmas)[0]}  # the control
    words = outside_mathematics(text.partition("\\begin{document}")[2])
    assert not re.search(r"\.md|[Tt]he library|checker|\[proof\]", words)
    assert text.count("\\begin{") == text.count("\\end{")
    assert text.count("{") == text.count("}")
    labels = re.findall(r"\\label\{(.*?)\}", text)
    assert len(labels) == len(set(labels))
    assert set(re.findall(r"\\ref\{(.*?)\}", text)) <= set(labels)


@pytest.mark.parametrize("name", ["edelman2022", "trauger2024", "zhang2022", "K1"])
def test_a_theorem_states_its_hypotheses_and_its_probability(name: str) -> None:
    text = " ".join(files(derive(name), fragment=True, columns=2)[f"{name}.tex"].split())
    for words in (
        r"\begin{boundcalcdefinition}",
        r"The class $\mathcal F$ consists of",
        r"$|W|_{\mathrm{op}}\le C$",
        "drawn independently",
        r"$R(f)=\Pr(yf(X)\le0)$",
        r"with probability at least $1-\delta$ over the sample, every $f$ in the class $\mathcal F$ satisfies",
    ):
        assert words in text
    defined = re.findall(
        r"^(?:\\begin\{align\*?\} )?(\S+) &=", files(derive(name), fragment=True)[f"{name}.tex"], re.MULTILINE
    )
    assert len(defined) == len(set(defined))


def test_at_one_block_nothing_of_the_others_is_left() -> None:
    derivation = derive("edelman2022", "gap", {"depth": 1})
    text = next(iter(files(derivation, fragment=True).values()))
    assert "Z_{l-1}" not in text
    assert "S(T)" not in text
    assert not re.search(r"^(G|r) &=", text, re.MULTILINE)
    whole = derive("edelman2022").formula
    at = {"C": 1.3, "T": 64, "m": 10**6, "d": 16, "heads": 2, "gamma": 1, "delta": 0.05}
    known = {symbol.name for symbol in derivation.formula.inputs}
    assert derivation.formula.value(**{k: v for k, v in at.items() if k in known}) == whole.value(depth=1, **at)


def marks_left(texts: Iterable[str]) -> list[str]:
    """Asterisks of emphasis that a text keeps outside its mathematics, on a terminal or in an article."""
    shown = [re.sub(r"\$[^$]*\$", "", tex(text)) for text in texts]
    return [line for line in shown if re.search(r"(?<![\\\w])\*\w", line)]


def test_emphasis_may_hold_mathematics() -> None:
    text = "*Norms of $l$ in `a_b`.* As [T2 of $x*y*z$](#t)."
    assert tex(text) == r"\emph{Norms of $l$ in \texttt{a\_b}.} As T2 of $x*y*z$."
    assert plain(text) == "Norms of l in a_b. As T2 of x*y*z."
    theory = [f"{entry.says}\n\n{entry.proof}" for entry in STATEMENTS.values()]
    assert len(theory) > 40
    assert marks_left(theory) == []
    assert len(marks_left(["A *word and another."])) == 1


def test_proofs_end_in_a_square_and_no_short_side_stands_alone() -> None:
    assert tex("This is the claim. ∎").endswith(r"\qed{}")
    shown = tex("```math\nG=\\min\\lbrace " + "+".join(["x"] * 32) + "\\rbrace=1\n```\n")
    assert r"G=\min" in shown
    assert "gather" in shown
