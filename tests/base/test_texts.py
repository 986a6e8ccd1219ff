"""Texts are read within a limit, whoever sends them: memory, endless devices, pipes, depth, digits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.files import MOST, plain_digits, read_table, read_text
from boundcalc.cli import main


def test_a_text_has_a_limit_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a" * 10)
    assert read_text(path, most=10) == "a" * 10
    with pytest.raises(CertificateError, match=r"--norms .*a.txt has more than 9 bytes.*: split it"):
        read_text(path, "--norms", CertificateError, most=9, more="split it")
    with pytest.raises(InvalidSetting, match="more than 8,000,000 bytes"):
        read_text("/dev/zero")


def test_a_mark_at_the_start_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfx, y\n1,2\n\n")
    assert read_table(path) == [["x", "y"], ["1", "2"]]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSetting, match="is not text"):
        read_text(path)


def test_a_pipe_is_read_if_somebody_writes_to_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(InvalidSetting, match="this pipe has no writer"):
        read_text(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    os.close(reader)

    def write_late() -> None:
        os.write(writer, b"[1]")
        os.close(writer)

    late = threading.Timer(0.2, write_late)
    late.start()
    assert read_text(path) == "[1]"
    late.join()


def test_columns_are_named_once_and_rows_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text, why in (("m,m,train\n1,2,3\n", "two columns 'm'"), ("m,train\n1\n", "line 2 has 1 cells")):
        path.write_text(text)
        with pytest.raises(InvalidSetting, match=why):
            read_table(path)


@pytest.mark.parametrize("text", ["\u0663\u0662", "\uff11\uff12", "3\u00b2"])
def test_digits_are_those_of_ascii(text: str) -> None:
    with pytest.raises(ValueError, match="digits 0 to 9"):
        plain_digits(text)
    for words in (["--T", text], ["--C", text], ["--sweep", f"T={text}"]):
        outcome = CliRunner().invoke(main, ["eval", *words])
        assert (outcome.exit_code, outcome.stdout) == (2, "")


def test_a_name_of_many_letters_is_not_repeated() -> None:
    outcome = CliRunner().invoke(main, ["explain", "x" * 90_000])
    assert outcome.exit_code == 2
    assert len(outcome.stderr) < 1000


PEAK = """
import runpy, sys
sys.argv = ["boundcalc", *sys.argv[1:]]
try:
    runpy.run_module("boundcalc", run_name="__main__")
finally:
    status = open("/proc/self/status").read()  # ru_maxrss begins with the size of the process that started this one
    sys.stderr.write(f"peak {int(status.partition('VmHWM:')[2].split()[0]) // 1024} MB")
"""


@pytest.mark.parametrize(
    "words",
    [
        "eval --setting large.json",
        "eval --setting hostile.json",
        "verify large.json",
        "verify hostile.json",
        "norms model.pt --mapping large.json",
        "certify model.pt --data large.csv",
        "latent large.csv",
        "norms hostile.safetensors",
        "norms deep.safetensors",
    ],
)
def test_a_hostile_file_takes_less_than_500_mb(tmp_path: Path, words: str) -> None:
    (name,) = [word for word in words.split() if word.startswith(("large", "hostile", "deep"))]
    if name == "hostile.json":
        (tmp_path / name).write_text("[" + '{"a":{}},' * ((MOST - 10) // 9) + "1]")
    elif name.endswith(".safetensors"):
        metadata = {"hostile.safetensors": "[1]," * 10**7, "deep.safetensors": "[" * 50_000}[name]
        header = json.dumps({"__metadata__": {"architecture": metadata}}).encode()
        (tmp_path / name).write_bytes(len(header).to_bytes(8, "little") + header)
    else:
        with (tmp_path / name).open("wb") as file:
            file.truncate(2**30)  # takes no room on the disk
    run = subprocess.run(
        [sys.executable, "-c", PEAK, *words.split()], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert run.returncode in (1, 2)
    assert "Traceback" not in run.stderr
    assert int(run.stderr.rpartition("peak ")[2].split()[0]) < 500
    assert json.dumps(run.stdout) == '""'
