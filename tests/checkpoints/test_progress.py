"""The progress bar: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boundcalc.checkpoints import audit
from tests.checkpoints import handmade

pty = pytest.importorskip("pty")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return handmade.save(tmp_path / "bert", *handmade.bert(np.random.default_rng(0)))


def on_a_terminal(*words: object) -> str:
    """What `boundcalc norms` writes to a stderr that is a terminal."""
    master, slave = pty.openpty()
    environment = dict(os.environ) | {"TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "boundcalc", "norms", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        try:
            while chunk := os.read(master, 1 << 16):
                shown += chunk
        except OSError:  # the other end was closed
            pass
        os.close(master)
    assert process.returncode == 0
    return shown.decode("utf-8", "replace")


def test_the_bar_names_what_is_measured_and_comes_to_its_end(model: Path) -> None:
    shown = on_a_terminal(model)
    assert "reading" in shown
    assert "100%" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert shown.endswith("\x1b[2K") or "\x1b[2K" in shown[-40:]  # and is wiped


def test_no_bar_where_none_was_asked_for(model: Path) -> None:
    assert on_a_terminal(model, "--quiet") == ""


def test_no_bar_in_a_file(model: Path) -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "boundcalc", "norms", str(model)], capture_output=True, text=True, check=True
    )
    assert outcome.stderr == ""
    assert "%" not in outcome.stdout


def test_progress_counts_every_number_once(model: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    found = audit(model, progress=lambda name, done, total: seen.append((name, done, total)))
    names = [name for name, _, _ in seen]
    assert len(set(names)) == len(names)
    done = [count for _, count, _ in seen]
    assert done == sorted(done)
    assert {total for _, _, total in seen} == {done[-1]}
    assert 0.9 * found.account.used < done[-1] <= found.account.total
