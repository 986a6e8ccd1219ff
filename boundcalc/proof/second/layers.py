"""Layers as data: what a file may say of each, what each trains, and which widths and rows it reads."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .numbers import demand, unknown
from .strict import KINDS, Record, read

ACTIVATIONS = "relu|gelu|gelu_tanh|silu|quick_gelu|mish|tanh|identity"
_LINES = {
    "linear": "kind:name d_in:size d_out:size bias:name? block:index?",
    "activation": f"name:{ACTIVATIONS}",
    "ball": "radius:positive",
    "softcap": "d:size cap:positive",
    "layernorm": "kind:name d:size eps:length centred:flag gain:flag offset:flag variance_floor:length block:index? "
    "around_one:flag",
    "attention": "d:size heads:stacked d_head:size? d_value:size? kv_heads:size? qk:joint|split|fixed combine:sum|concat "
    "normaliser:normaliser causal:flag qk_bias:flag v_bias:flag block:index? offsets:none|fixed|learned cap:positive? "
    "buckets:size? qk_norm:none|head|width qk_eps:positive?",
    "gated": f"d:size d_ff:size activation:{ACTIVATIONS} block:index? bias:flag",
    "experts": f"d:size d_ff:size experts:stacked activation:{ACTIVATIONS} block:index? active:size?",
    "embedding": "vocabulary:index d:size positions:none|fixed|learned position_radius:length segments:index own_row:index?",
    "hidden": f"first:name last:name d:size d_ff:size activation:{ACTIVATIONS} bias:name? block:index?",
    "lookup": "vocabulary:size heads:stacked d_value:size",
    "pool": "how:cls|mean",
    "residual": "branch:layer* beside:layer** skip:flag",
}
Widths = tuple[int | None, int | None]
"""The widths of the rows that a layer reads (None: any; 0: tokens) and makes (None: the same)."""


class Weight(NamedTuple):
    """What a budget may be given for: its name, what it is, its block, its heads, and the factors of a product."""

    kind: str
    role: str
    block: int | None = None
    heads: int = 0
    factors: tuple[Any, ...] = ()


class Layer(Record):
    """A layer; the first field is its label."""

    label: str

    @property
    def groups(self) -> int:
        """Distinct key and value heads."""
        return self.kv_heads or self.heads

    @property
    def out(self) -> int:
        """Width of the rows of a head's value map."""
        return self.d_value or self.d

    @property
    def keys_alone(self) -> bool:
        """Whether what a query adds to all its scores changes nothing."""
        return self.normaliser.name == "softmax" and self.cap is None

    @property
    def inner(self) -> tuple[Any, ...]:
        """The layers inside of it."""
        return tuple(x for branch in (self.branch, *self.beside) for x in branch) if self.label == "residual" else ()

    @property
    def mixes(self) -> bool:
        """Whether one output row depends on every input row."""
        own = self.label in ("attention", "lookup") or (self.label == "pool" and self.how == "mean")
        return own or any(layer.mixes for layer in self.inner)


def linear(kind: str, d: int, k: int, bias: str | None, block: int | None) -> Layer:
    """A linear map."""
    return Layer(label="linear", kind=kind, d_in=d, d_out=k, bias=bias, block=block)


def residual(branch: Iterable[Layer], beside: Iterable[Iterable[Layer]] = (), skip: bool = True) -> Layer:
    """X + f(X) + g(X) + ..., X itself where it is added."""
    return Layer(label="residual", branch=tuple(branch), beside=tuple(map(tuple, beside)), skip=skip)


def _layer(where: str, data: Any) -> Layer:
    demand(isinstance(data, dict) and isinstance(data.get("layer"), str), f"{where} names no layer")
    label = data["layer"]
    if label not in _LINES:
        raise unknown("layer", label)
    made = read(_LINES[label], where, {key: each for key, each in data.items() if key != "layer"}, made=Layer)
    checked(made.but(label=label), where)
    return made.but(label=label)


def _normaliser(where: str, data: Any) -> Record:
    line = "name:softmax|softmax1|sigmoid|linear|custom temperature:positive? c:positive? mu:positive?"
    found, own = read(line, where, data), data["name"] == "custom"
    demand((found.c is not None) == own == (found.mu is not None), f"{where}: c and mu are those of custom weights")
    return found


KINDS["layer"], KINDS["normaliser"] = _layer, _normaliser


