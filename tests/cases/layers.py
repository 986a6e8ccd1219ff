"""Cases of the library's layers: every kind of them as files write it, what must be refused, and false claims.

A residual has no rule of its own: what is tried is what composition says of it (L8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.intervals import INTERVAL
from boundcalc.base.schema import read
from boundcalc.checkpoints.forward import rotary
from boundcalc.layers.facts import Context, Facts, Slot
from boundcalc.layers.forward import Fixed
from boundcalc.layers.rows import ACTIVATION_LIPSCHITZ
from boundcalc.setting import Layer, Norms
from boundcalc.testing._judge import Cases
from boundcalc.testing._layers import POINTS, LayerExample, Rule, claimed

_Fields = Mapping[str, Any]
_KNOB: _Fields = {"C": 1.3}
_SHARP: _Fields = {"C": 1.3, "budgets": {"W_gate": {"op": 60.0}}}
_GAINS: _Fields = {
    "C": 1.0,
    "budgets": {"norm.gain": {"sup": 1.2}, "norm_Q.gain": {"sup": 1.1}, "norm_K.gain": {"sup": 0.9}},
}
_OFFSETS: _Fields = {"C": 1.0, "budgets": {"score_offsets": {"sup": 0.7}}}
_LIMITS: _Fields = {"budgets": {"W": {"op": 1.5, "F": 1.7, "rank": 2}, "c": {"op": 0.4}}}
_TABLES: _Fields = {"budgets": {"embedding": {"row": 1.2}, "positions": {"row": 0.5}, "segments": {"row": 0.3}}}
_LOOKED_UP: _Fields = {
    "budgets": {
        **{f"{what}_scores": {"sup": 1.5} for what in ("token", "position")},
        **{f"{what}_values": {"heads": 0.8} for what in ("token", "position")},
    }
}
_HEADS: _Fields = {"budgets": {"W_QK": {"op": 1.5}, "W_V[0]": {"op": 1.3}, "W_V[0,1]": {"op": 0.4}}}
_FACTORS: _Fields = {
    "budgets": {"W_Q": {"op": 1.2}, "W_K": {"op": 0.8}, "b_Q": {"op": 0.6}, "b_K": {"op": 0.5}, "W_V": {"op": 1.3}}
}
_SPLIT: _Fields = {
    "d": 4, "heads": 2, "d_head": 2, "d_value": 2, "qk": "split", "combine": "concat", "causal": True, "block": 0,
}  # fmt: skip
_ATTENTION: _Fields = {"d": 3, "heads": 2, "block": 0}

_EXAMPLES: Mapping[str, list[tuple[_Fields, _Fields]]] = {
    "linear": [
        ({"kind": "W", "d_in": 3, "d_out": 2}, _KNOB),
        ({"kind": "W", "d_in": 3, "d_out": 3, "bias": "c"}, _LIMITS),
    ],
    "activation": [({"name": name}, _KNOB) for name in ACTIVATION_LIPSCHITZ],
    "ball": [({"radius": 0.7}, _KNOB)],
    "softcap": [({"d": 3, "cap": 0.3}, _KNOB)],
    "layernorm": [
        ({"kind": "norm", "d": 3, "eps": 0.1}, _GAINS),
        ({"kind": "norm", "d": 3, "eps": 0.2, "offset": True, "centred": False}, _GAINS),
        ({"kind": "norm", "d": 3, "eps": 0.1, "around_one": True}, _GAINS),
    ],
    "gated": [
        ({"d": 3, "d_ff": 4, "activation": "silu", "block": 0}, _KNOB),
        ({"d": 3, "d_ff": 4, "activation": "gelu", "bias": True, "block": 0}, _KNOB),
        ({"d": 1, "d_ff": 1, "activation": "relu", "block": 0}, _KNOB),
    ],
    "hidden": [
        ({"first": "W", "last": "v", "d": 3, "d_ff": 4, "activation": name, "bias": bias}, _KNOB)
        for name, bias in (("relu", None), ("gelu", "c"))
    ],
    "embedding": [
        ({"vocabulary": 5, "d": 3}, _KNOB),
        ({"vocabulary": 5, "d": 3, "positions": "learned", "segments": 2}, _TABLES),
        ({"vocabulary": 5, "d": 3, "positions": "fixed", "position_radius": 0.4}, _KNOB),
    ],
    "lookup": [({"vocabulary": 4, "heads": 2, "d_value": 2}, _LOOKED_UP)],
    "pool": [({}, _KNOB), ({"how": "mean"}, _KNOB)],
    "attention": [
        ({"d": 3, "block": 0}, _KNOB),
        (_ATTENTION, _HEADS),
        (_ATTENTION | {"normaliser": {"name": "softmax1"}, "qk_bias": True, "v_bias": True}, _KNOB),
        (_ATTENTION | {"normaliser": {"name": "sigmoid"}, "causal": True}, _KNOB),
        (_ATTENTION | {"normaliser": {"name": "linear"}}, _KNOB),
        (_ATTENTION | {"normaliser": {"name": "linear"}, "d_head": 2, "qk_bias": True}, _FACTORS),
        (_ATTENTION | {"qk": "fixed"}, _KNOB),
        (_ATTENTION | {"cap": 0.5, "offsets": "fixed"}, _KNOB),
        (_SPLIT, _KNOB),
        (_SPLIT | {"qk_norm": "head", "qk_eps": 0.3}, _GAINS),
        (_SPLIT | {"qk": "joint", "offsets": "learned", "buckets": 2}, _OFFSETS),
    ],
    "residual": [
        ({"branch": [{"layer": "linear", "kind": "W", "d_in": 3, "d_out": 3}]}, _KNOB),
        (
            {
                "branch": [{"layer": "attention", "d": 3, "block": 0}, {"layer": "activation", "name": "relu"}],
                "beside": [[{"layer": "linear", "kind": "W_1", "d_in": 3, "d_out": 3, "bias": "b_1"}]],
                "skip": False,
            },
            _KNOB,
        ),
    ],
}  # fmt: skip
_TOO_SMALL: Mapping[str, Mapping[str, float]] = {
    "attention": {
        "Lipschitz factor": 0.65, "cap": 0.85, "W_Q": 0.5, "W_K": 0.5, "b_V": 0.8, "q": 0.5, "score_offsets": 0.3,
        "norm_Q.gain": 0.3, "norm_K.gain": 0.3,
    },
    "gated": {"b_1": 0.7, "b_3": 0.6},
    "lookup": {"cap": 0.75, "token_scores": 0.7, "position_scores": 0.7},
    "residual": {"cap": 0.4},
}  # fmt: skip
"""The part of a claim that is noticed to be too little; nine tenths of it, elsewhere."""
_ROWS = 3


def fixed(layer: Any, rows: int = _ROWS) -> Fixed:
    """Rotations, numbers added to scores and types of tokens, where a layer has such."""

    def apart(count: int) -> Any:
        return abs(np.arange(count)[:, None] - np.arange(count))

    buckets, segments = getattr(layer, "buckets", None), getattr(layer, "segments", 0)
    return Fixed(
        rotate=rotary() if getattr(layer, "qk", None) == "split" and layer.d_head % 2 == 0 else None,
        added=(lambda count: -0.7 * apart(count)) if getattr(layer, "offsets", None) == "fixed" else None,
        bucket=None if buckets is None else lambda count: np.minimum(apart(count), buckets - 1),
        segment=np.arange(rows) % max(segments, 1),
        row=-1,
    )


def changed(change: Callable[[Facts, Context], Facts], rule: Rule = claimed) -> Rule:
    """A rule with other facts."""
    return lambda layer, at: change(rule(layer, at), at)


def _wrong(examples: list[LayerExample], parts: Mapping[str, float]) -> dict[str, Rule]:
    """Less than is true, a weight that is forgotten, one row where all are read, and another number in intervals."""

    def part(what: str) -> float:
        return parts.get(what, 0.9)

    def each_slot(change: Callable[[Slot], Slot]) -> Callable[[Facts, Context], Facts]:
        return lambda here, _: replace(here, slots=tuple(change(slot) for slot in here.slots))

    def less(kind: str) -> Callable[[Slot], Slot]:
        return lambda slot: replace(slot, sensitivity=part(kind) * slot.sensitivity) if slot.kind == kind else slot

    def capped(slot: Slot) -> Slot:
        return slot if slot.cap is None else replace(slot, cap=part("cap") * slot.cap)

    def without(kind: str) -> Callable[[Facts, Context], Facts]:
        return lambda here, _: replace(here, slots=tuple(slot for slot in here.slots if slot.kind != kind))

    wrong: dict[str, Rule] = {
        "radius": changed(lambda here, _: replace(here, radius=part("radius") * here.radius)),
        "intervals": changed(lambda here, at: replace(here, radius=2 * here.radius) if at.ns is INTERVAL else here),
    }
    if any(not example.tokens for example in examples):
        stretch = part("Lipschitz factor")
        wrong["Lipschitz factor"] = changed(lambda here, _: replace(here, lipschitz=stretch * here.lipschitz))
    drawn = {key[0] for example in examples for _, weights, _, _ in example.runs[:1] for key in weights}
    wrong |= {f"less of {kind}": changed(each_slot(less(kind))) for kind in sorted(drawn)}
    if any(slot.cap is not None for example in examples for slot in example.claims(claimed).slots):
        wrong["cap"] = changed(each_slot(capped))
    wrong |= {f"without {kind}": changed(without(kind)) for kind in sorted(drawn)}
    mixing = [example for example in examples if example.layer.rows_before(1, _ROWS) > 1]
    slots = [slot for example in mixing for slot in example.claims(claimed).slots]
    if any(target.kind in POINTS for slot in slots for member in slot.members for target in member.targets):
        wrong["row by row"] = lambda layer, at: claimed(layer, replace(at, seq_len=at.rows))
    return wrong


def cases(label: str) -> Cases:
    """What the library's layer of that label brings."""
    if label not in _EXAMPLES:
        raise InvalidSetting(f"no rule of layer {label!r} was registered with cases: give check_layer some")

    def made(fields: _Fields) -> Layer:
        return read(Layer, {"layer": label, **fields}, "a layer")

    examples = [
        LayerExample(layer, Norms.from_json(norms), seq_len=_ROWS, fixed=fixed(layer))
        for layer, norms in ((made(fields), norms) for fields, norms in _EXAMPLES[label])
    ]
    fields = max((fields for fields, _ in _EXAMPLES[label]), key=len)
    refused = [(lambda name=name: made({**fields, name: {}}), name) for name in fields]
    return Cases(examples, refused, _wrong(examples, _TOO_SMALL.get(label, {})))
