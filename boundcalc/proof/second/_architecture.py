"""A Transformer by the few numbers people describe it by, and the layers that they stand for."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from ._layers import ACTIVATIONS, Layer, linear, residual, widths
from ._numbers import demand
from ._strict import KINDS, Record, ranged, read

LINE = (
    "depth:stacked seq_len:size d:size heads:stacked d_head:size? d_ff:size? style:edelman|post|pre kv_heads:size? "
    f"activation:{ACTIVATIONS} normaliser:normaliser normalisation:ball|layernorm|rmsnorm|none eps:length "
    "variance_floor:length residual:flag bias:flag gated:flag rope:flag causal:flag vocabulary:index own_row:index? "
    "d_patch:index positions:none|fixed|learned position_radius:length embedding_norm:flag pooler:flag "
    "readout:cls|mean classes:size input_radius:positive bits:bits? layers:layer*?"
)
KINDS.update(bits=ranged(1, 128, whole=True))
_PLAIN = Record(name="softmax", temperature=None, c=None, mu=None)
_SAYS_NOTHING = {"depth": 2, "seq_len": 512, "d": 64, "heads": 1, "style": "edelman", "activation": "relu"}
_SAYS_NOTHING |= {"normaliser": _PLAIN, "normalisation": "ball", "eps": 1e-5, "input_radius": 1.0, "classes": 1}
_SAYS_NOTHING |= {"positions": "none", "readout": "cls", **dict.fromkeys(("d_head", "d_ff", "kv_heads", "own_row"))}
_SAYS_NOTHING |= dict.fromkeys(("residual", "bias", "gated", "rope", "causal", "embedding_norm", "pooler"), False)
_SAYS_NOTHING |= dict.fromkeys(("variance_floor", "vocabulary", "d_patch", "position_radius"), 0)
"""The value of a field that nothing depends on: another one would say what is not so."""


def read_architecture(data: Any) -> tuple[Record, tuple[Layer, ...]]:
    """What a file says, and the layers, input to read-out."""
    about = read(LINE, "architecture", data)
    demand(about.layers != (), "a network has layers")
    for name in _unread(about):
        demand(getattr(about, name) == _SAYS_NOTHING[name], f"{name} would change nothing here, so it is not said")
    if about.layers is not None:
        return about, about.layers
    demand(about.d_head is not None or about.d % about.heads == 0, "d is a multiple of heads")
    demand(about.heads % (about.kv_heads or 1) == 0, "heads are a multiple of kv_heads")
    demand(not (about.vocabulary and about.d_patch), "inputs are tokens or patches, not both")
    bare = about.normalisation in ("layernorm", "rmsnorm") and about.eps == 0 == about.variance_floor
    demand(not bare, "the normalisation is unbounded near 0")
    return about, tuple(_expanded(about))


def _unread(about: Record) -> Iterable[str]:
    """Fields that nothing depends on."""
    if about.layers is not None:
        tokens = {"input_radius"} if widths(about.layers[:1])[0] == 0 else set[str]()
        return (_SAYS_NOTHING.keys() - {"seq_len", "classes", "depth", "input_radius"}) | tokens
    tokens = about.vocabulary and about.positions == "learned" and not about.embedding_norm and about.readout == "cls"
    first = about.residual and (about.style == "post" or (about.style == "pre" and about.normalisation == "none"))
    plain = about.kv_heads in (None, about.heads) and not (about.rope or about.causal) and about.depth == 1
    idle = {
        "residual gated rope bias d_ff": about.style == "edelman",
        "eps variance_floor": about.normalisation not in ("layernorm", "rmsnorm"),
        "embedding_norm": about.normalisation == "none",
        "position_radius": about.positions != "fixed",
        "input_radius": about.vocabulary,
        "own_row": not (tokens and first and plain and about.normaliser.name == "softmax"),  # A7
    }
    return [name for names, holds in idle.items() if holds for name in names.split()]


def _expanded(about: Record) -> Iterator[Layer]:
    d, edelman, width = about.d, about.style == "edelman", about.d_head or about.d // about.heads

    def linear_map(kind: str, d: int, k: int, bias: str, block: int | None = None) -> Layer:
        return linear(kind, d, k, bias if about.bias else None, block)

    def norm(kind: str, block: int | None = None) -> tuple[Layer, ...]:
        centred = about.normalisation == "layernorm"
        own = {"d": d, "eps": about.eps, "variance_floor": about.variance_floor, "centred": centred, "gain": True}
        own |= {"offset": about.bias and centred, "around_one": False, "kind": kind, "block": block}
        norm_layer = (
            Layer(label="ball", radius=1.0) if about.normalisation == "ball" else Layer(label="layernorm", **own)
        )
        return () if about.normalisation == "none" else (norm_layer,)

    def heads(block: int) -> Layer:
        unset = not edelman and about.normaliser.temperature is None
        normaliser = about.normaliser.but(temperature=math.sqrt(width)) if unset else about.normaliser
        own = {name: getattr(about, name) for name in ("d", "heads", "kv_heads", "causal")} | {"block": block}
        own |= {"qk_bias": about.bias, "v_bias": about.bias, "d_head": about.d_head if edelman else width}
        own |= {"qk": "split" if about.rope else "joint", "combine": "sum" if edelman else "concat"}
        own |= {"offsets": "none", "cap": None, "buckets": None, "qk_norm": "none", "qk_eps": None}
        return Layer(label="attention", normaliser=normaliser, d_value=None if edelman else width, **own)

    def block_of(block: int) -> Iterator[Layer]:
        act, before, after = Layer(label="activation", name=about.activation), "norm_attention", "norm_ffn"
        if edelman:
            yield from (heads(block), *norm(before, block), act, linear("W_1", d, d, None, block), *norm(after, block))
            return
        hidden = about.d_ff or 4 * d
        ffn = (linear_map("W_1", d, hidden, "b_1", block), act, linear_map("W_2", hidden, d, "b_2", block))
        if about.gated:
            ffn = (Layer(label="gated", d=d, d_ff=hidden, activation=about.activation, block=block, bias=False),)
        attention = (heads(block), linear_map("W_O", about.heads * width, d, "b_O", block))
        for name, part in ((before, attention), (after, ffn)):
            branch = (*norm(name, block), *part) if about.style == "pre" else part
            yield from (residual(branch),) if about.residual else branch
            yield from norm(name, block) if about.style == "post" else ()

    if about.d_patch:
        yield linear_map("W_patch", about.d_patch, d, "b_patch")
    if about.vocabulary or about.positions != "none":
        own = {"vocabulary": about.vocabulary, "d": d, "segments": 0, "own_row": about.own_row}
        yield Layer(label="embedding", positions=about.positions, position_radius=about.position_radius, **own)
    yield from norm("norm_embedding") if about.embedding_norm else ()
    for block in range(about.depth):
        yield from block_of(block)
    yield from norm("norm_final") if about.style == "pre" else ()
    yield Layer(label="pool", how=about.readout)
    if about.pooler:
        yield from (linear_map("W_pool", d, d, "b_pool"), Layer(label="activation", name="tanh"))
    yield linear_map("readout", d, about.classes, "b_readout")
