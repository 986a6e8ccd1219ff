"""Answers are those of a function of one example: not of a batch, its order, earlier calls, or a changed input."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import boundcalc
from boundcalc.base.errors import BoundcalcError
from tests.checkpoints.layouts import NanoGPT

torch = pytest.importorskip("torch")
VOCABULARY, ROWS = 11, 6


def data(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, VOCABULARY, (n, ROWS)), rng.integers(0, 2, n)


class Plain(NanoGPT):
    """The negative control: a function of one example."""

    def logits(self, tokens: Any) -> Any:
        return NanoGPT.forward(self, tokens)[0]


class RanksInBatches(Plain):
    """In batches above 16 alone, as capacity limits of experts do, the answer depends on the others of the batch."""

    def forward(self, tokens: Any) -> Any:
        out = self.logits(tokens)
        if len(out) > 16:
            out = out * (1 + (out[:, -1].sum(-1).argsort().argsort() > len(out) // 2)[:, None, None])
        return out


class Counts(Plain):
    """Answers are negated after 60 sequences."""

    seen: ClassVar[int] = 0

    def forward(self, tokens: Any) -> Any:
        Counts.seen += len(tokens)
        return self.logits(tokens) * (-1 if Counts.seen > 60 else 1)


class WritesIntoItsInput(Plain):
    """Tokens are taken modulo 5, in place: the description must be compared with what was given, not with what is
    left."""

    def forward(self, tokens: Any) -> Any:
        return self.logits(tokens.remainder_(5))


class BranchesOnTokens(Plain):
    """Another function of sequences that begin with 3, of which the four of the first check have none."""

    def forward(self, tokens: Any) -> Any:
        return self.logits(tokens) * torch.where(tokens[:, :1, None] == 3, -1, 1)


def certified(kind: type[Any], seed: int = 0, methods: Any = ("held-out",)) -> Any:
    torch.manual_seed(0)
    x, y = data(60, seed)
    x[:4, 0] = 4
    return boundcalc.certify(kind().eval(), (x, y), test=data(40, 1), heads=4, methods=methods)


@pytest.mark.parametrize("kind", [RanksInBatches, Counts])
def test_what_depends_on_more_than_the_example_is_refused(kind: type[Any]) -> None:
    with pytest.raises(BoundcalcError, match=r"no function of one example"):
        certified(kind)


@pytest.mark.parametrize("kind", [Plain, WritesIntoItsInput, BranchesOnTokens])
def test_a_function_that_is_not_what_was_described_has_no_norm_bound(kind: type[Any]) -> None:
    found = certified(kind, methods=("norms", "held-out"))
    assert found["held-out"].risk is not None
    assert (found.setting is None) == (kind is not Plain)
    assert kind is Plain or found["norms: best"].refusal.startswith("not described")
