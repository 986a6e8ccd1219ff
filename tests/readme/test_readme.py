"""The README's commands and snippets run, and the output it shows is what they print.

After a change that moves the numbers, `python -m tests.readme.refresh` writes the new ones.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import run_line
from tests.readme.refresh import PAGES, ROOT, blocks, output_of, replaced

README = (ROOT / "README.md").read_text(encoding="utf-8")


SHOWN = {command: shown for page in PAGES for command, shown in blocks(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("command", SHOWN)
def test_shown_output_is_what_the_command_prints(command: str) -> None:
    assert SHOWN[command].strip() == output_of(command).strip()


def test_python_snippet_runs(tmp_path: Path) -> None:
    found = re.search(r"<!-- python -->\n```python\n(.*?)```", README, re.DOTALL)
    assert found is not None
    done = subprocess.run([sys.executable, "-c", found[1]], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "best" in done.stdout


def test_it_is_short_and_commands_for_a_fresh_machine_are_marked() -> None:
    assert README.count("\n") <= 120
    for name in ("run", "test"):
        assert len(re.findall(rf"<!-- command: {name} -->\n```sh\n[^\n]+\n```", README)) == 1


def test_a_stale_output_would_be_noticed() -> None:
    command, shown = blocks(README)[0]
    stale = replaced(README, command, shown.replace("0.", "0.9", 1))
    assert dict(blocks(stale))[command].strip() != output_of(command).strip()


QUESTIONS = """
What is the bound at depth 2? | boundcalc eval --depth 2 --T 512 | Gap at most 0.1107; floor | Gap at most 0.1107; floor
Is it vacuous? | docs/reading.md | **vacuous**: trivial, or not below 0.999; published | exceeds 1; trivial
Why is it vacuous? | boundcalc eval --why | Why the gap of 'best'; by piece; One change | W_QK; whose cover costs most
What is the formula? | boundcalc derive --bound K1 | with probability at least; Suppose that | Assumes; Explicit
How many samples are enough? | boundcalc eval --depth 2 --T 512 | risk <= 0.1 from m = | smallest m with gap <= 0.1
What about my model? | docs/tutorials/own-transformer.md | boundcalc certify; held-out | boundcalc certify; held-out
How do I cite a theorem? | CITATION.cff | cff-version; 2110.10090 | --format bibtex; CITATION.cff
What does best mean? | docs/reading.md | ## Policies; `best`; noise (V1-V3) | best; lemmas; K1 and K2
What is proved, and what is measured? | docs/claims.md | ## Proved; ## Measured; ## Not proved | Proved; Not proved
How do I add a lemma? | tests/recipes | (CoverLemma); check_lemma( | class Coarse(CoverLemma); check_lemma(lemma
"""
"""Of somebody who knows the field and not the tool: where the README alone answers (a command of it, or a link), words
there, and words of the place that a click on the site's first page leads to."""
ANSWERS = {row[0]: row[1:] for row in (line.split(" | ") for line in QUESTIONS.strip().splitlines())}


def lacking(readme: str, place: str, words: str) -> list[str]:
    """What an answer lacks: its place in the README, or words there."""
    if place.startswith("boundcalc"):
        outcome = run_line(*shlex.split(place)[1:])
        answer, there = outcome.stdout, place in readme and outcome.exit_code == 0
    else:
        path = ROOT / place
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        answer, there = "\n".join(file.read_text(encoding="utf-8") for file in files), f"]({place})" in readme
    answer = " ".join(answer.split())
    return [*([] if there else [place]), *(word for word in words.split("; ") if word not in answer)]


@pytest.mark.parametrize("question", ANSWERS)
def test_the_readme_alone_answers_the_ten_questions(question: str) -> None:
    place, words, _ = ANSWERS[question]
    assert lacking(README, place, words) == []


def test_a_question_without_an_answer_would_be_seen() -> None:
    assert lacking(README.replace("docs/claims.md", "docs/claim.md"), "docs/claims.md", "## Proved") == [
        "docs/claims.md"
    ]
    assert lacking("", "boundcalc explain theorems", "K1; K0") == ["boundcalc explain theorems", "K0"]


def equations(latex: str) -> list[str]:
    """Equations of a formula without layout: spaces, alignment, thin spaces and forms of braces."""
    for written, plain in (("&", ""), (r"\,", ""), (r"\{", r"\lbrace"), (r"\}", r"\rbrace"), (r"\quad", "\n")):
        latex = latex.replace(written, plain)
    parts = re.sub(r"\\label\{.*?\}", "", latex).replace(r"\\", "\n").splitlines()
    return [found for part in parts if (found := "".join(part.split()).rstrip(","))]


def missing(readme: str) -> list[str]:
    """Equations below the mark of a theorem that are not those of its command."""
    marked = re.search(r"<!-- theorem: (.+?) -->\n((?:\$\$.+\$\$\n\n)+)", readme)
    assert marked is not None
    derived = equations(output_of(marked[1]))
    shown = [equation for block in re.findall(r"\$\$(.+?)\$\$", marked[2]) for equation in equations(block)]
    assert len(shown) > 5
    return [equation for equation in shown if equation not in derived]


def test_the_theorem_shown_is_the_one_that_derive_prints() -> None:
    assert missing(README) == []
    assert len(missing(README.replace("1.2711", "1.2721"))) == 1
    assert len(missing(README.replace(r"2 C^{3}", r"2 C^{2}"))) == 1


def test_examples_that_certify_ten_percent_without_an_error() -> None:
    n = int(re.findall(r"(\d+) test examples without an error already certify a risk below 10%", README)[0])
    assert [1 - 0.05 ** (1 / k) <= 0.1 for k in (n - 1, n)] == [False, True]
