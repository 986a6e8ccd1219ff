"""The second checker stands alone: copied out of the tree it does its work, it is small, and no forgery passes it."""

from __future__ import annotations

import ast
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mpmath
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.base.files import parse_json
from boundcalc.proof import second
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check, verify
from boundcalc.proof.second import _certificate as read
from boundcalc.statements import STATEMENTS_VERSION
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.strategies import STRATEGIES
from tests.proof.both import GONE, Place, at, claiming, places, put
from tests.proof.samples import SETTINGS, proved

Json = dict[str, Any]
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
        alone = strategy.coverless
        flags = {"levels": not (strategy.one_level or alone), "uniform": strategy.uniform and not alone}
        flags |= {"closed": strategy.every_scale, "stored": strategy.stored, "coverless": alone}
        assert what == strategy.quantity
        assert set(words) == {*strategy.parameters, *(word for word, holds in flags.items() if holds)}
    covers = second._covers._LEMMAS  # type: ignore[attr-defined]
    assert covers.keys() == LEMMAS.keys()
    covers: Any = second._covers  # type: ignore[attr-defined]
    assert {name for name, lemma in LEMMAS.items() if lemma.uniform} == covers.UNIFORM


# ------------------------------------------------------------------------------------------------ forgeries


def others(value: Any) -> list[Any]:
    """What may stand where a value stands."""
    if isinstance(value, bool):
        return [not value, None, 1]
    if isinstance(value, int):
        return [value + 1, value - 1, -value, value + 0.5, float(value), True, None, str(value), 10**19]
    if isinstance(value, float):
        return [value * 1.01, value * 0.99, -value, 0.0, 5e-324, 1e301, None, True]
    if isinstance(value, str):
        names = next((names for names in (LEMMAS, STRATEGIES) if value in names), ())
        return [f"{value}x", "", None, 3, *names]
    if isinstance(value, dict):
        return [{**value, "extra": 1}, {}, [], None]
    if isinstance(value, list):
        return [[*value, *value], [], {}, value[::-1]]
    return [0, 1, False, "x", {}, []]


def mutations(data: Json) -> list[tuple[Place, Any]]:
    """Every field dropped, and changed in every way."""
    changes: list[tuple[Place, Any]] = []
    for path in list(places(data))[1:]:
        value = at(data, path)
        different = [new for new in others(value) if new != value or type(new) is not type(value)]
        changes += [(path, GONE), *((path, new) for new in different)]
    return changes


def first(text: str) -> float | None:
    """The first checker's value, or None."""
    try:
        return verify(Certificate.from_json(parse_json(text, "x", CertificateError))).log_value
    except CertificateError:
        return None


def alone(text: str) -> float | None:
    try:
        return float(second.confirm(text).log_value)
    except second.Refused:
        return None


def contradiction(text: str) -> str | None:
    """Where one checker accepts what the other refuses, or at another value."""
    values = first(text), alone(text)
    by_first, by_second = values
    if by_first is None or by_second is None:
        return None if by_first is by_second else f"{values}"
    return None if abs(by_first - by_second) <= 1e-9 * max(1.0, abs(by_first)) else f"{values}"


def forged(name: str, strategy: str, number: int) -> list[str]:
    """Contradictions among so many random mutations of a certificate that claims whatever follows."""
    data = claiming(next(c for c in proved(name) if c.strategy == strategy), 2)
    changes = mutations(data)
    random.Random(f"{name} {strategy}").shuffle(changes)
    texts = [(change, json.dumps(put(data, *change))) for change in changes[:number]]
    return [f"{change}: {said}" for change, text in texts if (said := contradiction(text)) is not None]


CASES = sorted({(name, c.strategy) for name in SETTINGS for c in proved(name)})


@pytest.mark.parametrize(("name", "strategy"), CASES)
def test_no_mutation_is_taken_by_one_checker_alone(name: str, strategy: str) -> None:
    assert forged(name, strategy, 5) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "strategy"), CASES)
def test_no_mutation_of_many_is(name: str, strategy: str) -> None:
    assert forged(name, strategy, 200) == []


def chain() -> Certificate:
    return next(c for c in proved("edelman") if c.strategy == "chain" and c.levels)


def test_both_checkers_read_whole_numbers_and_tiny_parameters_alike() -> None:
    """n_train 1000000.0 is refused by both; a mu near 0 gives both the same number above 1."""
    data = claiming(chain())
    whole = [path for path in places(data) if type(at(data, path)) is int]
    assert ("setting", "sample", "n_train") in whole
    for path in whole:
        text = json.dumps(put(data, path, float(at(data, path))))
        assert (first(text), alone(text)) == (None, None), path
    risk = next(c for name in SETTINGS for c in proved(name) if c.mu is not None and c.levels)
    tiny = json.dumps(claiming(risk) | {"mu": 5e-324})
    assert first(tiny) == pytest.approx(alone(tiny))


def test_a_checker_that_reads_less_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative controls: fields that nothing reads, budgets that nothing reads, parameters out of range."""

    def kept(where: str, data: Any, needs: Any, may: Any = ()) -> Any:
        return {key: value for key, value in data.items() if key in {*needs, *may}}

    data = json.loads(json.dumps(chain().to_json()))
    params = next(path for path in places(data) if path[-1:] == ("params",) and at(data, path))
    for place, wrong, path, value in (
        ("_strict.keys", kept, ("setting", "sample", "extra"), 1),
        ("_setting._account", lambda setting: None, ("setting", "norms", "budgets", "W_9"), {"op": 2.0}),
        ("_covers.within", lambda choice, ranges: None, (*params, "more"), 1.0),
    ):
        text = json.dumps(put(data, path, value))
        assert contradiction(text) is None
        with monkeypatch.context() as patch:
            patch.setattr(f"boundcalc.proof.second.{place}", wrong)
            assert contradiction(text) is not None, place


def test_the_text_itself_is_read_strictly(tmp_path: Path) -> None:
    """Keys given twice, NaN, infinities, numbers beyond floats, deep nesting; the first says in which file and why."""
    certificate, file = chain(), tmp_path / "c.json"
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
