"""Certificates of many kinds, found once."""

from __future__ import annotations

from functools import cache
from typing import Any

from boundcalc.engine.evaluate import compare
from boundcalc.engine.search import Search
from boundcalc.proof.certificate import Certificate
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Budget,
    Embedding,
    GatedFeedForward,
    LayerNorm,
    Linear,
    Normaliser,
    Norms,
    Pool,
    Residual,
    Setting,
    SoftCap,
)
from boundcalc.statements.premise import no_member
from boundcalc.theorems import POLICIES

SMALL: dict[str, Any] = {"depth": 1, "d": 8, "heads": 2, "seq_len": 5, "n_train": 10**6}

PARALLEL = (
    Embedding(10, 4),
    Residual(
        (LayerNorm("norm", 4, 1.0, block=0), Attention(4, 2, combine="concat", block=0), Linear("W_O", 8, 4, block=0)),
        ((Linear("W_1", 4, 5, bias="b_1", block=0), Activation("gelu"), Linear("W_2", 5, 4, block=0)),),
    ),
    Residual(
        (
            LayerNorm("norm", 4, 1.0, offset=True, block=1),
            Residual((Linear("W_1", 4, 4, block=1),), ((Linear("W_2", 4, 4, block=1),),), skip=False),
        )
    ),
    Ball(1.5),
    Pool(),
    Linear("readout", 4, 1),
)

CAPPED = (
    Embedding(10, 4),
    LayerNorm("norm", 4, 1.0, centred=False, around_one=True, block=0),
    Attention(4, 2, d_head=2, qk_bias=True, v_bias=True, cap=0.5, offsets="fixed", block=0),
    Attention(4, 2, d_head=2, qk="split", qk_bias=True, cap=0.5, block=1),
    GatedFeedForward(4, 6, bias=True, block=0),
    Pool(),
    Linear("readout", 4, 2),
    SoftCap(2, 0.3),
)

POOLED = (
    Linear("W_in", 3, 4, block=0),
    Residual((Attention(4, 2, qk="fixed", v_bias=True, block=0),)),
    Attention(4, 2, d_value=2, qk="fixed", combine="concat", normaliser=Normaliser("softmax1"), block=1),
    Pool(),
    Linear("readout", 4, 1),
)

NORMALISED = (
    Embedding(7, 4),
    Residual((Attention(4, 2, d_head=2, kv_heads=1, qk="split", qk_bias=True, qk_norm="head", qk_eps=0.5, block=0),)),
    Residual((GatedFeedForward(4, 5, block=0),)),
    Attention(
        4, 2, d_head=2, d_value=2, kv_heads=1, qk="split", combine="concat", qk_norm="width", qk_eps=0.1, block=1
    ),
    LayerNorm("norm", 4, 0.1),
    Attention(4, 2, d_head=2, d_value=2, combine="concat", offsets="learned", buckets=3, block=2),
    Pool(),
    Linear("readout", 4, 1),
)

SETTINGS = {
    "edelman": Setting.of(**SMALL),
    "deep": Setting.of(depth=2, d=64, C=1.5, n_train=10**9),
    "bert": Setting.of("bert", **SMALL, vocabulary=10, eps=1.0, C=0.3, margin=0.2),
    "gpt2": Setting.of("gpt2", **SMALL, vocabulary=10, eps=1.0, C=0.3, train_error=0.02),
    "llama": Setting.of("llama", **SMALL, vocabulary=10, d_ff=16, eps=1.0, C=0.3, margin=0.01),
    "vit": Setting.of("vit", **SMALL, d_patch=6, classes=3, eps=1.0, C=0.3),
    "heads": Setting.of(
        **SMALL,
        norms=Norms(
            C=1.0,
            budgets={f"W_V[0,{h}]": Budget(op=0.5 + h, two_one=1.0 + h) for h in range(2)}
            | {"W_1": Budget(op=1.0, distance=Budget(op=0.2))},
        ),
    ),
    "parallel": Setting.of(layers=PARALLEL, seq_len=5, n_train=10**6, C=0.3),
    "capped": Setting.of(layers=CAPPED, seq_len=5, n_train=10**6, C=0.5, classes=2, margin=0.3),
    "normalised": Setting.of(layers=NORMALISED, seq_len=5, n_train=10**6, C=0.4),
    "pooled": Setting.of(layers=POOLED, seq_len=5, n_train=10**6, norms=Norms(C=0.7, budgets={"q[1]": Budget(op=3.0)})),
    "comparison": Setting.of(depth=2, d=8, seq_len=5, n_train=10**6, C=0.9, margin=0.2),
    "stored": Setting.of(**SMALL, bits=4, C=9.0, margin=0.2, train_error=0.03),
    "looked at": Setting.of(**SMALL, C=2.0, margin=0.3, train_error=0.01, measured=("margin", "train_error")),
    "measured": Setting.of(
        **SMALL,
        norms=Norms(
            budgets={kind: Budget(op=0.9, two_one=1.7, nuclear=1.1) for kind in ("W_QK", "W_V", "W_1")}
            | {"readout": Budget(op=1.0)},
            measured=True,
        ),
    ),
}


@cache
def found(name: str) -> tuple[Certificate, ...]:
    """Every certificate that the policies' searches propose for a setting and the checker accepts."""
    setting = SETTINGS[name]
    if setting.norms.measured or setting.sample.measured:
        values = compare(setting)
        return tuple(proof.certificate for v in values for proof in v.proofs)
    searches = [Search(setting, policy) for policy in POLICIES.values() if policy.refuses(setting) is None]
    risks = no_member(setting) is None  # else they speak of no network (G0e)
    return tuple(
        f.certificate for s in searches for f in (*s.candidates("gap"), *(s.candidates("risk") if risks else ()))
    )


@cache
def proved(name: str) -> tuple[Certificate, ...]:
    """The same with the value they prove as their claim."""
    from boundcalc.proof.checker import check

    return tuple(check(c).certificate for c in found(name))
