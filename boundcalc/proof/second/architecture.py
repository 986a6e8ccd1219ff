"""A Transformer by the few numbers people describe it by, and the layers that they stand for."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from .layers import ACTIVATIONS, Layer, linear, residual, widths
from .numbers import demand
from .strict import KINDS, Record, ranged, read

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
    given = read(LINE, "architecture", data)
    demand(given.layers != (), "a network has layers")
    for name in _unread(given):
        demand(getattr(given, name) == _SAYS_NOTHING[name], f"{name} would change nothing here, so it is not said")
    if given.layers is not None:
        return given, given.layers
    demand(given.d_head is not None or given.d % given.heads == 0, "d is a multiple of heads")
    demand(given.heads % (given.kv_heads or 1) == 0, "heads are a multiple of kv_heads")
    demand(not (given.vocabulary and given.d_patch), "inputs are tokens or patches, not both")
    bare = given.normalisation in ("layernorm", "rmsnorm") and given.eps == 0 == given.variance_floor
    demand(not bare, "the normalisation is unbounded near 0")
    return given, tuple(_expanded(given))


def _unread(given: Record) -> Iterable[str]:
    """Fields that nothing depends on."""
    if given.layers is not None:
        tokens = {"input_radius"} if widths(given.layers[:1])[0] == 0 else set[str]()
        return (_SAYS_NOTHING.keys() - {"seq_len", "classes", "depth", "input_radius"}) | tokens
    tokens = given.vocabulary and given.positions == "learned" and not given.embedding_norm and given.readout == "cls"
    first = given.residual and (given.style == "post" or (given.style == "pre" and given.normalisation == "none"))
    plain = given.kv_heads in (None, given.heads) and not (given.rope or given.causal) and given.depth == 1
    idle = {
        "residual gated rope bias d_ff": given.style == "edelman",
        "eps variance_floor": given.normalisation not in ("layernorm", "rmsnorm"),
        "embedding_norm": given.normalisation == "none",
        "position_radius": given.positions != "fixed",
        "input_radius": given.vocabulary,
        "own_row": not (tokens and first and plain and given.normaliser.name == "softmax"),  # A7
    }
    return [name for names, holds in idle.items() if holds for name in names.split()]


def _expanded(given: Record) -> Iterator[Layer]:
    d, edelman, width = given.d, given.style == "edelman", given.d_head or given.d // given.heads

    def linear_map(kind: str, d: int, k: int, bias: str, block: int | None = None) -> Layer:
        return linear(kind, d, k, bias if given.bias else None, block)

    def norm(kind: str, block: int | None = None) -> tuple[Layer, ...]:
        centred = given.normalisation == "layernorm"
        own = {"d": d, "eps": given.eps, "variance_floor": given.variance_floor, "centred": centred, "gain": True}
        own |= {"offset": given.bias and centred, "around_one": False, "kind": kind, "block": block}
        made = Layer(label="ball", radius=1.0) if given.normalisation == "ball" else Layer(label="layernorm", **own)
        return () if given.normalisation == "none" else (made,)

    def heads(block: int) -> Layer:
        unset = not edelman and given.normaliser.temperature is None
        normaliser = given.normaliser.but(temperature=math.sqrt(width)) if unset else given.normaliser
        own = {name: getattr(given, name) for name in ("d", "heads", "kv_heads", "causal")} | {"block": block}
        own |= {"qk_bias": given.bias, "v_bias": given.bias, "d_head": given.d_head if edelman else width}
        own |= {"qk": "split" if given.rope else "joint", "combine": "sum" if edelman else "concat"}
        own |= {"offsets": "none", "cap": None, "buckets": None, "qk_norm": "none", "qk_eps": None}
        return Layer(label="attention", normaliser=normaliser, d_value=None if edelman else width, **own)

    def block_of(block: int) -> Iterator[Layer]:
        act, before, after = Layer(label="activation", name=given.activation), "norm_attention", "norm_ffn"
        if edelman:
            yield from (heads(block), *norm(before, block), act, linear("W_1", d, d, None, block), *norm(after, block))
            return
        hidden = given.d_ff or 4 * d
        ffn = (linear_map("W_1", d, hidden, "b_1", block), act, linear_map("W_2", hidden, d, "b_2", block))
        if given.gated:
            ffn = (Layer(label="gated", d=d, d_ff=hidden, activation=given.activation, block=block, bias=False),)
        attention = (heads(block), linear_map("W_O", given.heads * width, d, "b_O", block))
        for name, part in ((before, attention), (after, ffn)):
            branch = (*norm(name, block), *part) if given.style == "pre" else part
            yield from (residual(branch),) if given.residual else branch
            yield from norm(name, block) if given.style == "post" else ()

    if given.d_patch:
        yield linear_map("W_patch", given.d_patch, d, "b_patch")
    if given.vocabulary or given.positions != "none":
        own = {"vocabulary": given.vocabulary, "d": d, "segments": 0, "own_row": given.own_row}
        yield Layer(label="embedding", positions=given.positions, position_radius=given.position_radius, **own)
    yield from norm("norm_embedding") if given.embedding_norm else ()
    for block in range(given.depth):
        yield from block_of(block)
    yield from norm("norm_final") if given.style == "pre" else ()
    yield Layer(label="pool", how=given.readout)
    if given.pooler:
        yield from (linear_map("W_pool", d, d, "b_pool"), Layer(label="activation", name="tanh"))
    yield linear_map("readout", d, given.classes, "b_readout")
