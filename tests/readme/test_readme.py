"""The README's commands and snippets run, and the output it shows is what they print.

After a change that moves the numbers, `python -m tests.readme.refresh` writes the new ones.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_commands_for_a_fresh_machine_are_marked() -> None:
    for name in ("run", "test"):
        assert len(re.findall(rf"<!-- command: {name} -->\n```sh\n[^\n]+\n```", README)) == 1


def test_a_stale_output_would_be_noticed() -> None:
    command, shown = blocks(README)[0]
    stale = replaced(README, command, shown.replace("0.", "0.9", 1))
    assert dict(blocks(stale))[command].strip() != output_of(command).strip()


def test_readme_is_short() -> None:
    assert README.count("\n") <= 120


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
