"""A Transformer by the few numbers people describe it by, and the layers that they stand for."""

import math
from collections.abc import Iterator
from typing import Any

from .layers import ACTIVATIONS, Layer, linear, residual, widths
from .numbers import demand
from .strict import KINDS, Record, ranged, read

LINE = (
    "depth:stacked seq_len:size d:size heads:stacked d_head:size? d_ff:size? style:edelman|post|pre kv_heads:size? "
    f"activation:{ACTIVATIONS} normaliser:normaliser normalisation:ball|layernorm|rmsnorm|none eps:length "
    "variance_floor:length residual:flag bias:flag gated:flag rope:flag causal:flag vocabulary:index own_row:index? "
    "d_patch:index positions:none|fixed|learned position_radius:length embedding_norm:flag pooler:flag readout:cls|mean "
    "classes:size input_radius:positive bits:bits? layers:layer*?"
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
    return given, tuple(_Expansion(given).layers())


def _unread(given: Record) -> Iterator[str]:
    """Fields that nothing depends on."""
    if given.layers is not None:
        yield from _SAYS_NOTHING.keys() - {"seq_len", "classes", "depth", "input_radius"}
        if widths(given.layers[:1])[0] == 0:
            yield "input_radius"
        return
    if given.style == "edelman":
        yield from ("residual", "gated", "rope", "bias", "d_ff")
    if given.normalisation not in ("layernorm", "rmsnorm"):
        yield from ("eps", "variance_floor")
    if given.normalisation == "none":
        yield "embedding_norm"
    if given.positions != "fixed":
        yield "position_radius"
    if given.vocabulary:
        yield "input_radius"
    tokens = given.vocabulary and given.positions == "learned" and not given.embedding_norm and given.readout == "cls"
    first = given.residual and (given.style == "post" or (given.style == "pre" and given.normalisation == "none"))
    plain = given.kv_heads in (None, given.heads) and not (given.rope or given.causal) and given.depth == 1
    if not (tokens and first and plain and given.normaliser.name == "softmax"):  # A7
        yield "own_row"


class _Expansion:
    def __init__(self, given: Record) -> None:
        self.given = given
        self.edelman = given.style == "edelman"
        self.width = given.d_head or given.d // given.heads

    def layers(self) -> Iterator[Layer]:
        given, d = self.given, self.given.d
        if given.d_patch:
            yield self._map("W_patch", given.d_patch, d, "b_patch", None)
        if given.vocabulary or given.positions != "none":
            own = {
                name: getattr(given, name) for name in ("vocabulary", "d", "positions", "position_radius", "own_row")
            }
            yield Layer(label="embedding", segments=0, **own)
        if given.embedding_norm:
            yield from self._norm("norm_embedding", None)
        for block in range(given.depth):
            yield from self._block(block)
        if given.style == "pre":
            yield from self._norm("norm_final", None)
        yield Layer(label="pool", how=given.readout)
        if given.pooler:
            yield from (self._map("W_pool", d, d, "b_pool", None), Layer(label="activation", name="tanh"))
        yield self._map("readout", d, given.classes, "b_readout", None)

    def _map(self, kind: str, d: int, k: int, bias: str, block: int | None) -> Layer:
        return linear(kind, d, k, bias if self.given.bias else None, block)

    def _norm(self, kind: str, block: int | None) -> Iterator[Layer]:
        given, centred = self.given, self.given.normalisation == "layernorm"
        if given.normalisation == "ball":
            yield Layer(label="ball", radius=1.0)
        elif given.normalisation != "none":
            own = {"d": given.d, "eps": given.eps, "variance_floor": given.variance_floor, "centred": centred}
            offset = given.bias and centred
            yield Layer(label="layernorm", kind=kind, gain=True, offset=offset, block=block, around_one=False, **own)

    def _block(self, block: int) -> Iterator[Layer]:
        given, d, heads = self.given, self.given.d, self._heads(block)
        act = Layer(label="activation", name=given.activation)
        if self.edelman:
            norms = [tuple(self._norm(name, block)) for name in ("norm_attention", "norm_ffn")]
            yield from (heads, *norms[0], act, linear("W_1", d, d, None, block), *norms[1])
            return
        inner, hidden = given.heads * self.width, given.d_ff or 4 * d
        ffn = (self._map("W_1", d, hidden, "b_1", block), act, self._map("W_2", hidden, d, "b_2", block))
        if given.gated:
            ffn = (Layer(label="gated", d=d, d_ff=hidden, activation=given.activation, block=block, bias=False),)
        attention = (heads, self._map("W_O", inner, d, "b_O", block))
        for name, part in (("norm_attention", attention), ("norm_ffn", ffn)):
            norm = tuple(self._norm(name, block))
            branch = (*norm, *part) if given.style == "pre" else part
            yield from (residual(branch),) if given.residual else branch
            yield from norm if given.style == "post" else ()

    def _heads(self, block: int) -> Layer:
        given, normaliser, width = self.given, self.given.normaliser, self.width
        if not self.edelman and normaliser.temperature is None:
            normaliser = normaliser.but(temperature=math.sqrt(width))
        own = {"d": given.d, "heads": given.heads, "kv_heads": given.kv_heads, "causal": given.causal, "block": block}
        own |= {"qk_bias": given.bias, "v_bias": given.bias, "d_head": given.d_head if self.edelman else width}
        own |= {"qk": "split" if given.rope else "joint", "combine": "sum" if self.edelman else "concat"}
        own |= {"offsets": "none", "cap": None, "buckets": None, "qk_norm": "none", "qk_eps": None}
        return Layer(label="attention", normaliser=normaliser, d_value=None if self.edelman else width, **own)
