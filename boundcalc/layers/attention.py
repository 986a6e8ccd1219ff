"""L1, L2, L7, L8, L11-L14 and S1-S5: attention heads, and how scores become weights."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.schema import Count, Positive, Size, Stacked, check_fields, declare
from boundcalc.base.validate import choice
from boundcalc.layers import heads as head_facts
from boundcalc.layers.base import Layer, Role, Weight, Widths, of_class, register_layer
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.forward import Arrays, Forward

_NORMALISERS = ("softmax", "softmax1", "sigmoid", "linear", "custom")
_NO_CONSTANT = {
    "cme": "its weights (k(K, K) + lam)^(-1) k(K, q) mix scores between keys, and their mass may grow like sqrt(T)",
    "sparsemax": "its l_inf -> l_1 Lipschitz constant grows with the size of the support",
    "entmax": "its l_inf -> l_1 Lipschitz constant grows with the size of the support",
    "hardmax": "it is not continuous in the scores",
    "sigmoid-logT": "the mass of its row is not bounded independently of T",
}


def _known(where: str, value: Any, options: tuple[str, ...]) -> str:
    """One of the names; of a normaliser without a constant the reason."""
    if isinstance(value, str) and value in _NO_CONSTANT:
        fix = "Use softmax, softmax1, sigmoid or linear, or custom with your own (c, mu)."
        raise Unsupported(Refusal(f"normaliser {value!r}", _NO_CONSTANT[value], "a constant independent of T", fix))
    return choice(where, value, options)


@dataclass(frozen=True, slots=True)
class Normaliser:
    """How scores become weights.

    softmax, softmax1 ("plus one" in the denominator), sigmoid(s)/T, linear s/T, or custom with its own
    l_inf -> l_1 constant `c` and largest l_1 mass `mu`. Scores are divided by `temperature`; unset, it is
    1 for a joint score matrix and sqrt(d_head) for separate queries and keys.
    """

    name: Annotated[str, partial(_known, options=_NORMALISERS)] = declare("softmax", "how scores become weights")
    temperature: Positive | None = declare(None, "what scores are divided by")
    c: Positive | None = declare(None, "Lipschitz constant of a normaliser of your own")
    mu: Positive | None = declare(None, "largest mass of a row of weights of a normaliser of your own")

    def __post_init__(self) -> None:
        check_fields(self, "normaliser ")
        if self.name == "custom" and None in (self.c, self.mu):
            raise InvalidSetting("normaliser 'custom' needs both c and mu")
        if self.name != "custom" and not self.c is self.mu is None:
            raise InvalidSetting(f"c and mu belong to normaliser 'custom', not to {self.name!r}")


@register_layer
@dataclass(frozen=True, slots=True)
class Attention(Layer):
    """Attention heads.

    `qk`: one joint matrix W_QK per head, separate W_Q and W_K (RoPE, grouped keys), or a query q of the layer's own
    ("fixed"), the same for every example: every row of the output is then the same (attention pooling, a [CLS] row
    without data in the first layer).

    `combine`: the heads' outputs are summed (each value matrix maps to d) or concatenated (each maps to
    d_value; an output matrix follows as a `Linear` of its own). `offsets`: numbers that are added to the scores by
    positions, fixed ones such as ALiBi's, or learned ones, of which each head has one per bucket of positions (T5).
    `cap`: scores s become cap tanh(s / cap), once divided by the temperature. `qk_norm`: queries and keys become
    g * u / sqrt(|u|^2/d + qk_eps) before they meet, each head's by itself, or those of all heads together ("width").
    """

    label = "attention"
    noise_fields = ("cap", "qk_norm", "offsets")  # no option of L11-L14

    d: Size
    heads: Stacked = 1
    d_head: Size | None = None
    d_value: Size | None = None
    kv_heads: Size | None = None
    qk: Literal["joint", "split", "fixed"] = "joint"
    combine: Literal["sum", "concat"] = "sum"
    normaliser: Normaliser = Normaliser()
    causal: bool = False
    qk_bias: bool = False
    v_bias: bool = False
    block: Count | None = None
    offsets: Literal["none", "fixed", "learned"] = "none"
    cap: Positive | None = None
    buckets: Size | None = None
    qk_norm: Literal["none", "head", "width"] = "none"
    qk_eps: Positive | None = None

    def contradiction(self) -> str | None:
        softmax, normed = self.normaliser.name == "softmax", self.qk_norm != "none"
        score_fields = self.d_head is not None or self.qk_bias or self.causal
        rules = (
            (self.heads % self.groups, f"heads must be a multiple of kv_heads, got {self.heads} and {self.groups}"),
            (self.qk == "split" and self.d_head is None, "separate queries and keys need d_head"),
            (self.qk == "fixed" and score_fields, "a query of the layer's own takes no d_head, qk_bias or causal mask"),
            (
                (self.offsets == "learned") != (self.buckets is not None),
                "learned offsets alone need buckets",
            ),
            (normed != (self.qk_eps is not None), "normalised queries and keys (qk_norm), and they alone, need qk_eps"),
            (normed and not (self.qk == "split" and softmax), "qk_norm is for qk 'split' under softmax"),
            (self.qk_norm == "width" and self.combine != "concat", "qk_norm 'width' is for combine 'concat'"),
            (self.offsets != "none" and not softmax, "offsets of scores are for softmax"),
        )
        return next((what for wrong, what in rules if wrong), None)

    # -- what it is

    @property
    def groups(self) -> int:
        """How many distinct key and value heads there are."""
        return self.kv_heads or self.heads

    @property
    def out(self) -> int:
        """Width of one head's value map."""
        return self.d_value or self.d

    @property
    def temperature(self) -> float:
        """What scores are divided by: unless it is given, 1, or sqrt(d_head) where queries and keys are apart."""
        if self.normaliser.temperature is not None:
            return self.normaliser.temperature
        return math.sqrt(self.d_head) if self.qk == "split" and self.d_head is not None else 1.0

    @property
    def key_bias(self) -> bool:
        """Whether an offset of the keys changes anything: softmax forgets what is the same for all keys (T8)."""
        return self.qk_bias and (self.qk == "split" or self.normaliser.name != "softmax" or self.cap is not None)

    @property
    def scores(self) -> Weight:
        """The joint score matrix of a head; offsets of queries and keys are one more row and column of it.

        A query of the layer's own is one column.
        """
        if self.qk == "fixed":
            return self._weight("q", "matrix", (self.d, 1), self.heads)
        shape = (self.d + int(self.qk_bias), self.d + int(self.key_bias))
        factors = self._factors("factor", "factor vector") if self.d_head is not None else ()
        return self._weight("W_QK", "matrix", shape, self.heads, factors)

    def brief(self) -> str:
        causal = "causal" if self.causal else "not causal"
        return f"attention of {self.heads} heads ({causal}, {self.normaliser.name})"

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        weights = [*(self._factors("matrix", "vector") if self.qk == "split" else (self.scores,))]
        weights.append(self._weight("W_V", "matrix", (self.d, self.out), self.groups))
        if self.v_bias:
            weights.append(self._weight("b_V", "vector", (self.out,), self.groups))
        if self.qk_norm != "none":  # what follows all heads share
            for side, copies in (("Q", self.heads), ("K", self.groups)):
                width = (self.d_head or 0) * (copies if self.qk_norm == "width" else 1)
                weights.append(Weight(f"norm_{side}.gain", "gain", (width,), self.block))
        if self.buckets is not None:
            weights.append(Weight("score_offsets", "gain", (self.buckets, self.heads), self.block))
        return tuple(weights)

    def stored(self, seq_len: int) -> tuple[Weight, ...]:
        unread = self.qk_bias and not self.key_bias
        offset = (self._weight("b_K", "vector", (self.d_head or self.d,), self.groups),) if unread else ()
        return (*self.weights(seq_len), *offset)

    def _factors(
        self, matrix: Literal["matrix", "factor"], vector: Literal["vector", "factor vector"]
    ) -> tuple[Weight, ...]:
        width = self.d_head or self.d
        queries = self._weight("W_Q", matrix, (self.d, width), self.heads)
        keys = self._weight("W_K", matrix, (self.d, width), self.groups)
        b_q = (self._weight("b_Q", vector, (width,), self.heads),) if self.qk_bias else ()
        b_k = (self._weight("b_K", vector, (width,), self.groups),) if self.key_bias else ()
        return (queries, keys, *b_q, *b_k)

    def _weight(
        self, kind: str, role: Role, shape: tuple[int, ...], copies: int, factors: tuple[Weight, ...] = ()
    ) -> Weight:
        return Weight(kind, role, shape, self.block, self.heads, copies, factors)

    def widths(self) -> Widths:
        return self.d, self.heads * self.out if self.combine == "concat" else self.out

    def rows_before(self, rows: int, seq_len: int) -> int:
        return seq_len

    def facts(self, at: Context) -> Facts:
        return head_facts.facts(self, at)

    # -- how it runs

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        mix = self.mix(x, weights, run)
        mixed = mix @ _shared(self, _of_heads(x, weights, run, "W_V", "b_V" if self.v_bias else None), run)
        if self.combine == "sum":
            return mixed.sum(1)
        mixed = mixed.swapaxes(1, 2)
        return mixed.reshape(*mixed.shape[:2], -1)

    def mix(self, x: Any, weights: Arrays, run: Forward) -> Any:
        """The weights (n, heads, queries, keys) that rows have for each other; a single query sees all keys."""
        xp, fixed, count = run.xp, run.fixed, x.shape[1]
        queries = x if run.query is None else x[:, run.query : run.query + 1 or None]
        scores = self._products(queries, x, weights, run) / self.temperature
        if (self.offsets == "fixed") != (fixed.added is not None):
            raise InvalidSetting("the architecture and the forward pass disagree on numbers added to scores")
        scores = scores if fixed.added is None else scores + fixed.added(count)
        if self.buckets is not None:
            if fixed.bucket is None:
                raise InvalidSetting("Fixed.bucket is missing: it gives each pair of positions its learned number")
            table = weights("score_offsets").reshape(self.buckets, self.heads)
            scores = scores + table[fixed.bucket(count)].transpose(2, 0, 1) / self.temperature
        scores = scores if self.cap is None else self.cap * xp.tanh(scores / self.cap)
        if self.causal and run.query is None:
            scores = xp.where(xp.causal(x), scores, -math.inf)
        if fixed.window is not None:
            scores = xp.where(fixed.window(self.block, count), scores, -math.inf)
        return normalise(self.normaliser.name, scores, count, xp)

    def _products(self, queries: Any, x: Any, weights: Arrays, run: Forward) -> Any:
        """Scores (n, heads, queries, keys), not yet divided."""
        xp, kind = run.xp, self.scores.kind
        if self.qk == "fixed":
            query = _of_heads(x, weights, run, kind, None).swapaxes(2, 3)
            return xp.repeat_interleave(query, queries.shape[1], 2)
        if self.qk == "joint" and (self.d_head is None or run.source.has(self, kind)):
            joint = weights(kind)
            left, right = (
                rows if side == self.d else xp.concatenate([rows, xp.ones_like(rows[..., :1])], -1)
                for rows, side in zip((queries, x), joint.shape[-2:], strict=True)
            )
            return xp.einsum("nhqd,nkd->nhqk", xp.einsum("ntd,hde->nhte", left, joint), right)
        q = _of_heads(queries, weights, run, "W_Q", "b_Q" if self.qk_bias else None)
        k = _of_heads(x, weights, run, "W_K", "b_K" if self.key_bias or (run.trains and self.qk_bias) else None)
        if self.qk_norm != "none":
            q, k = (self._unit(y, weights(kind), xp) for y, kind in ((q, "norm_Q.gain"), (k, "norm_K.gain")))
        if run.fixed.rotate is not None:
            if self.qk != "split":  # turned keys' offsets are not the same for all keys
                raise InvalidSetting("queries and keys that turn are described apart: rope true, or qk 'split'")
            q, k = run.fixed.rotate(q, self.block), run.fixed.rotate(k, self.block)
        return q @ _shared(self, k, run).swapaxes(-1, -2)

    def _unit(self, y: Any, gain: Any, xp: Any) -> Any:
        """(n, heads, T, width), every head by itself or all of a row together."""
        together = (1, 3) if self.qk_norm == "width" else (3,)
        y = y / xp.sqrt((y * y).mean(together, keepdims=True) + self.qk_eps)
        return y * gain.reshape(-1, 1, y.shape[3])


