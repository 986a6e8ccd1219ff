"""The installed command as a process: what it imports, its exit codes, interruption and broken pipes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from boundcalc.cli._lazy import EXTRA_OF

ROOT = Path(__file__).parents[2]
HEAVY = {"matplotlib", "mpmath", "numpy", "scipy", "sympy", "torch"}


def _python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)


def _imported(*words: str) -> set[str]:
    """Top-level modules that a command line imports."""
    code = (
        "import sys\nfrom boundcalc.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit as done:\n"
        "    assert not done.code, done.code\nprint('modules:', *sys.modules)"
    )
    done = _python(code, *words)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "line",
    [
        "eval --depth 2 --T 512",
        "eval --depth 1 --why",
        "eval --sweep T=8,16 --format csv",
        "solve --for m --depth 1",
        "explain T2",
        "explain",
        "--help",
    ],
)
def test_no_heavy_library_is_imported(line: str) -> None:
    assert not HEAVY & _imported(*line.split())


def test_the_import_check_sees_a_heavy_library() -> None:
    """Negative control: formulas do import SymPy."""
    done = _python("import sys, boundcalc.theorems._formula\nprint('modules:', *sys.modules)")
    assert "sympy" in HEAVY & set(done.stdout.split())


def test_verifying_does_not_load_the_search(tmp_path: Path) -> None:
    path = str(tmp_path / "gap.json")
    assert any(name.startswith("boundcalc.engine") for name in _imported("eval", "--depth", "1", "--certificate", path))
    of_search = ("boundcalc.engine", "boundcalc.lab", "boundcalc.statements.covers.tuning")
    assert not [name for name in _imported("verify", path) if name.startswith(of_search)]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interruption_keeps_what_was_written(request: pytest.FixtureRequest) -> None:
    words = ["eval", "--sweep", "m=1e3:1e9:log50000", "--bound", "closed", "--format", "csv"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    # a shell that starts the tests beside others has them ignore interruptions, and children inherit that
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, previous))
    with subprocess.Popen(
        [sys.executable, "-m", "boundcalc", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.readline()  # the first row: it is at work
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        rest, errors = process.stdout.read(), process.stderr.read()
    assert process.returncode == 130
    assert errors.strip() == b""
    assert len(rest.splitlines()) < 100_000


def test_packages_carry_what_messages_point_to() -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert data["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]["docs"] == "boundcalc/docs"
    assert {"/docs", "/figures"} <= {*data["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    extras = data["project"]["optional-dependencies"]
    assert set(EXTRA_OF.values()) <= set(extras)
    named = re.findall(r"docs/([\w-]+\.md)", "".join(p.read_text("utf-8") for p in (ROOT / "boundcalc").rglob("*.py")))
    assert named
    assert all((ROOT / "docs" / name).is_file() for name in named)
