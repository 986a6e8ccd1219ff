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
    assert "bound" in done.stdout


def test_commands_for_a_fresh_machine_are_marked() -> None:
    for name in ("run", "test"):
        assert len(re.findall(rf"<!-- command: {name} -->\n```sh\n[^\n]+\n```", README)) == 1


def test_a_stale_output_would_be_noticed() -> None:
    command, shown = blocks(README)[0]
    stale = replaced(README, command, shown.replace("0.", "0.9", 1))
    assert dict(blocks(stale))[command].strip() != output_of(command).strip()


def test_readme_is_short() -> None:
    assert README.count("\n") <= 150
