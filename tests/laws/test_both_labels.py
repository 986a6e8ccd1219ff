"""Every risk bound that is printed speaks of a network that is built, with margins above gamma on inputs of both labels
(G0e).

The network comes as arrays. Its norms are measured by the certified routine, its outputs by the library's forward pass.
One block of one head attains the largest margin. Deeper, the margins between that built and that not excluded are
refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from flint import arb

from boundcalc import Setting
from boundcalc.base.errors import Unsupported
from boundcalc.base.intervals import upper_float
from boundcalc.engine import _witness as witness
from boundcalc.engine._witness import built_margin, no_witness
from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.search import Search
from boundcalc.proof.checker import check
from boundcalc.setting import PRESETS, Normaliser
from boundcalc.statements.premise import _margin_of_class, margin_on_both_labels, no_member
from boundcalc.testing._drawing import Array, Parameters
from boundcalc.theorems import POLICIES
from tests.laws.member import climb, member
from tests.laws.settings import edelman, settings, small
from tests.proof import alone
from tests.proof.both import refusals
from tests.soundness.network import Network, outputs, outside

ROUNDING = 1e-9


def shown(setting: Setting) -> float:
    """The smaller margin of the network that is built, after a look at its norms and its inputs."""
    weights, inputs = member(setting)
    a = setting.architecture
    assert outside(setting, weights) == set()
    assert a.vocabulary or np.linalg.norm(inputs, axis=-1).max() <= a.input_radius * (1 + ROUNDING)
    if a.normaliser.name == "custom":  # nobody can run it: it is eight tenths of softmax
        setting = replace(setting, architecture=replace(a, normaliser=Normaliser("softmax")))
        weights = {key: 0.8 * w if key[0] in ("W_V", "b_V") else w for key, w in weights.items()}
    first, second = outputs(setting, weights, inputs)
    if a.classes == 1:
        return max(min(first[0], -second[0]), min(-first[0], second[0]))
    return float(min(first[0] - first[1:].max(), second[1] - np.delete(second, 1).max()))


def confirm(setting: Setting) -> float:
    """The network built has the margin that is claimed, which no network exceeds: its share of the largest not
    excluded."""
    claimed, most = built_margin(setting), upper_float(margin_on_both_labels(setting))
    assert claimed <= most * (1 + ROUNDING)
    if claimed:
        assert shown(setting) == pytest.approx(claimed, rel=1e-6)
    return claimed / most if most else 1.0


def cases() -> Iterator[Setting]:
    for name in PRESETS:
        for changes in ({}, {"C": 0.7}, {"depth": 1, "heads": 1}, {"depth": 4, "C": 2.0}, {"readout": "mean"}):
            yield small(name, **changes)
    own = {"style": "post", "residual": True, "vocabulary": 6, "positions": "learned", "normalisation": "none"}
    for row in (0, 1, 4):
        yield Setting.of("edelman", depth=1, C=1.0, d=4, seq_len=5, own_row=row, **own)
    for setting in settings("members", 150):
        yield setting.but(seq_len=min(setting.architecture.seq_len, 6))


def confirm_all() -> list[float]:
    """The shares of all cases."""
    return [confirm(setting) for setting in cases()]


def test_the_network_built_has_the_margin_that_is_claimed() -> None:
    shares = confirm_all()
    assert sum(share > 0 for share in shares) > 90
    assert sum(share > 1 - 1e-5 for share in shares) > 10


WRONG: dict[str, tuple[str, Callable[..., Any]]] = {
    "relu that keeps negative numbers": (
        "_activated",
        lambda old: lambda name, x: x if name == "relu" else old(name, x),
    ),
    "weights beyond their budget": ("_largest_factor", lambda old: lambda *about: old(*about) * arb("1.0001")),
    "softmax1 that forgets its one": (
        "_mass",
        lambda old: (
            lambda layer, *rest, **more: arb(1) if layer.normaliser.name == "softmax1" else old(layer, *rest, **more)
        ),
    ),
    "the margin of one label": (
        "_margin",
        lambda old: lambda state, classes: abs(state.rows[0][0]) + old(state, classes),
    ),
    "heads that are counted twice": (
        "State.written",
        lambda old: lambda state, *rest: old(state._replace(starts=[*state.starts] * 2), *rest),
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_construction_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, changed = WRONG[what]
    monkeypatch.setattr(f"{witness.__name__}.{name}", changed(attrgetter(name)(witness)))
    with pytest.raises(AssertionError):
        confirm_all()


def test_a_risk_is_printed_just_where_the_network_is_built() -> None:
    printed = refused = 0
    rng = random.Random(3)
    for setting in cases():
        built, most = built_margin(setting), upper_float(margin_on_both_labels(setting))
        asked = setting.but(
            margin=max(1e-9, rng.choice((built, most))) * rng.choice((0.02, 0.3, 0.99, 1.01)), train_error=0.0
        )
        refusal = no_witness(asked)
        assert (refusal is None) == (built > asked.sample.margin)
        printed, refused = printed + (refusal is None), refused + (refusal is not None)
        assert no_member(asked) is None or refusal is not None
    assert min(printed, refused) > 35


@pytest.mark.parametrize("preset", PRESETS)
def test_the_defaults_speak_of_both_labels(preset: str) -> None:
    """`boundcalc eval --preset NAME`."""
    setting = Setting.of(preset, C=1.0)
    assert built_margin(setting) > setting.sample.margin
    assert evaluate(setting).risk_refusal is None


def test_what_is_said_where_nothing_is_built() -> None:
    """One sentence with the largest margins built and not excluded; beyond these certificates are refused."""
    deep = Setting.of(depth=4, seq_len=512)
    said = str(evaluate(deep).risk_refusal)
    assert "gamma 0.12, while the largest margin that a network is built with is 0.0156249" in said
    assert "margins up to 0.353554 are not excluded" in said
    with pytest.raises(Unsupported, match="no network is built"):
        evaluate(deep.but(normaliser=Normaliser("linear"))).of("risk")
    assert check(Search(deep, POLICIES["parameters"]).candidates("risk")[0].certificate)


def test_measured_margins_are_a_witness() -> None:
    """The trained network itself has them."""
    deep = Setting.of(depth=4, seq_len=512, train_error=0.1)
    assert no_witness(deep, measured=True) is None
    assert evaluate(deep.but(measured=("train_error",))).risk_refusal is None
    assert no_witness(deep.but(margin=0.4), measured=True) is not None


def test_one_block_attains_the_largest_margin_on_both_labels() -> None:
    rng, halved = random.Random("one block"), 0
    for _ in range(150):
        setting = edelman(rng, depth=1, heads=1, d=rng.choice((2, 4)), seq_len=rng.randint(1, 4))
        most = upper_float(margin_on_both_labels(setting))
        assert built_margin(setting) == pytest.approx(most, rel=ROUNDING)
        halved += most < 0.999 * upper_float(_margin_of_class(setting))
    assert halved > 60


def test_no_network_has_more_on_both_labels() -> None:
    """Random steps of weights and of two inputs come near the largest margin, and not beyond it."""
    rng = np.random.default_rng(0)

    def margin(network: Network, weights: Parameters, xs: list[Array]) -> float:
        return min(float(network.run(weights, x)[0, 0]) * sign for x, sign in zip(xs, (1, -1), strict=True))

    dice, shares = random.Random("climb"), list[float]()
    for _ in range(12):
        setting = edelman(dice, depth=dice.choice((1, 1, 2)), d=2, seq_len=dice.randint(1, 4))
        most = upper_float(margin_on_both_labels(setting))
        shares.append(climb(setting, rng, [2, 2], margin) / most)
    assert max(shares) <= 1 + ROUNDING
    assert sum(share > 0.5 for share in shares) >= 3


def test_the_law_sees_a_margin_that_one_label_alone_has() -> None:
    """Between the two margins a network of one label is built in vain: both checkers refuse the risk."""
    setting = Setting.of(depth=1, d=4, seq_len=2, margin=0.5)
    assert built_margin(setting) < setting.sample.margin < upper_float(_margin_of_class(setting))
    met = setting.but(margin=0.3)
    certificate = check(Search(met, POLICIES["best"]).candidates("risk")[0].certificate).certificate
    alone.log_value(certificate)
    assert all("label" in why for why in refusals(replace(certificate, setting=setting)))
