"""Chains whose levels refine one another (G12): the order of what levels add, and what does not pay
(docs/theory.md)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.engine.search import Candidate, Search
from boundcalc.proof.certificate import Certificate, Cover, Level
from boundcalc.proof.checker import check
from boundcalc.setting import Architecture, Attention, Budget, Normaliser, Setting
from boundcalc.theorems.policies import POLICIES
from tests.proof import alone
from tests.soundness.network import merged


def least(setting: Setting) -> Candidate:
    """The least gap by covers."""
    search = Search(setting, replace(POLICIES["best"], comparison=False))
    return min(search.candidates("gap"), key=lambda found: found.log_value)


def coarse() -> Certificate:
    """A chain of two levels: the second refines the read-out alone and keeps all else, so that it adds little."""
    certificate = least(Setting.of(depth=1, d=16, n_train=10**6, margin=1.0)).certificate
    assert certificate.strategy == "chain"
    fine = certificate.levels[0]
    cover = fine.covers["readout"]
    wide = Level(fine.log_scale + 0.3, {**fine.covers, "readout": Cover(cover.log_eps + 0.6, cover.choices)})
    kept = {
        key: Cover(each.log_eps, tuple(replace(x, lemma="T4", params={"t": 0.01}, refines=True) for x in each.choices))
        for key, each in fine.covers.items()
    }
    return replace(certificate, levels=(wide, Level(fine.log_scale, kept)), log_value=1e6, nats=1e6)


def test_a_chain_that_adds_less_and_less_is_refused() -> None:
    """What the first level need not use the second may: links taken one by one would be too little."""
    for checker in (check, alone.log_value):
        with pytest.raises(CertificateError, match="links"):
            checker(coarse())
    falls = coarse()
    check(replace(falls, levels=falls.levels[:1]))


def test_separate_maps_for_products_of_scores_cost_more() -> None:
    """A6: a query map A W_QK and a key map A, in place of A W_QK A'."""
    setting = Setting.of(depth=2, seq_len=512, n_train=10**6, margin=0.5)
    whole = merged(setting)
    assert whole is not None
    budgets = {key: budget for key, budget in whole.norms.budgets.items() if key != "W_QK[1]"}
    apart = {"W_Q[1]": Budget(op=1.0, two_one=1.0), "W_K[1]": Budget(op=1.0, two_one=1.0)}
    layers = tuple(
        replace(layer, qk="split", d_head=64, normaliser=Normaliser("softmax", 1.0))
        if isinstance(layer, Attention) and layer.block == 1
        else layer
        for layer in whole.architecture.stages
    )
    architecture = Architecture(seq_len=512, layers=layers)
    other = least(Setting(architecture, replace(whole.norms, budgets={**budgets, **apart}), setting.sample))
    assert math.exp(other.log_value - least(setting).log_value) == pytest.approx(1.15, abs=0.01)
