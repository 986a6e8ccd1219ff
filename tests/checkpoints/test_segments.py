"""The table of token types: a further row added to every row."""

from __future__ import annotations

import pytest

from boundcalc import Architecture, Budget, Norms, Sample, Setting, evaluate
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.lab.train.parameters import parameters
from boundcalc.setting import Attention, Embedding, Linear, Pool
from boundcalc.statements.compose import lower

BUDGETS = {
    "embedding": Budget(row=2.0),
    "positions": Budget(row=0.5),
    "segments": Budget(row=0.25),
    "W_QK": Budget(op=1, two_one=1),
    "W_V": Budget(op=1, two_one=1),
    "readout": Budget(op=1, two_one=1),
}


def setting(segments: int) -> Setting:
    layers = (Embedding(10, 4, "learned", segments=segments), Attention(4), Pool(), Linear("readout", 4, 1))
    budgets = BUDGETS if segments else {k: b for k, b in BUDGETS.items() if k != "segments"}
    return Setting(Architecture(layers=layers, seq_len=8), Norms(budgets=budgets), Sample(n_train=10**8, margin=1.0))


def test_segments_widen_the_radius_and_are_covered() -> None:
    plain, typed = lower(setting(0), FLOAT), lower(setting(2), FLOAT)
    assert plain.radius == pytest.approx(2.5)
    assert typed.radius == pytest.approx(2.75)
    new = [piece for piece in typed.pieces if piece.key == "segments"]
    assert len(new) == 1
    target = new[0].members[0].targets[0]
    assert (target.d, target.k, target.points.count(100)) == (2, 4, 2)
    assert evaluate(setting(0)).log10 < evaluate(setting(2)).log10


def test_segments_travel_and_need_a_budget() -> None:
    again = Setting.from_json(setting(2).to_json())
    assert again == setting(2)
    without = Norms(budgets={k: b for k, b in BUDGETS.items() if k != "segments"})
    with pytest.raises(InvalidSetting, match="segments"):
        evaluate(Setting(setting(2).architecture, without))
    with pytest.raises(InvalidSetting, match="segments"):
        Embedding(10, 4, segments=-1)


def test_segments_are_not_trained_here() -> None:
    """They would be left out of the model silently."""
    assert "W_V" in parameters(setting(0).architecture)
    with pytest.raises(Unsupported, match="a table of segments") as caught:
        parameters(setting(2).architecture)
    assert "\n" not in str(caught.value)