def normalise(name: str, scores: Any, count: int, xp: Any) -> Any:
    """Weights of so many keys from scores, along the last dimension; scores of keys that are not seen are -inf."""
    if name == "softmax":
        return xp.softmax(scores, -1)
    if name == "softmax1":
        return xp.softmax(xp.concatenate([scores, xp.zeros_like(scores[..., :1])], -1), -1)[..., :-1]
    if name == "sigmoid":
        return xp.sigmoid(scores) / count
    if name == "linear":
        return xp.where(scores == -math.inf, 0.0, scores) / count
    raise InvalidSetting(f"normaliser {name!r} does not say how scores become weights, so it cannot be run")


def _of_heads(x: Any, weights: Arrays, run: Forward, kind: str, bias: str | None) -> Any:
    """(n, heads, T, width)."""
    y = run.xp.einsum("ntd,hde->nhte", x, weights(kind))
    return y + weights(bias)[..., None, :] if bias else y


def _shared(layer: Attention, y: Any, run: Forward) -> Any:
    """Key and value heads, repeated for the query heads that share them."""
    return y if layer.groups == layer.heads else run.xp.repeat_interleave(y, layer.heads // layer.groups, 1)


def is_causal(layers: Iterable[Layer]) -> bool:
    """Whether some attention does not look ahead: then the last row sees all, and no other does."""
    return any(attention.causal for attention in of_class(layers, Attention))
