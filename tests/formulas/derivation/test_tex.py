"""The generated LaTeX compiles without a warning."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from boundcalc.base import symbols as sym
from boundcalc.formulas.derivation import derive
from boundcalc.formulas.derivation.latex import MACROS, files
from boundcalc.formulas.theorems import THEOREMS
from boundcalc.setting import Setting

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
@pytest.mark.parametrize("name", ["edelman2022", "edelman2022_head", "zhang2022"])
def test_articles_compile_without_warnings(name: str, tmp_path: Path) -> None:
    written = files(derive(name))
    for file, text in written.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert compiled(tmp_path, next(iter(written)).removesuffix(".tex")) == []


@needs_tex
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in THEOREMS if n not in ("edelman2022", "edelman2022_head", "zhang2022")])
def test_all_other_articles_compile_without_warnings(name: str, tmp_path: Path) -> None:
    written = files(derive(name))
    for file, text in written.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert compiled(tmp_path, next(iter(written)).removesuffix(".tex")) == []


@needs_tex
@pytest.mark.slow
@pytest.mark.parametrize("preset", ["bert", "gpt2", "llama", "vit"])
def test_derivations_of_presets_compile_without_warnings(preset: str, tmp_path: Path) -> None:
    setting = Setting.of(
        preset, C=sym.C, depth=sym.depth, seq_len=sym.T, n_train=sym.m, delta=sym.delta, margin=sym.gamma
    )
    for file, text in files(derive(setting)).items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert compiled(tmp_path, "closed") == []


@needs_tex
def test_a_warning_would_be_noticed(tmp_path: Path) -> None:
    """Negative control: a line that is too long and a citation that does not exist are reported."""
    (tmp_path / "bad.tex").write_text(
        r"\documentclass{article}\begin{document}\cite{nobody}\hbox to 2\textwidth{x\hfill x}"
        r"\par\noindent\hbox{\rule{2\textwidth}{1pt}}\bibliographystyle{plain}\bibliography{none}\end{document}"
    )
    (tmp_path / "none.bib").write_text("")
    assert len(compiled(tmp_path, "bad")) >= 2


@needs_tex
def test_a_fragment_compiles_in_a_paper_of_ones_own(tmp_path: Path) -> None:
    written = files(derive("trauger2024", "covering_number"), full=False, fragment=True)
    assert not any("documentclass" in text for text in written.values())
    for file, text in written.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\\usepackage{amsmath,amssymb,amsthm}\\emergencystretch=3em\\allowdisplaybreaks\n"
        f"\\input{{{MACROS}}}\n\\begin{{document}}\nSee \\ref{{bc:trauger2024}}.\n\\input{{trauger2024}}\n"
        "\\bibliographystyle{plain}\\bibliography{boundcalc}\\end{document}\n"
    )
    assert compiled(tmp_path, "paper") == []


def test_brackets_and_environments_are_balanced() -> None:
    for name in THEOREMS:
        text = next(iter(files(derive(name)).values()))
        assert text.count("\\begin{") == text.count("\\end{")
        assert text.count("{") == text.count("}")
        labels = [part.split("}")[0] for part in text.split("\\label{")[1:]]
        assert len(labels) == len(set(labels))
        references = {part.split("}")[0] for part in text.split("\\ref{")[1:]}
        assert references <= set(labels)
