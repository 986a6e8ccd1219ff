"""The primitive layers a Transformer is made of, as data.

A matrix budget is found by its *kind* ("W_QK", "W_1", ...) and its block number, so a layer says
which kinds it has and the norms say how large they may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.setting import validate

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "mish", "tanh", "identity")
NORMALISERS = ("softmax", "softmax1", "sigmoid", "linear", "custom")

_NO_CONSTANT = {
    "cme": "its weights (k(K, K) + lam)^(-1) k(K, q) mix scores between keys, and their mass may grow like sqrt(T)",
    "sparsemax": "its l_inf -> l_1 Lipschitz constant grows with the size of the support",
    "entmax": "its l_inf -> l_1 Lipschitz constant grows with the size of the support",
    "hardmax": "it is not continuous in the scores",
    "sigmoid-logT": "the mass of its row is not bounded independently of T",
}


@dataclass(frozen=True, slots=True)
class Normaliser:
    """How scores become weights.

    softmax, softmax1 ("plus one" in the denominator), sigmoid(s)/T, linear s/T, or custom with its own
    l_inf -> l_1 constant `c` and largest l_1 mass `mu`. Scores are divided by `temperature`; unset, it is
    1 for a joint score matrix and sqrt(d_head) for separate queries and keys.
    """

    name: str = "softmax"
    temperature: float | None = None
    c: float | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.name, str) and self.name in _NO_CONSTANT:
            raise Unsupported(
                Refusal(
                    what=f"normaliser {self.name!r}",
                    got=_NO_CONSTANT[self.name],
                    needs="a constant independent of T",
                    fix="Use softmax, softmax1, sigmoid or linear, or custom with your own (c, mu).",
                )
            )
        validate.choice("normaliser", self.name, NORMALISERS)
        if self.temperature is not None:
            validate.positive("temperature", self.temperature)
        if self.name == "custom":
            if self.c is None or self.mu is None:
                raise InvalidSetting("normaliser 'custom' needs both c and mu")
            validate.positive("normaliser c", self.c)
            validate.positive("normaliser mu", self.mu)
        elif self.c is not None or self.mu is not None:
            raise InvalidSetting(f"c and mu belong to normaliser 'custom', not to {self.name!r}")


@dataclass(frozen=True, slots=True)
class Linear:
    """x -> x W (+ b), applied to every row."""

    kind: str
    d_in: int
    d_out: int
    bias: str | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        validate.word("kind", self.kind)
        for name in ("d_in", "d_out"):
            validate.set_size(self, name, f"{self.kind}: {name}")
        if self.bias is not None:
            validate.word(f"{self.kind}: bias", self.bias)
        validate.set_size(self, "block", f"{self.kind}: block", least=0, optional=True)


@dataclass(frozen=True, slots=True)
class Activation:
    """An entrywise non-linearity."""

    name: str = "relu"

    def __post_init__(self) -> None:
        validate.choice("activation", self.name, ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class Ball:
    """Projection of every row onto the l2 ball."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("ball radius", self.radius)


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """LayerNorm, or RMSNorm without centring, with a gain and perhaps an offset."""

    kind: str
    d: int
    eps: float = 1e-5
    centred: bool = True
    gain: bool = True
    offset: bool = False
    variance_floor: float = 0.0
    """Coordinate variance (mean square for RMSNorm) that the class guarantees for every admissible input."""
    block: int | None = None

    def __post_init__(self) -> None:
        validate.word("kind", self.kind)
        validate.set_size(self, "d", f"{self.kind}: d")
        for name in ("centred", "gain", "offset"):
            validate.flag(f"{self.kind}: {name}", getattr(self, name))
        validate.set_size(self, "block", f"{self.kind}: block", least=0, optional=True)
        validate.positive(f"{self.kind}: variance_floor", self.variance_floor, zero=True)
        validate.positive(f"{self.kind}: eps", self.eps, zero=self.variance_floor > 0)


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention heads. `qk`: one joint matrix W_QK per head, or separate W_Q and W_K (RoPE, grouped keys).

    `combine`: the heads' outputs are summed (each value matrix maps to d) or concatenated (each maps to
    d_value; an output matrix follows as a `Linear` of its own).
    """

    d: int
    heads: int = 1
    d_head: int | None = None
    d_value: int | None = None
    kv_heads: int | None = None
    qk: Literal["joint", "split"] = "joint"
    combine: Literal["sum", "concat"] = "sum"
    normaliser: Normaliser = Normaliser()
    causal: bool = False
    qk_bias: bool = False
    v_bias: bool = False
    block: int | None = None

    def __post_init__(self) -> None:
        validate.set_size(self, "d", "attention d")
        validate.set_size(self, "heads", most=validate.MOST_STACKED)
        validate.set_size(self, "block", "attention: block", least=0, optional=True)
        if not isinstance(self.normaliser, Normaliser):
            raise InvalidSetting(f"a normaliser is like Normaliser('softmax'), got {validate.shown(self.normaliser)}")
        for name in ("causal", "qk_bias", "v_bias"):
            validate.flag(name, getattr(self, name))
        for name in ("d_head", "d_value", "kv_heads"):
            validate.set_size(self, name, optional=True)
        validate.choice("qk", self.qk, ("joint", "split"))
        validate.choice("combine", self.combine, ("sum", "concat"))
        if self.heads % self.groups:
            raise InvalidSetting(f"heads must be a multiple of kv_heads, got {self.heads} and {self.groups}")
        if self.qk == "split" and self.d_head is None:
            raise InvalidSetting("separate queries and keys need d_head")

    @property
    def groups(self) -> int:
        """How many distinct key and value heads there are."""
        return self.kv_heads or self.heads

    @property
    def out(self) -> int:
        """Width of one head's value map."""
        return self.d_value or self.d


