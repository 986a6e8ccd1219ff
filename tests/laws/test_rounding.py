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
from boundcalc import evaluate
from boundcalc.base import rounding
from boundcalc.base.errors import BoundcalcError
from boundcalc.cli import main
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import verify
from boundcalc.setting import Setting

FORMATS = ("table", "json")
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


def settings(random: Random, count: int) -> Iterator[Setting]:
    """Small settings whose bounds are of all sizes; trivial ones, and risks that speak of nothing, are not shown."""
    while count:
        try:
            setting = Setting.of(
                random.choice(("edelman", "gpt2", "bert")),
                depth=random.randint(1, 2),
                seq_len=random.randint(2, 300),
                d=random.choice((4, 16)),
                heads=random.choice((1, 2)),
                n_train=round(10 ** random.uniform(9, 15)),
                C=round(random.uniform(0.3, 2), 3),
                margin=10 ** random.uniform(-5, -0.5),
                delta=10 ** random.uniform(-9, -1),
            )
            value = evaluate(setting)
            if value.trivial or value.risk_certificate.quantity == "gap" or value.log_risk > math.log(0.9):
                continue
            yield setting
            count -= 1
        except BoundcalcError:
            continue


def shown_numbers(form: str, text: str) -> tuple[list[Decimal], list[Decimal]]:
    """What stands for the gap and for the risk, re-read."""
    if form == "json":
        row = json.loads(text)["results"][0]
        return tuple(  # type: ignore[return-value]
            [_power(float(row[f"log10_{q}"]))] + [Decimal(repr(float(row[q])))] * (float(row[q]) < 1)
            for q in ("gap", "risk")
        )
    line = next(line for line in text.splitlines() if re.match(r"best\s{3,}", line))
    cells = [cell for cell in re.split(r"\s{3,}", line) if cell]
    return tuple(_read(cell) for cell in cells[1:3])  # type: ignore[return-value]


def _power(log10: float) -> Decimal:
    with localcontext(prec=60):
        return Decimal(10) ** Decimal(log10)


def _read(cell: str) -> list[Decimal]:
    return [Decimal(x) for x in re.findall(_NUMBER, cell)][-1:]


def below(shown: list[Decimal], log_value: float) -> list[Decimal]:
    """The numbers among them that are below a checked value, or below 1 where that is above."""
    return [x for x in shown if not bool(arb(str(x)).log() >= arb(min(0.0, log_value)))]


@pytest.mark.parametrize("form", FORMATS)
def test_what_eval_shows_is_at_least_what_was_checked(form: str, tmp_path: Path) -> None:
    random, compared = Random(FORMATS.index(form)), 0
    for setting in settings(random, 2):
        path = tmp_path / "setting.json"
        path.write_text(json.dumps(setting.to_json()))
        proofs = [tmp_path / "gap.json", tmp_path / "risk.json"]
        line = ["eval", "--setting", str(path), "--bound", "best", "--no-solve", "--format", form]
        line += ["--certificate", str(proofs[0]), "--certificate-risk", str(proofs[1]), "--force"]
        outcome = CliRunner(env={"COLUMNS": "120"}).invoke(main, line)
        assert outcome.exit_code == 0, outcome.stderr
        for proof, shown in zip(proofs, shown_numbers(form, outcome.stdout), strict=True):
            checked = verify(Certificate.load(proof))
            compared += len(shown)
            assert below(shown, checked.log_value) == []
            less = [x * Decimal("0.99") for x in shown if x < 1]
            assert below(less, checked.log_value) == less
            told = " ".join(CliRunner().invoke(main, ["verify", str(proof)]).stdout.split())
            stated = re.search(rf"<= ({_NUMBER})", told)
            sure = re.search(r"probability at least (0\.\d+)", told)
            assert stated is not None
            assert sure is not None
            assert below([Decimal(stated[1])], checked.log_value) == []
            assert Decimal(sure[1]) <= 1 - Decimal(repr(setting.sample.delta))
            found = json.loads(CliRunner().invoke(main, ["verify", str(proof), "--format", "json"]).stdout)
            assert bool(arb(found["log10_value"]) * arb(10).log() >= arb(checked.log_value))
            assert found["value"] == 1 or below([Decimal(repr(found["value"]))], checked.log_value) == []
    assert compared >= 2


# -- the source


_ALLOWED: dict[str, str] = {}
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
    root = Path(boundcalc.__file__).parent
    found = {
        p.relative_to(root).as_posix(): calls for p in sorted(root.rglob("*.py")) if (calls := nearest(p.read_text()))
    }
    assert found.keys() == _ALLOWED.keys(), found


def test_a_module_that_rounds_a_bound_is_noticed() -> None:
    assert len(nearest('f"{value.gap:.4g}"; f"{x.log10:.2f}"; f"{1 - sample.delta:g}"')) == 3
    assert nearest('f"{up(value.gap)}"; f"{share:.0%}"; f"{x:>{width}}"') == []