def checked(layer: Layer, where: str) -> None:
    """Refuses a layer whose fields contradict each other."""
    wrong: list[Any] = []
    match layer.label:
        case "layernorm":
            wrong = [layer.eps == 0 == layer.variance_floor, layer.around_one and not layer.gain]
        case "attention":
            softmax, normed = layer.normaliser.name == "softmax", layer.qk_norm != "none"
            wrong = [layer.heads % layer.groups, layer.qk == "split" and layer.d_head is None]
            wrong += [layer.qk == "fixed" and (layer.d_head is not None or layer.qk_bias or layer.causal)]
            wrong += [(layer.offsets == "learned") != (layer.buckets is not None), normed != (layer.qk_eps is not None)]
            wrong += [layer.offsets != "none" and not softmax, normed and not (layer.qk == "split" and softmax)]
            wrong += [layer.qk_norm == "width" and layer.combine != "concat"]
        case "experts":  # where another one is picked the output jumps
            wrong = [layer.active not in (None, layer.experts)]
        case "embedding":
            wrong = [layer.own_row is not None and layer.own_row >= layer.vocabulary]
            wrong += [layer.positions != "fixed" and layer.position_radius]
    demand(not any(wrong), f"{where}: the fields of this {layer.label} contradict each other")


def weights(layer: Layer) -> tuple[Weight, ...]:
    """What a layer trains, inner layers apart."""

    def of(role: str, *kinds: Any, heads: int = 0) -> tuple[Weight, ...]:
        return tuple(Weight(kind, role, layer.block, heads) for kind in kinds if kind)

    match layer.label:
        case "linear":
            return of("matrix", layer.kind) + of("vector", layer.bias)
        case "layernorm":
            gain, offset = layer.gain and f"{layer.kind}.gain", layer.offset and f"{layer.kind}.offset"
            return of("gain", gain) + of("vector", offset)
        case "attention":
            n, apart, both = layer.heads, layer.qk == "split", layer.qk_bias
            matrix, vector = ("matrix", "vector") if apart else ("factor", "factor vector")
            moved = ("b_Q" if both else "", "b_K" if both and (apart or not layer.keys_alone) else "")
            sides = of(matrix, "W_Q", "W_K", heads=n) + of(vector, *moved, heads=n)
            joint = Weight("W_QK", "matrix", layer.block, n, () if layer.d_head is None else sides)
            scores = {"split": sides, "joint": (joint,), "fixed": of("matrix", "q", heads=n)}[layer.qk]
            gains = ("norm_Q.gain", "norm_K.gain") if layer.qk_norm != "none" else ()
            own = of("matrix", "W_V", heads=n) + of("vector", layer.v_bias and "b_V", heads=n)
            return scores + own + of("gain", *gains, layer.buckets and "score_offsets")
        case "gated":
            return of("matrix", "W_1", "W_3", "W_2") + of("vector", *(("b_1", "b_3", "b_2") if layer.bias else ()))
        case "experts":
            return of("matrix", "W_gate", "W_1", "W_3", "W_2")
        case "embedding":
            learned = layer.positions == "learned" and "positions"
            named = (layer.vocabulary and "embedding", learned, layer.segments and "segments")
            return tuple(Weight(name, "table" if name == "embedding" else "rows") for name in named if name)
        case "hidden":
            return of("matrix", layer.first, layer.last) + of("vector", layer.bias)
        case "lookup":
            return tuple(
                Weight(f"{side}_{role}", role) for role in ("scores", "values") for side in ("token", "position")
            )
    return ()


def _widths(layer: Layer) -> Widths:
    match layer.label:
        case "linear":
            return layer.d_in, layer.d_out
        case "softcap" | "layernorm" | "gated" | "experts":
            return layer.d, layer.d
        case "attention":
            return layer.d, layer.heads * layer.out if layer.combine == "concat" else layer.out
        case "embedding":
            return 0 if layer.vocabulary else layer.d, layer.d
        case "hidden":
            return layer.d, 1
        case "lookup":
            return 0, layer.heads * layer.d_value
        case "residual":
            found = [widths(branch) for branch in (*([()] if layer.skip else []), layer.branch, *layer.beside)]
            reads = {read for read, _ in found if read is not None}
            same = (None, None) in found  # X itself, or its entries changed
            makes = {make for _, make in found if make is not None} | (reads if same else set())
            demand(len(reads) <= 1 and len(makes) <= 1, "the branches of a residual do not fit together")
            width = next(iter(makes), None)
            return next(iter(reads), width if same else None), width
    return None, None


def widths(layers: Iterable[Layer]) -> Widths:
    """The widths that layers read and make, one after the other."""
    start: int | None = None
    width: int | None = None
    for layer in layers:
        reads, makes = _widths(layer)
        demand(
            None in (reads, width) or reads == width, f"a {layer.label} reads rows of width {reads}, and gets {width}"
        )
        start = reads if start is None and width is None else start
        width = next((x for x in (makes, reads, width) if x is not None), None)
    return start, width


def flat(layers: Iterable[Layer]) -> Iterator[Layer]:
    """All layers, those inside of others after them."""
    for layer in layers:
        yield layer
        yield from flat(layer.inner)


def rows_read(layers: Sequence[Layer], rows: int, seq_len: int) -> list[int]:
    """How many output rows of each layer are read, from the last back: all below an attention or a mean."""
    read: list[int] = []
    for layer in reversed(layers):
        read.append(rows)
        rows = seq_len if layer.mixes else 1 if layer.label == "pool" else rows
    return read[::-1]
