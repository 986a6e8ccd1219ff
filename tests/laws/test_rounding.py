"""Law: a number that is shown is on the safe side: at least the bound, at most the guarantee, in every format."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from flint import arb

import boundcalc
from boundcalc.base import rounding
from boundcalc.cli import main
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import verify

_NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"


def sizes(random: Random, count: int) -> Iterator[float]:
    """Numbers of all magnitudes, and some that are short in decimals."""
    for _ in range(count):
        x = 10 ** random.uniform(-300, 300) if random.random() < 0.5 else 10 ** random.uniform(-6, 6)
        yield float(f"{x:.{random.randrange(3)}e}") if random.random() < 0.4 else x


def wrong_up(show: Callable[[float], str], count: int = 3000) -> int:
    return sum(Decimal(show(x)) < Decimal(x) for x in sizes(Random(1), count))


def test_upper_bounds_are_rounded_up_and_guarantees_down() -> None:
    assert wrong_up(rounding.up) == 0
    for x in sizes(Random(2), 3000):
        low, high = Decimal(rounding.down(x)), Decimal(rounding.up(x))
        assert low <= Decimal(x) <= high
        assert high - low <= Decimal(x) / 999
        assert Decimal(rounding.down(-x)) <= -Decimal(x) <= Decimal(rounding.up(-x))


def test_rounding_to_nearest_is_noticed() -> None:
    assert wrong_up(lambda x: f"{x:.4g}") > 500


def test_logarithms_are_rounded_up() -> None:
    random = Random(3)
    for _ in range(2000):
        log = random.choice((random.uniform(-600, 600), random.uniform(-20, 20), math.log(10) * random.randint(-9, 9)))
        shown = arb(rounding.upper(rounding.log10_up(log)))
        assert bool(shown.log() >= arb(log))
        assert bool(arb(rounding.value_up(min(0.0, log))) >= arb(min(0.0, log)).exp())
    for log in (2000.0, -2000.0, 1e6, -123456.789):
        exponent = rounding.upper(rounding.log10_up(log)).removeprefix("10^")
        assert bool(arb(exponent) * arb(10).log() >= arb(log))
    assert rounding.upper(rounding.log10_up(2000.0)) == "10^868.6"


def test_a_size_that_is_needed_is_not_below_itself_nor_one_that_is_allowed_above() -> None:
    random = Random(4)
    for _ in range(2000):
        x = random.choice((random.randint(1, 10**18), random.uniform(0, 100), random.randint(1, 10**6)))
        value = Decimal(repr(x)) if isinstance(x, float) else Decimal(x)
        least, most = (Decimal(f(x).replace("10^", "1e")) for f in (rounding.at_least, rounding.at_most))
        assert most <= value <= least
        if x < 10**6 and isinstance(x, int):
            assert most == least == value


@pytest.mark.parametrize("delta", [0.05, 0.01, 0.5, 1e-9, 1e-6, 0.012345678, 0.99, 1e-30, 0.3333333333])
def test_a_confidence_is_rounded_down_and_never_1(delta: float) -> None:
    text = rounding.confidence(delta)
    with localcontext(prec=60):
        shown = Decimal(1) - Decimal(text.removeprefix("1 - ")) if text.startswith("1 - ") else Decimal(text)
        assert 1 - Decimal(repr(delta)) * Decimal("1.001") <= shown <= 1 - Decimal(repr(delta))
        assert shown < 1
    assert rounding.confidence(0.05) == "0.95"


# -- commands


LINES = (
    "--depth 1 --T 37 --d 16 --m 3.1e11 --C 0.83 --gamma 0.0017 --delta 3.3e-4",
    "--preset bert --depth 2 --T 51 --d 16 --heads 2 --m 7.7e14 --C 0.61 --gamma 3.1e-5 --delta 7e-8",
)


def run(*words: str) -> str:
    outcome = CliRunner(env={"COLUMNS": "120"}).invoke(main, words)
    assert outcome.exit_code == 0, outcome.stderr
    return " ".join(outcome.stdout.split())


def shown(line: str, folder: Path) -> Iterator[tuple[arb, float]]:
    """Logs of the numbers that commands show for the gap and the risk, each with the log of what was checked."""
    proofs = {"gap": str(folder / "gap.json"), "risk": str(folder / "risk.json")}
    evaluated = ("eval", *line.split(), "--bound", "best", "--no-solve", "--force")
    files = ("--certificate", proofs["gap"], "--certificate-risk", proofs["risk"])
    cells = re.search(rf"best ({_NUMBER}) ({_NUMBER}) ", run(*evaluated, *files))
    assert cells is not None
    result = json.loads(run(*evaluated, "--format", "json"))["results"][0]
    for cell, (quantity, proof) in zip(cells.groups(), proofs.items(), strict=True):
        log_value = verify(Certificate.load(proof)).log_value
        stated = re.search(rf"<= ({_NUMBER})", run("verify", proof))
        data = json.loads(run("verify", proof, "--format", "json"))
        assert stated is not None
        for text in (cell, repr(result[quantity]), stated[1], repr(data["value"])):
            yield arb(text).log(), log_value
        for log10 in (result[f"log10_{quantity}"], data["log10_value"]):
            yield arb(log10) * arb(10).log(), log_value


@pytest.mark.parametrize("line", LINES)
def test_what_commands_show_is_at_least_what_was_checked(line: str, tmp_path: Path) -> None:
    numbers = list(shown(line, tmp_path))
    assert len(numbers) == 12
    for log, log_value in numbers:
        assert log_value < -0.1
        assert bool(log >= log_value)
        assert not bool(log + math.log(0.99) >= log_value)


def test_verify_states_no_more_confidence_than_there_is(tmp_path: Path) -> None:
    proof = str(tmp_path / "gap.json")
    run("eval", *LINES[0].split(), "--no-solve", "--certificate", proof)
    sure = re.search(r"probability at least (0\.\d+)", run("verify", proof))
    assert sure is not None
    assert 0.999 < Decimal(sure[1]) <= 1 - Decimal("3.3e-4")


# -- the source


_BOUNDS = {"gap", "risk", "log10", "log_value", "log_risk", "predicted", "bound"}


def nearest(source: str) -> list[str]:
    """Bounds and confidences that an f-string rounds by itself."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FormattedValue) or node.format_spec is None:
            continue
        value, spec = node.value, ast.unparse(node.format_spec)
        if not re.search(r"\.\d+[gfe%]|g'$", spec):
            continue
        bound = isinstance(value, ast.Attribute) and value.attr in _BOUNDS
        sure = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) and "delta" in ast.unparse(value)
        if bound or sure:
            found.append(f"{ast.unparse(value)} in line {node.lineno}")
    return found


def test_no_module_rounds_a_bound_by_itself() -> None:
    calls = {path: nearest(path.read_text()) for path in Path(boundcalc.__file__).parent.rglob("*.py")}
    assert {path: found for path, found in calls.items() if found} == {}


def test_a_module_that_rounds_a_bound_is_noticed() -> None:
    assert len(nearest('f"{value.gap:.4g}"; f"{x.log10:.2f}"; f"{1 - sample.delta:g}"')) == 3
    assert nearest('f"{up(value.gap)}"; f"{share:.0%}"; f"{x:>{width}}"') == []
