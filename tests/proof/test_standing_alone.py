"""The second checker stands alone: copied out of the tree it does its work, it is small, and it reads strictly."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mpmath
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.proof import second
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check
from boundcalc.proof.second import _certificate as read
from boundcalc.statements import STATEMENTS_VERSION
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.strategies import STRATEGIES
from tests.proof.samples import proved
from tests.proof.test_fuzz import alone

HOME = Path(second.__file__).parent
LINES = 2300


def test_it_is_small() -> None:
    modules, lines = second.size()
    assert modules == len(list(HOME.glob("*.py")))
    assert lines <= LINES


def imported(source: str) -> set[str]:
    """Top-level names that a source imports; "." where it is its own package."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level or str(node.module).partition(".")[0])
    return names


def test_it_imports_python_and_mpmath_alone() -> None:
    used = {name for path in HOME.glob("*.py") for name in imported(path.read_text(encoding="utf-8"))}
    assert used <= {".", "mpmath"} | sys.stdlib_module_names
    assert not imported("from ..checker import verify\nimport boundcalc") <= {".", "mpmath"} | sys.stdlib_module_names


ONLY = """
import sys
sys.path = [path for path in sys.path if path.endswith((".zip", "lib-dynload")) or path == STDLIB] + [HERE]
import runpy
sys.argv = ["second", FILE]
try:
    runpy.run_module("second", run_name="__main__")
finally:
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not loaded & {"boundcalc", "flint", "numpy", "sympy"}, loaded
"""


def copied(folder: Path, file: Path) -> subprocess.CompletedProcess[str]:
    """The checker's own answer, from a copy beside mpmath in a folder with nothing else."""
    if not (folder / "second").exists():
        shutil.copytree(HOME, folder / "second", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "mpmath").symlink_to(Path(mpmath.__file__).parent)
    assert sorted(path.name for path in folder.iterdir()) == ["mpmath", "second"]
    names = {"STDLIB": str(Path(json.__file__).parents[1]), "HERE": str(folder), "FILE": str(file)}
    code = "".join(f"{name} = {value!r}\n" for name, value in names.items()) + ONLY
    return subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)


def test_a_copy_of_its_folder_verifies(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    for name, strategy in (("bert", "uniform-margin"), ("measured", "chain"), ("normalised", "closed")):
        data = next(c for c in proved(name) if c.strategy == strategy and c.levels).to_json()
        good, bad = tmp_path / "good.json", tmp_path / "bad.json"
        good.write_text(json.dumps(data), encoding="utf-8")
        answer = copied(folder, good)
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.startswith(f"confirmed: {STRATEGIES[strategy].quantity} <= e^")
        data["log_value"] -= 1e-9
        bad.write_text(json.dumps(data), encoding="utf-8")
        answer = copied(folder, bad)
        assert answer.returncode == 1
        assert "the claim does not follow" in answer.stderr
    assert copied(folder, tmp_path / "missing.json").returncode == 1


def test_it_knows_the_same_version_strategies_and_lemmas() -> None:
    assert read.STATEMENTS == STATEMENTS_VERSION
    assert read.STRATEGIES.keys() == STRATEGIES.keys()
    for name, strategy in STRATEGIES.items():
        what, *words = read.STRATEGIES[name].split()
        coverless = strategy.coverless
        flags = {"levels": not (strategy.one_level or coverless), "uniform": strategy.uniform and not coverless}
        flags |= {"closed": strategy.every_scale, "stored": strategy.stored, "coverless": coverless}
        assert what == strategy.quantity
        assert set(words) == {*strategy.parameters, *(word for word, holds in flags.items() if holds)}
    covers = second._covers._LEMMAS  # type: ignore[attr-defined]
    assert covers.keys() == LEMMAS.keys()
    covers: Any = second._covers  # type: ignore[attr-defined]
    assert {name for name, lemma in LEMMAS.items() if lemma.uniform} == covers.UNIFORM


def test_the_text_itself_is_read_strictly(tmp_path: Path) -> None:
    """Keys given twice, NaN, infinities, numbers beyond floats, deep nesting; the first says in which file and why."""
    certificate, file = proved("edelman")[0], tmp_path / "c.json"
    text = json.dumps(certificate.to_json())
    assert alone(text) == pytest.approx(check(certificate).log_value, abs=1e-12)
    for old, new, why in (
        ('"delta": 0.05', '"delta": 0.05, "delta": 0.05', "twice"),
        ('"delta": 0.05', '"delta": NaN', "NaN"),
        ('"C": 1.0', '"C": Infinity', "Infinity"),
        ('"C": 1.0', '"C": 1e400', "beyond"),
        ('"C": 1.0', f'"C": {"9" * 400}', ""),
        ('"C": 1.0', f'"C": {"9" * 5000}', ""),
        ('"layers": null', f'"layers": {"[" * 10**5}{"]" * 10**5}', ""),
        ("{", "", ""),
    ):
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
        assert file.read_text(encoding="utf-8") != text, old
        assert alone(file.read_text(encoding="utf-8")) is None, new
        with pytest.raises(CertificateError, match=rf"c\.json.*{why}"):
            Certificate.load(file)
    assert alone("[]") is None
    assert alone("3") is None
