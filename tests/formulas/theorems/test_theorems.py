"""Theorem objects: their numbers against the checker and against written-out sums, their uses, their refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import boundcalc.formulas.theorems as theorems
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.base.sources import EDELMAN2022
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems import THEOREMS, Policy, edelman2022
from boundcalc.proof.certificate import Certificate, Choice, Cover, Level
from boundcalc.proof.checker import check
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.statements.compose import lower
from boundcalc.statements.covers import LEMMAS, T4, T6
from boundcalc.statements.gap import sparse_class_size
from boundcalc.statements.general import GeneralAttention, choose_share, log_count
from boundcalc.statements.latent import excess_risk, learning_gap
from boundcalc.statements.targets import MatrixNorms, Points, Target

POINT: dict[str, Any] = {"C": 1.5, "m": 10**7, "d": 16, "heads": 2, "gamma": 1, "delta": 0.05}


def test_trauger_is_what_the_checker_proves() -> None:
    C, K = 1.5, 4.0
    norms = Norms(budgets={kind: Budget(op=C, one_one=K) for kind in ("W_QK", "W_V", "W_1", "readout")})
    setting = Setting.of(norms=norms, depth=3, d=64, heads=2, n_train=10**9, margin=1.0)
    policy = Policy("T3 alone", "", frozenset({"T3"}), "closed")
    (found,) = Search(setting, policy).gaps()
    checked = check(found.certificate).log_value
    formula = theorems.trauger2024.gap.mp(C=C, K=K, m=10**9, depth=3, d=64, heads=2, gamma=1, delta=0.05)
    assert float(mpmath.log(formula)) == pytest.approx(checked, rel=1e-12)


def one_cover(setting: Setting, lemma: str) -> float:
    """The checker's value of X5: every piece at an equal share of 1/m."""
    low = lower(setting, FLOAT)
    m, pieces = setting.sample.n_train, low.pieces
    covers: dict[str, Cover] = {}
    for piece in pieces:
        target = next(i for i, t in enumerate(piece.members[0].targets) if t.kind in LEMMAS[lemma].kinds)
        log_eps = mpmath.log(mpf(1) / (len(pieces) * m * mpf(piece.gain))) - mpf("1e-13")
        covers[piece.key] = Cover(float(log_eps), (Choice(lemma, target),))
    level = Level(-float(mpmath.log(m)), covers)
    return check(Certificate(setting, "by hand", "uniform-single", (level,))).log_value


@pytest.mark.parametrize("depth", [1, 2, 6])
def test_parameter_counting_is_what_the_checker_proves(depth: int) -> None:
    setting = Setting.of(C=1.5, depth=depth, d=16, heads=2, n_train=10**7, margin=1.0)
    checked = one_cover(setting, "T4")
    formula = float(mpmath.log(theorems.parameters.gap.mp(depth=depth, **POINT)))
    assert checked <= formula + 1e-12
    assert formula == pytest.approx(checked, abs=1e-9 if depth == 1 else 0.05)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize(("name", "factor"), [("zhang2022", 2), ("truong2024", 4)])
def test_x5_in_symbolic_depth_is_at_least_the_sum(name: str, factor: int, depth: int) -> None:
    """X5 of the calculus on the pieces of a network with numbers; equal for one block, a little less for more."""
    setting = Setting.of(C=1.5, depth=depth, d=16, heads=2, n_train=10**7, margin=1.0)
    rank = 3
    dimensions: list[float] = []
    stretches: list[float] = []
    for piece in lower(setting, FLOAT).pieces:
        (member,) = piece.members
        target = next(t for t in member.targets if t.kind in ("map", "query"))
        low_rank = name == "truong2024" and piece.key != "readout"
        parameters = rank * (target.d + target.k) if low_rank else target.size
        dimensions.append(member.multiplicity * parameters)
        stretches.append((factor if low_rank else 2) * piece.gain * target.radius * target.norms.op)
    inverse = float(mpmath.log(20))
    want = learning_gap(FLOAT, dimensions, stretches, inverse, 10**7)
    values = POINT | {"depth": depth} | ({"rank": rank} if name == "truong2024" else {})
    got = THEOREMS[name].gap.value(**values)
    assert want <= got * (1 + 1e-12)
    assert got == pytest.approx(want, rel=1e-12 if depth == 1 else 0.05)
    excess = THEOREMS[name].formula("excess").value(**values)
    assert excess == pytest.approx(excess_risk(FLOAT, got, inverse, 10**7), rel=1e-12)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("eps", [0.3, 1e-3, 1e-6])
def test_spectrum_adaptive_count_is_at_least_t6_piece_by_piece(depth: int, eps: float) -> None:
    C, p, total, d = 1.5, 0.8, 5.0, 16
    setting = Setting.of(C=C, depth=depth, d=d, heads=2, lipschitz=1.0)
    pieces = lower(setting, FLOAT).pieces
    count = 0.0
    for piece in pieces:
        (member,) = piece.members
        share = eps / len(pieces) / piece.gain
        if piece.key == "readout":
            target = member.targets[0]
            count += T4.closed(FLOAT, T4.reach(target) / share, target, 1)
            continue
        norms = MatrixNorms(C, C, C, C, C, C, d, (p, total / C**p))
        target = Target("map", d, d, 1.0, norms, Points(1))
        y = C / share
        count += member.multiplicity * (T6.closed(FLOAT, y, target, 1) if y > 1 else 0.0)
    got = theorems.sakai2026.covering_number.value(C=C, depth=depth, d=d, heads=2, p=p, S_p=total, epsilon=eps)
    assert 0 < count <= got


def test_general_attention_is_e_at_the_best_share() -> None:
    values = {"A_s": 7.0, "A_in": 3.0, "c_n": 0.5, "mu": 1.5, "L_out": 2.0, "B_in": 0.8}
    attention = GeneralAttention(
        score=lambda ns, eps: 7.0 / eps**2,
        feature=lambda ns, eps: 3.0 / eps**2,
        lipschitz_out=2.0,
        bound_in=0.8,
        c=0.5,
        mu=1.5,
        uniform=False,
    )
    share = choose_share(attention, 0.1)
    want = log_count(FLOAT, attention, 0.1, share)
    got = theorems.edelman2022_attention.covering_number.value(epsilon=0.1, **values)
    assert got == pytest.approx(want, rel=1e-6)
    assert got <= want * (1 + 1e-12)


def test_finite_classes_count_at_least_their_functions() -> None:
    for s, T in ((1, 1), (2, 7), (3, 40), (5, 1000)):
        got = theorems.sparse_boolean.covering_number.value(s=s, T=T)
        assert sparse_class_size(FLOAT, s, T) <= got <= 1.6 * sparse_class_size(FLOAT, s, T) + 1


def test_a_bound_is_imported_in_a_few_lines() -> None:
    from boundcalc.formulas.theorems import edelman2022 as bound

    assert r"\mathrm{gap} &\le" in bound.latex()
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
        "import sys, boundcalc.formulas.theorems\n"
        "assert 'sympy' not in sys.modules, 'importing boundcalc.formulas.theorems imported sympy'\n"
        "import boundcalc\n"
        "boundcalc.evaluate(boundcalc.Setting.of(depth=1, n_train=1000), 'closed')\n"
        "assert 'sympy' not in sys.modules, 'evaluate imported sympy'\n"
        "from boundcalc.formulas.theorems import edelman2022\n"
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
