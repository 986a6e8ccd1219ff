"""Attention as data: how scores become weights, and the heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.setting import validate
from boundcalc.setting.layer import Layer, Role, Weight, of_class
from boundcalc.setting.named import ours

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


@ours
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

    label: ClassVar[str] = "attention"

    d: int
    heads: int = 1
    d_head: int | None = None
    d_value: int | None = None
    kv_heads: int | None = None
    qk: Literal["joint", "split", "fixed"] = "joint"
    combine: Literal["sum", "concat"] = "sum"
    normaliser: Normaliser = Normaliser()
    causal: bool = False
    qk_bias: bool = False
    v_bias: bool = False
    block: int | None = None
    offsets: Literal["none", "fixed", "learned"] = "none"
    cap: float | None = None
    buckets: int | None = None
    qk_norm: Literal["none", "head", "width"] = "none"
    qk_eps: float | None = None

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
        validate.choice("qk", self.qk, ("joint", "split", "fixed"))
        validate.choice("combine", self.combine, ("sum", "concat"))
        if self.heads % self.groups:
            raise InvalidSetting(f"heads must be a multiple of kv_heads, got {self.heads} and {self.groups}")
        if self.qk == "split" and self.d_head is None:
            raise InvalidSetting("separate queries and keys need d_head")
        if self.qk == "fixed" and (self.d_head is not None or self.qk_bias or self.causal):
            raise InvalidSetting("a query of the layer's own takes no d_head, no qk_bias and no causal mask")
        validate.choice("offsets", self.offsets, ("none", "fixed", "learned"))
        validate.set_size(self, "buckets", optional=True)
        if (self.offsets == "learned") != (self.buckets is not None):
            raise InvalidSetting("learned offsets of scores need buckets, and nothing else does")
        self._check_normalised()
        if self.cap is not None:
            validate.positive("cap", self.cap)
        if self.offsets != "none" and self.normaliser.name != "softmax":
            raise InvalidSetting(
                f"numbers added to scores are known to cost nothing under softmax, not under {self.normaliser.name!r}"
            )

    def _check_normalised(self) -> None:
        validate.choice("qk_norm", self.qk_norm, ("none", "head", "width"))
        if (self.qk_norm != "none") != (self.qk_eps is not None):
            raise InvalidSetting("normalised queries and keys (qk_norm) need qk_eps, and nothing else does")
        if self.qk_norm == "none":
            return
        validate.positive("qk_eps", self.qk_eps)
        if self.qk != "split" or self.normaliser.name != "softmax":
            raise InvalidSetting(
                f"queries and keys are normalised where they are apart and under softmax: qk 'split', got {self.qk!r} and "
                f"{self.normaliser.name!r}"
            )
        if self.qk_norm == "width" and self.combine != "concat":
            raise InvalidSetting("queries and keys of all heads are normalised together where heads stand side by side")

    def normalised(self, copies: int) -> int:
        """How many numbers are normalised together, of so many heads."""
        return (self.d_head or 0) * (copies if self.qk_norm == "width" else 1)

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

    def fitted(self, has: Callable[[str], bool]) -> Layer:
        fused = has("b_QKV")
        return replace(self, qk_bias=fused or has("b_Q") or has("b_K"), v_bias=fused or has("b_V"))

    def said(self) -> str:
        causal = "causal" if self.causal else "not causal"
        return f"attention of {self.heads} heads ({causal}, {self.normaliser.name})"

    def where(self) -> int | None:
        return self.block

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        scores = self._factors("matrix", "vector") if self.qk == "split" else (self.scores,)
        values = self._weight("W_V", "matrix", (self.d, self.out), self.groups)
        offset = (self._weight("b_V", "vector", (self.out,), self.groups),) if self.v_bias else ()
        return (*scores, values, *offset, *self.beside_heads())

    def stored(self, seq_len: int) -> tuple[Weight, ...]:
        unread = self.qk_bias and not self.key_bias
        offset = (self._weight("b_K", "vector", (self.d_head or self.d,), self.groups),) if unread else ()
        return (*self.weights(seq_len), *offset)

    def beside_heads(self) -> Iterator[Weight]:
        """Weights that all heads share."""
        if self.qk_norm != "none":
            for kind, copies in (("norm_Q.gain", self.heads), ("norm_K.gain", self.groups)):
                yield Weight(kind, "gain", (self.normalised(copies),), self.block)
        if self.buckets is not None:
            yield Weight("score_offsets", "gain", (self.buckets, self.heads), self.block)

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

    @property
    def key_bias(self) -> bool:
        """Whether an offset of the keys changes anything: softmax forgets what is the same for all keys (T8)."""
        return self.qk_bias and (self.qk == "split" or self.normaliser.name != "softmax" or self.cap is not None)

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

    def inner(self) -> tuple[Layer, ...]:
        return ()

    def widths(self) -> tuple[int | None, int | None]:
        return self.d, self.heads * self.out if self.combine == "concat" else self.out

    def rows_before(self, rows: int, seq_len: int) -> int:
        return seq_len


def attentions(layers: Iterable[Layer]) -> Iterator[Attention]:
    """The attention layers, those inside of others included, input to read-out."""
    return of_class(layers, Attention)


def is_causal(layers: Iterable[Layer]) -> bool:
    """Whether some attention does not look ahead: then the last row sees all, and no other does."""
    return any(attention.causal for attention in attentions(layers))