@dataclass(frozen=True, slots=True)
class GatedFeedForward:
    """h = (s(x W_1) * (x W_3)) W_2."""

    d: int
    d_ff: int
    activation: str = "silu"
    block: int | None = None

    def __post_init__(self) -> None:
        validate.set_size(self, "d")
        validate.set_size(self, "d_ff")
        validate.set_size(self, "block", "feed-forward: block", least=0, optional=True)
        validate.choice("activation", self.activation, ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class Embedding:
    """Rows of a trained token table, plus fixed or learned positions (vocabulary 0: positions only).

    `segments`: rows of a further trained table, one of which is added to every row (BERT's token types); which one
    is part of the input.
    """

    vocabulary: int
    d: int
    positions: Literal["none", "fixed", "learned"] = "none"
    position_radius: float = 0.0
    segments: int = 0

    def __post_init__(self) -> None:
        validate.set_size(self, "vocabulary", least=0)
        validate.set_size(self, "segments", least=0)
        validate.set_size(self, "d")
        validate.choice("positions", self.positions, ("none", "fixed", "learned"))
        validate.positive("position radius", self.position_radius, zero=True)


@dataclass(frozen=True, slots=True)
class Pool:
    """From T rows to one: the [CLS] (or last) row, or the mean of all."""

    how: Literal["cls", "mean"] = "cls"

    def __post_init__(self) -> None:
        validate.choice("pool", self.how, ("cls", "mean"))


@dataclass(frozen=True, slots=True)
class Residual:
    """X + f(X)."""

    branch: tuple[Layer, ...]


Layer = Linear | Activation | Ball | LayerNorm | Attention | GatedFeedForward | Embedding | Pool | Residual


def width_after(layers: tuple[Layer, ...], width: int | None) -> int | None:
    """The width of a row after some layers, None while it is not known; refuses layers that do not fit together."""
    for layer in layers:
        if isinstance(layer, Residual):
            branch = width_after(layer.branch, width)
            if width is not None and branch != width:
                raise InvalidSetting(f"a residual adds rows of width {branch} to rows of width {width}")
            width = branch
            continue
        reads, makes = _widths(layer)
        reads = None if isinstance(layer, Embedding) and layer.vocabulary else reads  # tokens, whatever came before
        if reads is not None and width is not None and reads != width:
            name = getattr(layer, "kind", _NAMES[type(layer)])
            raise InvalidSetting(f"layer {name!r} reads rows of width {reads}, but gets rows of width {width}")
        width = makes if makes is not None else width
    return width


def _widths(layer: Layer) -> tuple[int | None, int | None]:
    """Widths a layer reads and makes; None for any, and for the same."""
    if isinstance(layer, Linear):
        return layer.d_in, layer.d_out
    if isinstance(layer, Attention):
        return layer.d, layer.heads * layer.out if layer.combine == "concat" else layer.out
    if isinstance(layer, LayerNorm | GatedFeedForward | Embedding):
        return layer.d, layer.d
    return None, None


def matrices_of(layers: tuple[Layer, ...]) -> Iterator[tuple[str, int | None, int]]:
    """(kind, block, heads) of everything some layers may have budgets for; heads is 0 where there are none."""
    for layer in layers:
        if isinstance(layer, Residual):
            yield from matrices_of(layer.branch)
        elif isinstance(layer, Linear):
            yield from ((kind, layer.block, 0) for kind in (layer.kind, layer.bias) if kind is not None)
        elif isinstance(layer, LayerNorm):
            parts = (("gain", layer.gain), ("offset", layer.offset))
            yield from ((f"{layer.kind}.{part}", layer.block, 0) for part, there in parts if there)
        elif isinstance(layer, Attention):
            biases = (("b_Q", layer.qk_bias), ("b_K", layer.qk_bias), ("b_V", layer.v_bias))
            kinds = ("W_QK", "W_Q", "W_K", "W_V", *(bias for bias, there in biases if there))
            yield from ((kind, layer.block, layer.heads) for kind in kinds)
        elif isinstance(layer, GatedFeedForward):
            yield from ((kind, layer.block, 0) for kind in ("W_1", "W_2", "W_3"))
        elif isinstance(layer, Embedding):
            tables = (
                ("embedding", layer.vocabulary > 0),
                ("positions", layer.positions == "learned"),
                ("segments", layer.segments > 0),
            )
            yield from ((kind, None, 0) for kind, there in tables if there)


_TYPES: dict[str, type] = {
    "linear": Linear,
    "activation": Activation,
    "ball": Ball,
    "layernorm": LayerNorm,
    "attention": Attention,
    "gated": GatedFeedForward,
    "embedding": Embedding,
    "pool": Pool,
    "residual": Residual,
}
_NAMES = {cls: name for name, cls in _TYPES.items()}


def layer_to_json(layer: Layer) -> dict[str, Any]:
    """The JSON object of a layer."""
    name = _NAMES[type(layer)]
    if isinstance(layer, Residual):
        return {"layer": name, "branch": [layer_to_json(inner) for inner in layer.branch]}
    data = {"layer": name, **validate.to_fields(layer)}
    if isinstance(layer, Attention) and layer.normaliser != Normaliser():
        data["normaliser"] = validate.to_fields(layer.normaliser)
    return data


def layer_from_json(data: object) -> Layer:
    """The layer of a JSON object."""
    if not isinstance(data, Mapping) or "layer" not in data:
        raise InvalidSetting(f"a layer is a JSON object with a key 'layer', got {validate.shown(data)}")
    name = validate.choice("layer", data["layer"], _TYPES)
    rest = {key: value for key, value in data.items() if key != "layer"}
    if name == "residual":
        branch = validate.known_keys("residual", rest, ["branch"]).get("branch", [])
        if not isinstance(branch, list):
            raise InvalidSetting("a residual's 'branch' is a list of layers")
        return Residual(tuple(layer_from_json(inner) for inner in branch))
    if name == "attention" and "normaliser" in rest:
        rest["normaliser"] = validate.from_fields("normaliser", Normaliser, rest["normaliser"])
    try:
        return validate.from_fields(f"layer {name!r}", _TYPES[name], rest)
    except TypeError as error:
        raise InvalidSetting(f"layer {name!r}: {error}") from None
