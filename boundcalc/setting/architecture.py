"""A Transformer, as the few numbers people describe it by, and its expansion into primitive layers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.setting import validate
from boundcalc.setting.attention import Attention, Normaliser
from boundcalc.setting.feedforward import ACTIVATIONS, Activation, GatedFeedForward
from boundcalc.setting.layer import TOKENS, Layer, widths_of
from boundcalc.setting.layers import Ball, Embedding, LayerNorm, Linear, Pool, Residual
from boundcalc.setting.named import layer_from_json, layer_to_json

STYLES = ("edelman", "post", "pre")
_WITH_LAYERS = ("layers", "seq_len", "classes", "input_radius", "depth", "bits")
"""What a list of layers leaves to say; the depth is then a label."""
_NOT_IN_EDELMAN = ("residual", "gated", "rope", "bias", "d_ff")
_LEFT_OUT = (None, False, 0, "none")
"""Values that say that something is not there."""
_MOST_BITS = 128
NORMALISATIONS = ("ball", "layernorm", "rmsnorm", "none")


@dataclass(frozen=True)
class Architecture:
    """A Transformer that reads T rows and returns a score (or K of them).

    Attributes:
        depth: blocks.
        seq_len: T, rows per sequence.
        d: width of a row.
        heads: attention heads per block.
        d_head: width of a head; unset, full-rank scores for style "edelman", else d / heads.
        d_ff: hidden width of the feed-forward part; unset, d for style "edelman", else 4 d.
        style: "edelman" (Pi(sigma(Pi(attention)) W_1), one matrix after sigma), or a Transformer block with the
            normalisation after ("post") or before ("pre") each sublayer.
        kv_heads: distinct key and value heads (grouped queries); unset, as many as heads.
        normaliser: how scores become weights.
        normalisation: "ball" (projection onto the unit ball), "layernorm", "rmsnorm" or "none".
        eps: epsilon of the normalisation.
        variance_floor: variance of a row the class guarantees before each normalisation.
        residual: whether sublayers are added to their input (not for style "edelman").
        bias: whether linear maps and LayerNorms have offsets.
        gated: gated feed-forward (SwiGLU and kin).
        rope: rotary positions (scores then use separate W_Q and W_K).
        causal: causal mask.
        vocabulary: rows of a trained token table; 0 for vector inputs.
        own_row: the token that the row of a [CLS] read-out shows in every example, so that it has no data.
        d_patch: width of vector inputs mapped to d by a trained matrix; 0 for none.
        positions: "none", "fixed" or "learned".
        position_radius: largest norm of a fixed position row.
        embedding_norm: a normalisation right after the embedding.
        pooler: a trained d x d map with tanh before the read-out.
        readout: "cls" (one row) or "mean".
        classes: 1 for a scalar score, else the number of logits.
        input_radius: largest l2 norm of an input row (vector inputs).
        bits: of every stored weight, fixed before the data (G13): 16 for bfloat16 and float16; unset, any real numbers.
        layers: an explicit list of primitive layers, instead of all of the above but seq_len and input_radius.
    """

    depth: int = 2
    seq_len: int = 512
    d: int = 64
    heads: int = 1
    d_head: int | None = None
    d_ff: int | None = None
    style: str = "edelman"
    kv_heads: int | None = None
    activation: str = "relu"
    normaliser: Normaliser = Normaliser()
    normalisation: str = "ball"
    eps: float = 1e-5
    variance_floor: float = 0.0
    residual: bool = False
    bias: bool = False
    gated: bool = False
    rope: bool = False
    causal: bool = False
    vocabulary: int = 0
    own_row: int | None = None
    d_patch: int = 0
    positions: str = "none"
    position_radius: float = 0.0
    embedding_norm: bool = False
    pooler: bool = False
    readout: str = "cls"
    classes: int = 1
    input_radius: float = 1.0
    bits: int | None = None
    layers: tuple[Layer, ...] | None = None

    def __post_init__(self) -> None:
        for name, symbol, most in (
            ("depth", "depth", validate.MOST_STACKED),
            ("seq_len", "T", validate.MOST),
            ("d", "d", validate.MOST),
            ("heads", "heads", validate.MOST_STACKED),
            ("classes", "classes", validate.MOST),
        ):
            validate.set_size(self, name, symbol, most=most)
        for name in ("d_head", "d_ff", "kv_heads"):
            validate.set_size(self, name, optional=True)
        for name in ("vocabulary", "d_patch"):
            validate.set_size(self, name, least=0)
        validate.set_size(self, "bits", most=_MOST_BITS, optional=True)
        validate.choice("style", self.style, STYLES)
        validate.choice("activation", self.activation, ACTIVATIONS)
        validate.choice("normalisation", self.normalisation, NORMALISATIONS)
        validate.choice("positions", self.positions, ("none", "fixed", "learned"))
        validate.choice("readout", self.readout, ("cls", "mean"))
        for name in ("residual", "bias", "gated", "rope", "causal", "embedding_norm", "pooler"):
            validate.flag(name, getattr(self, name))
        validate.positive("input radius", self.input_radius)
        validate.positive("position radius", self.position_radius, zero=True)
        validate.positive("eps", self.eps, zero=True)
        validate.positive("variance floor", self.variance_floor, zero=True)
        if not isinstance(self.normaliser, Normaliser):
            raise InvalidSetting(f"a normaliser is like Normaliser('softmax'), got {validate.shown(self.normaliser)}")
        if self.layers is None:
            self._check_shape()
        else:
            self._check_layers()
        for f in fields(self):
            if self.unread(f.name) is not None and getattr(self, f.name) != f.default:  # arrays are of what is read
                self.refuse_unread(f.name)

    def __repr__(self) -> str:
        from boundcalc.setting.brief import of_architecture

        return f"Architecture({of_architecture(self)})"

    def _check_shape(self) -> None:
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
        layers = self.layers
        if not isinstance(layers, tuple) or not layers or not all(isinstance(layer, Layer) for layer in layers):
            raise InvalidSetting("'layers' must be a tuple of primitive layers that is not empty")
        _, width = widths_of(layers)
        if width is not None and width != self.classes:
            raise InvalidSetting(
                f"the layers end with {width} numbers, but classes = {self.classes}: give classes, or a last layer "
                "that maps to as many"
            )

    def unread(self, name: str) -> str | None:
        """Why a field changes nothing here, or None where the layers depend on it."""
        if self.layers is not None:
            if name in _WITH_LAYERS:
                return self._tokens(name, self.layers[0].widths()[0] == TOKENS)
            return "the architecture lists its layers one by one; change the layers"
        if name in _NOT_IN_EDELMAN and self.style == "edelman":
            return f"style 'edelman' has no {name}: use style 'post' or 'pre' (--style pre)"
        if name in ("eps", "variance_floor") and self.normalisation not in ("layernorm", "rmsnorm"):
            return f"{name} belongs to a layernorm or rmsnorm, and the normalisation is {self.normalisation!r}"
        if name == "embedding_norm" and self.normalisation == "none":
            return "there is no normalisation to put after the embedding; choose one (--normalisation layernorm)"
        if name == "own_row" and not self._own_row_is_read:
            return "it is about one block of softmax attention on learned tokens and positions in a residual, read at one row"
        if name == "position_radius" and self.positions != "fixed":
            return f"it is about fixed positions, and the positions are {self.positions!r} (--positions fixed)"
        return self._tokens(name, bool(self.vocabulary))

    @staticmethod
    def _tokens(name: str, tokens: bool) -> str | None:
        if name == "input_radius" and tokens:
            return "the input is tokens, whose rows the token table bounds"
        return None

    def refuse_unread(self, name: str) -> None:
        """Refuses a field that was given and changes nothing here."""
        reason = self.unread(name)
        if reason is not None:
            value = validate.shown(getattr(self, name))
            raise InvalidSetting(f"{name} = {value} would change nothing: {reason}")

    def with_fields(self, **given: Any) -> Architecture:
        """The same architecture with some fields changed; what was there before counts as a default."""
        return Architecture.from_defaults({f.name: getattr(self, f.name) for f in fields(self)}, given)

    @classmethod
    def from_defaults(cls, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> Architecture:
        """An architecture of what is given, and of defaults as far as anything reads them beside it.

        What is given and not read is refused, unless it says that something is left out, which it is.
        """
        values: dict[str, Any] = {f.name: f.default for f in fields(cls)} | dict(defaults) | dict(given)
        bare = object.__new__(cls)  # unchecked: the defaults that are in the way are still to go
        for name, value in values.items():
            object.__setattr__(bare, name, value)
        if bare.layers is None:
            idle = [f for f in fields(cls) if f.name not in given and bare.unread(f.name) is not None]
            values |= {f.name: f.default for f in idle}
        new = cls(**values)
        for name, value in given.items():
            if value not in _LEFT_OUT:
                new.refuse_unread(name)
        return new

    @property
    def head_width(self) -> int:
        """d_head, or what it is when unset."""
        return self.d_head or self.d // self.heads

    @property
    def stages(self) -> tuple[Layer, ...]:
        """The primitive layers, input to read-out."""
        return self.layers if self.layers is not None else self._expanded

    @cached_property
    def _expanded(self) -> tuple[Layer, ...]:
        return tuple(self._expand())

    @property
    def _own_row_is_read(self) -> bool:
        """Whether the first attention is on tokens and read at one row, as `products.beginning` says of the layers."""
        tokens = bool(self.vocabulary) and self.positions == "learned" and not self.embedding_norm
        first = self.residual and (self.style == "post" or (self.style == "pre" and self.normalisation == "none"))
        plain = self.kv_heads in (None, self.heads) and not (self.rope or self.causal)
        softmax = isinstance(self.normaliser, Normaliser) and self.normaliser.name == "softmax"
        return tokens and first and plain and softmax and self.depth == 1 and self.readout == "cls"

    def _expand(self) -> Iterator[Layer]:
        yield from self._front()
        block = {"edelman": self._edelman_block, "post": self._post_block, "pre": self._pre_block}[self.style]
        for index in range(self.depth):
            yield from block(index)
        if self.style == "pre":
            yield from self._norm("norm_final", None)
        yield Pool("mean" if self.readout == "mean" else "cls")
        if self.pooler:
            yield Linear("W_pool", self.d, self.d, bias="b_pool" if self.bias else None)
            yield Activation("tanh")
        yield Linear("readout", self.d, self.classes, bias="b_readout" if self.bias else None)

    def _front(self) -> Iterator[Layer]:
        if self.d_patch:
            yield Linear("W_patch", self.d_patch, self.d, bias="b_patch" if self.bias else None)
        if self.vocabulary or self.positions != "none":
            own_row = self.own_row if self._own_row_is_read else None
            positions: Any = self.positions
            yield Embedding(self.vocabulary, self.d, positions, self.position_radius, own_row=own_row)
        if self.embedding_norm:
            yield from self._norm("norm_embedding", None)

    def _norm(self, kind: str, block: int | None) -> Iterator[Layer]:
        if self.normalisation == "ball":
            yield Ball(1.0)
        elif self.normalisation != "none":
            centred = self.normalisation == "layernorm"
            yield LayerNorm(
                kind,
                self.d,
                self.eps,
                centred,
                offset=self.bias and centred,
                variance_floor=self.variance_floor,
                block=block,
            )

    def _attention(self, block: int) -> Attention:
        width = self.head_width
        edelman = self.style == "edelman"
        normaliser = self.normaliser
        if not edelman and normaliser.temperature is None:
            normaliser = Normaliser(normaliser.name, math.sqrt(width), normaliser.c, normaliser.mu)
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

    def _edelman_block(self, block: int) -> Iterator[Layer]:
        yield self._attention(block)
        yield from self._norm("norm_attention", block)
        yield Activation(self.activation)
        yield Linear("W_1", self.d, self.d, block=block)
        yield from self._norm("norm_ffn", block)

    def _sublayers(self, block: int) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
        inner = self.heads * self.head_width
        hidden = self.d_ff or 4 * self.d
        attention = (
            self._attention(block),
            Linear("W_O", inner, self.d, bias="b_O" if self.bias else None, block=block),
        )
        if self.gated:
            return attention, (GatedFeedForward(self.d, hidden, self.activation, block=block),)
        return attention, (
            Linear("W_1", self.d, hidden, bias="b_1" if self.bias else None, block=block),
            Activation(self.activation),
            Linear("W_2", hidden, self.d, bias="b_2" if self.bias else None, block=block),
        )

    def _wrap(self, branch: tuple[Layer, ...]) -> Iterator[Layer]:
        if self.residual:
            yield Residual(branch)
        else:
            yield from branch

    def _post_block(self, block: int) -> Iterator[Layer]:
        attention, ffn = self._sublayers(block)
        yield from self._wrap(attention)
        yield from self._norm("norm_attention", block)
        yield from self._wrap(ffn)
        yield from self._norm("norm_ffn", block)

    def _pre_block(self, block: int) -> Iterator[Layer]:
        attention, ffn = self._sublayers(block)
        yield from self._wrap((*self._norm("norm_attention", block), *attention))
        yield from self._wrap((*self._norm("norm_ffn", block), *ffn))

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        out = validate.to_fields(self)
        if "normaliser" in out:
            out["normaliser"] = validate.to_fields(self.normaliser)
        if self.layers is not None:
            out["layers"] = [layer_to_json(layer) for layer in self.layers]
        return out

    @classmethod
    def from_json(cls, data: object) -> Architecture:
        """An architecture from its JSON object."""
        raw = dict(validate.known_keys("architecture", data, [f.name for f in fields(cls)]))
        if "normaliser" in raw:
            raw["normaliser"] = validate.from_fields("normaliser", Normaliser, raw["normaliser"])
        if raw.get("layers") is not None:
            if not isinstance(raw["layers"], list):
                raise InvalidSetting("'layers' must be a list of primitive layers")
            raw["layers"] = tuple(layer_from_json(layer) for layer in raw["layers"])
        return cls(**raw)
