"""The installed command as a process: what it imports, its exit codes, interruption and broken pipes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = shutil.which("boundcalc", path=str(Path(sys.executable).parent)) or shutil.which("boundcalc")
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
    "words",
    [
        ("eval", "--depth", "2", "--T", "512"),
        ("eval", "--depth", "1", "--explain", "--format", "table"),
        ("eval", "--sweep", "T=8,16", "--format", "csv"),
        ("solve", "--for", "m", "--depth", "1"),
        ("explain", "T2"),
        ("list",),
        ("--help",),
    ],
)
def test_no_heavy_library_is_imported(words: tuple[str, ...]) -> None:
    assert not HEAVY & _imported(*words)


def test_the_import_check_sees_a_heavy_library() -> None:
    """Negative control: the array sweep does import NumPy."""
    done = _python("import sys, boundcalc.engine.arrays\nprint('modules:', *sys.modules)")
    assert "numpy" in HEAVY & set(done.stdout.split())


def test_commands_import_only_their_own_module() -> None:
    modules = _imported("explain", "T2", "--format", "json")
    assert "boundcalc.cli.explain" in modules
    assert not {"boundcalc.cli.eval", "boundcalc.cli.solve", "boundcalc.cli.tree", "rich.table"} & modules


def test_verifying_does_not_load_the_search(tmp_path: Path) -> None:
    path = str(tmp_path / "gap.json")
    assert any(name.startswith("boundcalc.engine") for name in _imported("eval", "--depth", "1", "--certificate", path))
    assert not [name for name in _imported("verify", path) if name.startswith("boundcalc.engine")]


def test_the_installed_command_and_the_module_are_one() -> None:
    if COMMAND is None:
        pytest.skip("the boundcalc script is not installed")
    line = ["eval", "--depth", "1", "--bound", "best", "--format", "csv"]
    script = subprocess.run([COMMAND, *line], capture_output=True, text=True)
    module = subprocess.run([sys.executable, "-m", "boundcalc", *line], capture_output=True, text=True)
    assert script.returncode == module.returncode == 0
    assert script.stdout == module.stdout


def test_exit_codes_reach_the_shell(tmp_path: Path) -> None:
    for words, code in ((["--version"], 0), (["verify", str(tmp_path / "no.json")], 1), (["eval", "--m", "x"], 2)):
        done = subprocess.run([sys.executable, "-m", "boundcalc", *words], capture_output=True, text=True)
        assert done.returncode == code
        assert "Traceback" not in done.stderr


def test_debug_reaches_the_shell() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "boundcalc", "eval", "--C", "-1", "--debug"], capture_output=True, text=True
    )
    assert "Traceback (most recent call last)" in done.stderr
    assert "InvalidSetting: C must be" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interruption_keeps_what_was_written_and_says_so(request: pytest.FixtureRequest) -> None:
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
    assert errors.strip().startswith(b"interrupted: ")
    assert errors.strip().count(b"\n") == 0
    assert b"points are done (csv and json have them" in errors
    assert len(rest.splitlines()) < 100_000


@pytest.mark.skipif(os.name != "posix", reason="pipes")
@pytest.mark.parametrize(
    "words", [["list"], ["--help"], ["eval", "--format", "csv", "--sweep", "m=1e3:1e4:lin40", "--bound", "closed"]]
)
def test_a_reader_that_leaves_is_no_error(words: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "boundcalc", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 141
    assert errors == b""


def test_progress_appears_on_a_terminal_only(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    main_end, other_end = pty.openpty()
    code = (
        "import boundcalc.cli.progress as p\np._PATIENCE = 0.0\nfrom boundcalc.cli import main\n"
        "main(['eval', '--sweep', 'm=1e3:1e6:log30', '--bound', 'closed', '--format', 'csv'])"
    )
    with (tmp_path / "out.csv").open("w") as out:
        done = subprocess.run([sys.executable, "-c", code], stdout=out, stderr=other_end)
    os.close(other_end)
    seen = b""
    while True:
        try:
            chunk = os.read(main_end, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(main_end)
    assert done.returncode == 0
    assert b"sweep" in seen
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 31
    quiet = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert quiet.stderr == b""
