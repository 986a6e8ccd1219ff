"""A Transformer, as the few numbers people describe it by, and its expansion into primitive layers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import Count, Described, Length, Positive, Size, Stacked, check_fields, declare
from boundcalc.base.validate import size
from boundcalc.layers.attention import Attention, Normaliser
from boundcalc.layers.base import TOKENS, Layer, widths_of
from boundcalc.layers.embedding import Embedding
from boundcalc.layers.layernorm import LayerNorm
from boundcalc.layers.linear import GatedFeedForward, Linear
from boundcalc.layers.rows import Activation, Ball, Function, Pool, Residual

_WITH_LAYERS = ("layers", "seq_len", "classes", "input_radius", "depth", "bits")
_NOT_IN_EDELMAN = ("residual", "gated", "rope", "bias", "d_ff")
_MOST_BITS = 128


def _own_row_is_read(a: Any) -> bool:
    """Whether the first attention is on tokens and read at one row, as `merged.beginning` says of the layers."""
    tokens = bool(a.vocabulary) and a.positions == "learned" and not a.embedding_norm
    first = a.residual and (a.style == "post" or (a.style == "pre" and a.normalisation == "none"))
    plain = a.kv_heads in (None, a.heads) and not (a.rope or a.causal)
    softmax = isinstance(a.normaliser, Normaliser) and a.normaliser.name == "softmax"
    return tokens and first and plain and softmax and a.depth == 1 and a.readout == "cls"


def _root(width: Any) -> float:
    """The square root of a width, which may be a SymPy expression."""
    return math.sqrt(width) if isinstance(width, int) else width ** (width**0 / 2)


@dataclass(frozen=True, repr=False)
class Architecture(Described):
    """A Transformer that reads T rows and returns a score, or K logits.

    `layers`, an explicit tuple of primitive layers, replaces all fields except depth (a label), seq_len, classes,
    input_radius and bits.
    """

    SHOWN: ClassVar = ("depth", "seq_len")

    depth: Stacked = declare(2, "number of blocks", latex="D", help="Blocks.", typical=(1, 12))
    seq_len: Size = declare(512, "sequence length", latex="T", help="Rows (tokens) per sequence.", typical=(1, 5000))
    d: Size = declare(64, "width of a row", latex="d", help="Width of a row.", typical=(1, 1024))
    heads: Stacked = declare(
        1, "attention heads per block", latex="H", help="Attention heads per block.", typical=(1, 16)
    )
    d_head: Size | None = declare(None, "width of a head; unset, full-rank scores for style edelman, else d / heads")
    d_ff: Size | None = declare(None, "hidden width of the feed-forward part; unset, d for style edelman, else 4 d")
    style: Literal["edelman", "post", "pre"] = declare(
        "edelman",
        "one matrix after the activation (edelman), or blocks with the normalisation after (post) or before (pre) each "
        "part",
        help="Where the normalisation sits: edelman, post, pre.",
    )
    kv_heads: Size | None = declare(None, "distinct key and value heads (grouped queries); unset, as many as heads")
    activation: Function = declare("relu", "non-linearity of the feed-forward part")
    normaliser: Normaliser = Normaliser()
    normalisation: Literal["ball", "layernorm", "rmsnorm", "none"] = declare(
        "ball", "projection onto the unit ball, layernorm, rmsnorm or none"
    )
    eps: Length = declare(1e-5, "epsilon of the normalisation")
    variance_floor: Length = declare(0.0, "variance of a row that the class guarantees before each normalisation")
    residual: bool = declare(False, "whether parts are added to their input")
    bias: bool = declare(False, "whether linear maps and layernorms have offsets")
    gated: bool = declare(False, "gated feed-forward part (SwiGLU and kin)")
    rope: bool = declare(False, "rotary positions (scores then use separate W_Q and W_K)")
    causal: bool = declare(False, "causal mask")
    vocabulary: Count = declare(0, "rows of the token table; 0 for vector inputs", latex="V", typical=(2, 50000))
    own_row: Count | None = declare(None, "token that the row of a [CLS] read-out shows in every example")
    d_patch: Count = declare(0, "width of vector inputs mapped to d by a trained matrix; 0 for none")
    positions: Literal["none", "fixed", "learned"] = declare("none", "positions added to the rows")
    position_radius: Length = declare(0.0, "largest norm of a fixed position row")
    embedding_norm: bool = declare(False, "a normalisation right after the embedding")
    pooler: bool = declare(False, "a trained d x d map with tanh before the read-out")
    readout: Literal["cls", "mean"] = declare("cls", "rows that are read: one (cls) or the mean", label="read-out")
    classes: Size = declare(1, "1 for a score, else the number of logits")
    input_radius: Positive = declare(1.0, r"largest $\ell_2$ norm of an input row", latex="B_X", typical=(0.5, 2.0))
    bits: Annotated[int, partial(size, most=_MOST_BITS)] | None = declare(
        None,
        "bits of every stored weight, fixed before the data (G13): 16 for bfloat16 and float16",
        help="Bits of every stored weight, fixed before the data (G13).",
        label="bits of a weight",
    )
    layers: tuple[Layer, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.layers is None:
            self._check_shape()
        else:
            self._check_layers()
        self.refuse_unread()

    def _check_shape(self) -> None:
        if not isinstance(self.depth, int):
            raise InvalidSetting(f"depth is a number, got {self.depth}: the theorem edelman2022 has a symbolic one")
        rest = self.d % self.heads
        if self.d_head is None and isinstance(rest, int) and rest:  # of symbols it is not known
            raise InvalidSetting(
                f"d = {self.d} is not divisible by heads = {self.heads}: "
                f"choose a multiple of {self.heads} for d, or give d_head"
            )
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise InvalidSetting(f"heads must be a multiple of kv_heads, got {self.heads} and {self.kv_heads}")
        if self.vocabulary and self.d_patch:
            raise InvalidSetting("give a vocabulary or d_patch, not both")
        if self.normalisation in ("layernorm", "rmsnorm") and self.eps == 0 == self.variance_floor:
            raise InvalidSetting("eps = 0 leaves the normalisation unbounded near 0: give eps, or a variance_floor")

    def _check_layers(self) -> None:
        if not self.layers:
            raise InvalidSetting("'layers' must be primitive layers, at least one")
        _, width = widths_of(self.layers)
        if width is not None and width != self.classes:
            raise InvalidSetting(
                f"the layers end with {width} numbers, but classes = {self.classes}: give classes, or a last layer "
                "that maps to as many"
            )

    def unread(self, name: str) -> str | None:
        """Why a field changes nothing here, or None where the layers depend on it."""
        if self.layers is not None:
            if name not in _WITH_LAYERS:
                return "the architecture lists its layers one by one; change the layers"
            tokens = self.layers[0].widths()[0] == TOKENS
        elif name in _NOT_IN_EDELMAN and self.style == "edelman":
            return f"style 'edelman' has no {name}: use style 'post' or 'pre' (--style pre)"
        elif name in ("eps", "variance_floor") and self.normalisation not in ("layernorm", "rmsnorm"):
            return f"{name} belongs to a layernorm or rmsnorm, and the normalisation is {self.normalisation!r}"
        elif name == "embedding_norm" and self.normalisation == "none":
            return "there is no normalisation to put after the embedding; choose one (--normalisation layernorm)"
        elif name == "own_row" and not _own_row_is_read(self):
            return (
                "it is about one block of softmax attention on learned tokens and positions in a residual, at one row"
            )
        elif name == "position_radius" and self.positions != "fixed":
            return f"it is about fixed positions, and the positions are {self.positions!r} (--positions fixed)"
        else:
            tokens = bool(self.vocabulary)
        return "the input is tokens, whose rows the token table bounds" if tokens and name == "input_radius" else None

    @property
    def head_width(self) -> int:
        """d_head, or what it is when unset."""
        numbers = isinstance(self.d, int) and isinstance(self.heads, int)
        return self.d_head or (self.d // self.heads if numbers else self.d / self.heads)  # type: ignore[return-value]

    @property
    def stages(self) -> tuple[Layer, ...]:
        """The primitive layers, input to read-out."""
        return self.layers if self.layers is not None else self._expanded

    @cached_property
    def _expanded(self) -> tuple[Layer, ...]:
        return tuple(self._expand())

    def _expand(self) -> Iterator[Layer]:
        if self.d_patch:
            yield self._map("W_patch", self.d_patch, self.d)
        if self.vocabulary or self.positions != "none":
            yield Embedding(self.vocabulary, self.d, self.positions, self.position_radius, own_row=self.own_row)
        if self.embedding_norm:
            yield from self._norm("norm_embedding", None)
        for block in range(self.depth):
            yield from self._block(block)
        if self.style == "pre":
            yield from self._norm("norm_final", None)
        yield Pool(self.readout)
        if self.pooler:
            yield self._map("W_pool", self.d, self.d)
            yield Activation("tanh")
        yield self._map("readout", self.d, self.classes)

    def _map(self, kind: str, d_in: int, d_out: int, block: int | None = None) -> Linear:
        return Linear(kind, d_in, d_out, f"b_{kind.removeprefix('W_')}" if self.bias else None, block)

    def _norm(self, kind: str, block: int | None) -> Iterator[Layer]:
        if self.normalisation == "ball":
            yield Ball(1.0)
        elif self.normalisation != "none":
            centred, floor = self.normalisation == "layernorm", self.variance_floor
            offset = self.bias and centred
            yield LayerNorm(kind, self.d, self.eps, centred, offset=offset, variance_floor=floor, block=block)

    def _attention(self, block: int) -> Attention:
        width = self.head_width
        edelman = self.style == "edelman"
        normaliser = self.normaliser
        if not edelman and normaliser.temperature is None:
            normaliser = replace(normaliser, temperature=_root(width))
        return Attention(
            d=self.d,
            heads=self.heads,
            d_head=self.d_head if edelman else width,
            d_value=None if edelman else width,
            kv_heads=self.kv_heads,
            qk="split" if self.rope else "joint",
            combine="sum" if edelman else "concat",
            normaliser=normaliser,
            causal=self.causal,
            qk_bias=self.bias,
            v_bias=self.bias,
            block=block,
        )

    def _block(self, block: int) -> Iterator[Layer]:
        """Heads and a feed-forward part, each perhaps in a residual, with a normalisation before or after it."""
        d, hidden, function = self.d, self.d_ff or 4 * self.d, Activation(self.activation)
        heads, maps = (self._attention(block),), (self._map("W_1", d, hidden, block), function)
        if self.style == "edelman":
            maps = (function, self._map("W_1", d, d, block))
        else:
            heads += (self._map("W_O", self.heads * self.head_width, d, block),)
            maps += (self._map("W_2", hidden, d, block),)
        gated = (GatedFeedForward(d, hidden, self.activation, block=block),)
        for name, part in (("norm_attention", heads), ("norm_ffn", gated if self.gated else maps)):
            norm = tuple(self._norm(name, block))
            inside = (*norm, *part) if self.style == "pre" else part
            yield from (Residual(inside),) if self.residual else inside
            if self.style != "pre":
                yield from norm


_TRANSFORMER: dict[str, Any] = {"residual": True, "normalisation": "layernorm"}

PRESETS: dict[str, dict[str, Any]] = {
    "edelman": {},
    "bert": _TRANSFORMER
    | {"style": "post", "depth": 12, "d": 768, "heads": 12, "activation": "gelu", "eps": 1e-12, "bias": True}
    | {"vocabulary": 30522, "positions": "learned", "embedding_norm": True, "pooler": True},
    "gpt2": _TRANSFORMER
    | {"style": "pre", "depth": 12, "d": 768, "heads": 12, "activation": "gelu_tanh", "bias": True, "causal": True}
    | {"seq_len": 1024, "vocabulary": 50257, "positions": "learned"},
    "llama": _TRANSFORMER
    | {"style": "pre", "depth": 32, "d": 4096, "heads": 32, "d_ff": 11008, "activation": "silu", "gated": True}
    | {"normalisation": "rmsnorm", "rope": True, "causal": True, "seq_len": 4096, "vocabulary": 32000},
    "vit": _TRANSFORMER
    | {"style": "pre", "depth": 12, "d": 768, "heads": 12, "activation": "gelu", "eps": 1e-6, "bias": True}
    | {"seq_len": 197, "d_patch": 768, "input_radius": 28.0, "positions": "learned", "classes": 1000},
}
"""Fields in which each preset differs from the default architecture (which is `edelman`).

`vit`: 16 x 16 patches of three channels in [-1, 1] have norm at most sqrt(768) < 28.
"""
