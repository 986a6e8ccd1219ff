"""Layers as data: what a file may say of each, what each trains, and which widths and rows it reads."""

from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ._numbers import demand, unknown
from ._strict import KINDS, Record, read

ACTIVATIONS = "relu|gelu|gelu_tanh|silu|quick_gelu|tanh|identity"
_LINES = {
    "linear": "kind:name d_in:size d_out:size bias:name? block:index?",
    "activation": f"name:{ACTIVATIONS}",
    "ball": "radius:positive",
    "softcap": "d:size cap:positive",
    "layernorm": "kind:name d:size eps:length centred:flag gain:flag offset:flag variance_floor:length block:index? "
    "around_one:flag",
    "attention": "d:size heads:stacked d_head:size? d_value:size? kv_heads:size? qk:joint|split|fixed "
    "combine:sum|concat "
    "normaliser:normaliser causal:flag qk_bias:flag v_bias:flag block:index? offsets:none|fixed|learned cap:positive? "
    "buckets:size? qk_norm:none|head|width qk_eps:positive?",
    "gated": f"d:size d_ff:size activation:{ACTIVATIONS} block:index? bias:flag",
    "embedding": "vocabulary:index d:size positions:none|fixed|learned position_radius:length segments:index "
    "own_row:index?",
    "hidden": f"first:name last:name d:size d_ff:size activation:{ACTIVATIONS} bias:name? block:index?",
    "lookup": "vocabulary:size heads:stacked d_value:size",
    "pool": "how:cls|mean",
    "residual": "branch:layer* beside:layer** skip:flag",
}
Widths = tuple[int | None, int | None]
"""The widths of the rows that a layer reads (None: any; 0: tokens) and makes (None: the same)."""


Weight = namedtuple("Weight", "kind role size block heads factors", defaults=[0, None, 0, ()])
"""What a budget may be given for: its name, what it is, how many numbers, its block, its heads, the factors of a
product."""


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
    layer = read(_LINES[label], where, {key: entry for key, entry in data.items() if key != "layer"}, kind=Layer)
    checked(layer.but(label=label), where)
    return layer.but(label=label)


def _normaliser(where: str, data: Any) -> Record:
    line = "name:softmax|softmax1|sigmoid|linear|custom temperature:positive? c:positive? mu:positive?"
    normaliser, own = read(line, where, data), data["name"] == "custom"
    demand(
        (normaliser.c is not None) == own == (normaliser.mu is not None),
        f"{where}: c and mu are those of custom weights",
    )
    return normaliser


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
        case "embedding":
            wrong = [layer.own_row is not None and layer.own_row >= layer.vocabulary]
            wrong += [layer.positions != "fixed" and layer.position_radius]
    demand(not any(wrong), f"{where}: the fields of this {layer.label} contradict each other")


def weights(layer: Layer, seq_len: int = 0) -> tuple[Weight, ...]:
    """What a layer trains, inner layers apart; the sizes of tables by position are those for so many rows."""

    def of(role: str, sizes: Mapping[Any, int], heads: int = 0) -> tuple[Weight, ...]:
        return tuple(Weight(kind, role, size, layer.block, heads) for kind, size in sizes.items() if kind)

    match layer.label:
        case "linear":
            return of("matrix", {layer.kind: layer.d_in * layer.d_out}) + of("vector", {layer.bias: layer.d_out})
        case "layernorm":
            gain, offset = layer.gain and f"{layer.kind}.gain", layer.offset and f"{layer.kind}.offset"
            return of("gain", {gain: layer.d}) + of("vector", {offset: layer.d})
        case "attention":
            n, g, d, w, both = layer.heads, layer.groups, layer.d, layer.d_head or layer.d, bool(layer.qk_bias)
            apart, bordered = layer.qk == "split", both and not layer.keys_alone
            matrix, vector = ("matrix", "vector") if apart else ("factor", "factor vector")
            moved = {"b_Q" if both else "": n * w, "b_K" if bordered or (both and apart) else None: g * w}
            sides = of(matrix, {"W_Q": n * d * w, "W_K": g * d * w}, n) + of(vector, moved, n)
            size, factors = n * (d + both) * (d + bordered), () if layer.d_head is None else sides
            joint = Weight("W_QK", "matrix", size, layer.block, n, factors)
            scores = {"split": sides, "joint": (joint,), "fixed": of("matrix", {"q": n * d}, n)}[layer.qk]
            together = (n, g) if layer.qk_norm == "width" else (1, 1)
            gains = {f"norm_{side}.gain": w * copies for side, copies in zip("QK", together, strict=True)}
            own = of("matrix", {"W_V": g * d * layer.out}, n) + of("vector", {layer.v_bias and "b_V": g * layer.out}, n)
            offsets = of("gain", {layer.buckets and "score_offsets": n * (layer.buckets or 0)})
            return scores + own + (of("gain", gains) if layer.qk_norm != "none" else ()) + offsets
        case "gated":
            d, h = layer.d, layer.d_ff
            offsets = of("vector", {"b_1": h, "b_3": h, "b_2": d}) if layer.bias else ()
            return of("matrix", {"W_1": d * h, "W_3": d * h, "W_2": d * h}) + offsets
        case "embedding":
            rows = {"embedding": layer.vocabulary, "segments": layer.segments}
            rows |= {"positions": max(seq_len, 1) if layer.positions == "learned" else 0}
            roles = {"embedding": "table", "segments": "rows", "positions": "rows"}
            return tuple(Weight(name, roles[name], count * layer.d) for name, count in rows.items() if count)
        case "hidden":
            maps = of("matrix", {layer.first: layer.d * layer.d_ff}) + of("matrix", {layer.last: layer.d_ff})
            return maps + of("vector", {layer.bias: layer.d_ff})
        case "lookup":
            rows, width = {"token": layer.vocabulary, "position": seq_len}, {"scores": 1, "values": layer.d_value}
            every = [(side, role) for side in rows for role in width]
            return tuple(Weight(f"{s}_{r}", r, rows[s] * layer.heads * width[r]) for s, r in every)
    return ()


def _widths(layer: Layer) -> Widths:
    match layer.label:
        case "linear":
            return layer.d_in, layer.d_out
        case "softcap" | "layernorm" | "gated":
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
            sizes = [widths(branch) for branch in (*([()] if layer.skip else []), layer.branch, *layer.beside)]
            reads = {read for read, _ in sizes if read is not None}
            same = (None, None) in sizes  # X itself, or its entries changed
            makes = {make for _, make in sizes if make is not None} | (reads if same else set())
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
        demand(None in (reads, width) or reads == width, f"{layer.label} reads rows of width {reads}, and gets {width}")
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
