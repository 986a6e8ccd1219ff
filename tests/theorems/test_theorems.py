"""Theorem objects: their numbers against the checker and against written-out sums, their uses, their refusals."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import mpmath
import numpy as np
import pytest

import boundcalc.theorems as theorems
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.base.sources import EDELMAN2022
from boundcalc.engine.search import Search
from boundcalc.proof.checker import check
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.statements.latent import excess_risk, learning_gap
from boundcalc.statements.network import Network
from boundcalc.theorems import Policy, edelman2022

POINT: dict[str, Any] = {"C": 1.5, "m": 10**7, "d": 16, "heads": 2, "gamma": 1, "delta": 0.05}


def test_trauger_is_what_the_checker_proves() -> None:
    C, K = 1.5, 4.0
    norms = Norms(budgets={kind: Budget(op=C, one_one=K) for kind in ("W_QK", "W_V", "W_1", "readout")})
    setting = Setting.of(norms=norms, depth=3, d=64, heads=2, n_train=10**9, margin=1.0)
    policy = Policy("T3 alone", "", frozenset({"T3"}), "closed")
    (found,) = Search(setting, policy).gaps()
    checked = check(found.certificate).log_value
    formula = theorems.trauger2024.gap.value(C=C, K=K, m=10**9, depth=3, d=64, heads=2, gamma=1, delta=0.05)
    assert math.log(formula) == pytest.approx(checked, rel=1e-12)


@pytest.mark.parametrize("depth", [1, 4])
def test_x5_in_symbolic_depth_is_at_least_the_sum(depth: int) -> None:
    """X5 of the calculus on the pieces of a network with numbers; equal for one block, a little less for more."""
    setting = Setting.of(C=1.5, depth=depth, d=16, heads=2, n_train=10**7, margin=1.0)
    dimensions: list[float] = []
    stretches: list[float] = []
    for piece in Network(setting, FLOAT).pieces:
        (member,) = piece.members
        target = next(t for t in member.targets if t.kind in ("map", "query"))
        dimensions.append(member.multiplicity * target.size)
        stretches.append(2 * piece.gain * target.radius * target.norms.op)
    inverse = float(mpmath.log(20))
    want = learning_gap(FLOAT, dimensions, stretches, inverse, 10**7)
    values = POINT | {"depth": depth}
    got = theorems.zhang2022.gap.value(**values)
    assert want <= got * (1 + 1e-12)
    assert got == pytest.approx(want, rel=1e-12 if depth == 1 else 0.05)
    excess = theorems.zhang2022.formula("excess").value(**values)
    assert excess == pytest.approx(excess_risk(FLOAT, got, inverse, 10**7), rel=1e-12)


def test_a_bound_is_imported_in_a_few_lines() -> None:
    from boundcalc.theorems import edelman2022 as bound

    assert r"R(f)-\hat R_\gamma(f) &\le" in bound.latex()
    assert bound.cite().startswith("@inproceedings{edelman2022,")
    assert "eprint = {2110.10090}" in bound.cite()
    assert "@misc{boundcalc," in bound.cite()
    sweep = bound.lambdify("T", "C", "m", "depth", "d", "heads", "gamma", "delta")
    assert sweep(np.array([16.0, 256.0]), 1.0, 1e9, 2, 64, 1, 1, 0.05).shape == (2,)
    assert bound.published.kind == "proxy"
    assert "c" in {symbol.name for symbol in bound.published.inputs}
    assert bound.source is EDELMAN2022
    assert any("In $C$:" in line for line in bound.differences())
    assert bound._repr_latex_().startswith("$$")


def test_what_a_theorem_does_not_have_is_refused_with_what_it_has() -> None:
    with pytest.raises(Unsupported, match=r"theorem edelman2022_head .* one of covering_number"):
        _ = theorems.edelman2022_head.gap
    with pytest.raises(Unsupported, match="The theorem edelman2022 has it"):
        theorems.zhang2022.formula("rademacher")
    with pytest.raises(InvalidSetting, match="did you mean 'gap'"):
        edelman2022.formula("gaps")


def test_importing_theorems_or_evaluating_imports_no_sympy() -> None:
    program = (
        "import sys, boundcalc.theorems\n"
        "assert 'sympy' not in sys.modules, 'importing boundcalc.theorems imported sympy'\n"
        "import boundcalc\n"
        "boundcalc.evaluate(boundcalc.Setting.of(depth=1, n_train=1000), 'closed')\n"
        "assert 'sympy' not in sys.modules, 'evaluate imported sympy'\n"
        "from boundcalc.theorems import edelman2022\n"
        "_ = edelman2022.cite(), edelman2022.assumptions\n"
        "assert 'sympy' not in sys.modules\n"
        "_ = edelman2022.gap\n"
        "assert 'sympy' in sys.modules\n"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_bibtex_says_where_a_paper_appeared() -> None:
    from boundcalc.base import sources

    article, proceedings, preprint = sources.ZHANG2002.bibtex, sources.EDELMAN2022.bibtex, sources.SAKAI2026.bibtex
    assert article.startswith("@article{zhang2002,")
    assert "journal = {Journal of Machine Learning Research}" in article
    assert "volume = {2}" in article
    assert proceedings.startswith("@inproceedings{edelman2022,")
    assert "eprint = {2110.10090}" in proceedings
    assert preprint.startswith("@misc{sakai2026,")
    assert "howpublished = {arXiv:2605.07297}" in preprint
    for text in (article, proceedings, preprint):
        assert text.count("{") == text.count("}")
