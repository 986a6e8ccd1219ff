"""Where heads look: numbers known by hand, the weights a module returns, and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import boundcalc
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.attended import attended, summary
from boundcalc.checkpoints.data import sequences

torch = pytest.importorskip("torch")
_ROWS = 12


def weights_of(*rows: Any) -> Any:
    """One sequence and one head, whose rows ask."""
    return [[np.array(rows, dtype=float)[None, None]]]


def test_one_place_all_places_and_a_causal_row() -> None:
    one = np.eye(_ROWS)[3]
    (sparse,) = summary(weights_of(one), given=[3]).heads
    assert (sparse.looks_at, sparse.top, sparse.on_given, sparse.kind) == (1, 1, 1, "sparse")
    (even,) = summary(weights_of(np.full(_ROWS, 1 / _ROWS)), given=[0, -1]).heads
    assert even.looks_at == pytest.approx(_ROWS)
    assert even.kind == "even"
    assert even.on_given == pytest.approx(2 / _ROWS)
    assert even.top == pytest.approx(2 / _ROWS)
    causal = np.tril(np.ones((_ROWS, _ROWS)))
    (head,) = summary(weights_of(*(causal / causal.sum(1, keepdims=True)))).heads
    assert head.spread == pytest.approx(
        1
    )  # each row looks at all it may see, the first has no choice and does not count
    assert head.looks_at == pytest.approx(np.mean(np.arange(2, _ROWS + 1)))


def test_against_sums_written_out() -> None:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(_ROWS), size=(5, 2, 7))
    found = summary([[weights[:3], weights[3:]]], given=[1, 4], largest=3)
    for head, seen in enumerate(found.heads):
        rows = [row for sequence in weights for row in sequence[head]]
        looks = [math.exp(-sum(p * math.log(p) for p in row)) for row in rows]
        assert seen.looks_at == pytest.approx(np.mean(looks))
        assert seen.top == pytest.approx(np.mean([sum(sorted(row)[-3:]) for row in rows]))
        assert seen.on_given == pytest.approx(np.mean([row[1] + row[4] for row in rows]))
    other = summary([[weights]], given=[0, 2], largest=3)
    assert other.heads[0].on_given != pytest.approx(found.heads[0].on_given)  # other places, another number
    assert summary([[weights]], largest=2).heads[0].top < found.heads[0].top


class _Pointer(torch.nn.Module):
    """Reads the token at place 2: one head looks there, the other everywhere; returns weights as `how` says."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.embedding = torch.nn.Embedding(5, 5)

    def forward(self, x: Any) -> Any:
        rows = self.embedding(x)
        n, length = x.shape
        weights = torch.full((n, 2, length, length), 1 / length, dtype=rows.dtype)
        weights[:, 0] = torch.eye(length, dtype=rows.dtype)[2]
        logits = (weights[:, 0] @ rows)[:, 0]
        if self.how == "tuple":
            return logits, weights
        return {"logits": logits, "attentions": (weights,)} if self.how == "dictionary" else logits


@pytest.mark.parametrize("how", ["tuple", "dictionary"])
def test_weights_are_found_in_what_a_module_returns(how: str) -> None:
    x = np.random.default_rng(0).integers(0, 5, (20, 6))
    found = attended(_Pointer(how), sequences((x, x[:, 2])), given=[2], sequences=8)
    assert [head.kind for head in found.heads] == ["between", "even"]  # 1 of 6 is more than a tenth
    assert [head.on_given for head in found.heads] == pytest.approx([1, 1 / 6])
    assert found.sequences == 8
    assert "2 heads look at 1.0 to 6.0 of 6 positions" in found.lines[0]
    assert "position 2 17% to 100%" in found.lines[0]


def test_a_model_of_transformers_is_told_to_return_them() -> None:
    from tests.checkpoints.live import SMALL, hf, seeded

    model = seeded(lambda: hf.BertForSequenceClassification(hf.BertConfig(**SMALL)))
    x = np.random.default_rng(0).integers(0, 31, (6, 9))
    found = boundcalc.certify(model, (x, x[:, 0] % 2), attention=[0], methods=["norms"])
    assert found.attention is not None
    with torch.no_grad():
        model.set_attn_implementation("eager")
        own = model.double()(torch.tensor(x), output_attentions=True).attentions
    given = [float(layer[:, head, :, 0].mean()) for layer in own for head in range(4)]
    assert [head.on_given for head in found.attention.heads] == pytest.approx(given, rel=1e-9)
    assert found.attention.lines[1] in found.text
    assert found.to_json()["attention"]["heads"][5]["layer"] == 1
    plain = boundcalc.certify(model, (x, x[:, 0] % 2), methods=["norms"])
    assert plain.attention is None
    assert "attention, layer" not in plain.text


def test_what_has_no_weights_to_show_is_refused() -> None:
    x = np.random.default_rng(0).integers(0, 5, (4, 6))
    data = sequences((x, x[:, 2]))
    with pytest.raises(InvalidSetting, match=r"must return its attentions.*it returns none"):
        attended(_Pointer("logits"), data)
    with pytest.raises(InvalidSetting, match=r"it returns \(4, 5\)"):
        attended(_Pointer("logits"), data, call=lambda module, x: (module(x), module(x)))
    with pytest.raises(InvalidSetting, match="position 6 is not one of 6"):
        attended(_Pointer("tuple"), data, given=[6])
    with pytest.raises(InvalidSetting, match="nothing to choose from"):
        attended(_Pointer("tuple"), sequences((x[:, :1], x[:, 0])), call=lambda m, x: (x, torch.ones(len(x), 1, 1, 1)))
