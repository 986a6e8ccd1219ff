"""L and S as statements; every value is what the layer's own rule in `calculus.layers` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.sources import EDELMAN2022, ZHANG2002
from boundcalc.base.statement import Statement
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Experts,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Normaliser,
    Norms,
    SoftCap,
)
from boundcalc.statements.attention import normaliser_constants
from boundcalc.statements.covers import T1, T2, T4
from boundcalc.statements.layers import ACTIVATION_LIPSCHITZ, facts
from boundcalc.statements.slots import Context, Facts, Slot
from boundcalc.statements.targets import MatrixNorms, Target
from boundcalc.statements.weights import Matrix, Weights

Values = Mapping[str, Number]


class Given(Weights):
    """Norms given as numbers of any system, so that a layer's rule can be asked for its value."""

    def __init__(self, ns: NumberSystem, given: Mapping[str, MatrixNorms | Number]) -> None:
        super().__init__(ns, Norms())
        self.given = given

    def matrix(self, kind: str, block: int | None, head: int | None, d: int, k: int, rank: int | None = None) -> Matrix:
        norms = self.given[kind]
        whole = (
            norms
            if isinstance(norms, MatrixNorms)
            else MatrixNorms(norms, norms, norms, norms, norms, norms, min(d, k))
        )
        return Matrix(whole, whole)

    def scores(self, *where: Any, **biases: Any) -> Matrix:
        return self.matrix("W_QK", None, None, 1, 1)

    def vector(self, kind: str, block: int | None, head: int | None = None) -> tuple[Number, Number]:
        return self.given[kind], self.given[kind]

    def gain(self, kind: str, block: int | None) -> tuple[Number, Number]:
        return self.given[kind], self.given[kind]


def _rule(
    ns: NumberSystem,
    layer: Layer,
    radius: Number,
    given: Mapping[str, MatrixNorms | Number] | None = None,
    rows: int = 1,
    seq_len: int = 1,
) -> Facts:
    return facts(layer, Context(Given(ns, given or {}), radius, rows, seq_len))


def _slots(fact: Facts) -> dict[str, Slot]:
    return {slot.kind: slot for slot in fact.slots}


def _norm_free(ns: NumberSystem) -> Context:
    return Context(Given(ns, {}), ns.number(1), 1, 1)


def _softmax(ns: NumberSystem, temperature: Number) -> Number:
    return normaliser_constants(Normaliser("softmax"), temperature, ns.number(1), _norm_free(ns))[0]


def _normaliser(
    ns: NumberSystem,
    name: str,
    temperature: Number,
    score_radius: Number,
    c: float | None = None,
    mu: float | None = None,
) -> Values:
    constants = normaliser_constants(Normaliser(name, c=c, mu=mu), temperature, score_radius, _norm_free(ns))
    return dict(zip(("c", "mu"), constants, strict=True))


def _has_constants(name: str) -> Refusal | None:
    """Why a normaliser of this name has no constants, or None."""
    try:
        Normaliser(name, **({"c": 1.0, "mu": 1.0} if name == "custom" else {}))
    except Unsupported as error:
        return error.refusal
    return None


def _activation(ns: NumberSystem, name: str) -> Number:
    return _rule(ns, Activation(name), ns.number(1)).lipschitz


def _has_slope(name: str) -> Refusal | None:
    if name in ACTIVATION_LIPSCHITZ:
        return None
    return Refusal("L3", f"activation {name!r}", f"one of {', '.join(ACTIVATION_LIPSCHITZ)}")


def _ball(ns: NumberSystem, beta: Number, radius: float) -> Values:
    fact = _rule(ns, Ball(radius), beta)
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _layernorm(
    ns: NumberSystem, beta: Number, d: int, gain: Number, offset: Number, eps: float, variance_floor: float = 0.0
) -> Values:
    layer = LayerNorm("norm", d, eps, offset=True, variance_floor=variance_floor)
    fact = _rule(ns, layer, beta, {"norm.gain": gain, "norm.offset": offset})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _smooth(eps: float, variance_floor: float = 0.0) -> Refusal | None:
    if eps + variance_floor > 0:
        return None
    return Refusal("L5", "eps = 0 and no variance floor", "eps > 0, or a variance the class guarantees")


def _linear(ns: NumberSystem, b: Number, op: Number, bias: Number | None = None) -> Values:
    layer = Linear("W", 1, 1, bias=None if bias is None else "c")
    fact = _rule(ns, layer, b, {"W": op, "c": bias})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _head(
    ns: NumberSystem, b: Number, c_w: Number, c_v: Number, normaliser: str = "softmax", temperature: float = 1.0
) -> Values:
    layer = Attention(1, normaliser=Normaliser(normaliser, temperature))
    fact = _rule(ns, layer, b, {"W_QK": c_w, "W_V": c_v})
    slots = _slots(fact)
    return {
        "radius": fact.radius,
        "lipschitz": fact.lipschitz,
        "score sensitivity": slots["W_QK"].sensitivity,
        "score cap": slots["W_QK"].cap,
        "value sensitivity": slots["W_V"].sensitivity,
        "value radius": slots["W_V"].members[0].targets[0].radius,
    }


def _heads(
    ns: NumberSystem,
    b: Number,
    c_w: Number,
    c_v: Number,
    heads: int,
    combine: Literal["sum", "concat"] = "sum",
    temperature: float = 1.0,
) -> Values:
    layer = Attention(1, heads=heads, combine=combine, normaliser=Normaliser("softmax", temperature))
    fact = _rule(ns, layer, b, {"W_QK": c_w, "W_V": c_v})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz, "score sensitivity": fact.slots[0].sensitivity}


def _gated(ns: NumberSystem, b: Number, c1: Number, c3: Number, c2: Number, activation: str = "silu") -> Values:
    fact = _rule(ns, GatedFeedForward(1, 1, activation), b, {"W_1": c1, "W_3": c3, "W_2": c2})
    slots = _slots(fact)
    return {
        "radius": fact.radius,
        "lipschitz": fact.lipschitz,
        **{f"{kind} sensitivity": slot.sensitivity for kind, slot in slots.items()},
        "W_2 radius": slots["W_2"].members[0].targets[0].radius,
    }


def _around_one(ns: NumberSystem, beta: Number, d: int, gain: Number, eps: float) -> Values:
    """By the largest entry of w, where the gain is 1 + w."""
    fact = _rule(ns, LayerNorm("norm", d, eps, centred=False, around_one=True), beta, {"norm.gain": gain})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _fixed_offsets(ns: NumberSystem, b: Number, c_w: Number, c_v: Number) -> Values:
    layer = Attention(1, normaliser=Normaliser("softmax", 1.0), offsets="fixed")
    fact = _rule(ns, layer, b, {"W_QK": c_w, "W_V": c_v})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _soft_cap(ns: NumberSystem, b: Number, width: int, cap: float, c_w: Number, c_v: Number) -> Values:
    """Of rows of some width, and of a head whose scores are capped."""
    rows = _rule(ns, SoftCap(width, cap), b)
    head = Attention(1, normaliser=Normaliser("softmax", 1.0), cap=cap)
    capped = _rule(ns, head, b, {"W_QK": c_w, "W_V": c_v}).lipschitz
    return {"radius": rows.radius, "lipschitz": rows.lipschitz, "head lipschitz": capped}


def _normalised(
    ns: NumberSystem, b: Number, c_q: Number, c_k: Number, g_q: Number, g_k: Number, d_head: int, eps: float
) -> Values:
    """Of one head with |W_V| = 1 and temperature 1: by the gains' largest entries."""
    layer = Attention(1, d_head=d_head, qk="split", normaliser=Normaliser("softmax", 1.0), qk_norm="head", qk_eps=eps)
    given = {"W_Q": c_q, "W_K": c_k, "W_V": ns.number(1), "norm_Q.gain": g_q, "norm_K.gain": g_k}
    fact = _rule(ns, layer, b, given)
    return {
        "lipschitz": fact.lipschitz,
        **{kind: slot.sensitivity / b for kind, slot in _slots(fact).items() if kind != "W_V"},
    }


def _learned_offsets(ns: NumberSystem, b: Number, c_w: Number, c_v: Number, largest: Number, buckets: int) -> Values:
    layer = Attention(1, normaliser=Normaliser("softmax", 1.0), offsets="learned", buckets=buckets)
    fact = _rule(ns, layer, b, {"W_QK": c_w, "W_V": c_v, "score_offsets": largest})
    slot = _slots(fact)["score_offsets"]
    assert slot.cap is not None  # noqa: S101 - scores always have one
    return {"lipschitz": fact.lipschitz, "per eps": slot.sensitivity, "at most": slot.cap}


def _mixed_experts(
    ns: NumberSystem, b: Number, gate: Number, c1: Number, c3: Number, c2: Number, activation: str = "silu"
) -> Values:
    fact = _rule(ns, Experts(1, 1, 1, activation), b, {"W_gate": gate, "W_1": c1, "W_3": c3, "W_2": c2})
    slots = _slots(fact)
    assert slots["W_gate"].cap is not None  # noqa: S101 - convex weights always have one
    return {
        "radius": fact.radius,
        "lipschitz": fact.lipschitz,
        "gate": slots["W_gate"].sensitivity,
        "gate at most": slots["W_gate"].cap,
        "W_1": slots["W_1"].sensitivity,
    }


def _score_targets(
    ns: NumberSystem, b: Number, norms: MatrixNorms, d: int, queries: int, seq_len: int
) -> dict[str, Target]:
    layer = Attention(d, normaliser=Normaliser("softmax", 1.0))
    fact = _rule(ns, layer, b, {"W_QK": norms, "W_V": ns.number(1)}, queries, seq_len)
    return {target.kind: target for target in _slots(fact)["W_QK"].members[0].targets}


def _score_pairs(
    ns: NumberSystem, b: Number, fro: Number, eps: Number, samples: int, queries: int, seq_len: int
) -> Number:
    target = _score_targets(ns, b, MatrixNorms(fro, fro, fro, fro, fro, fro, 1), 1, queries, seq_len)["score"]
    return T1.closed(ns, T1.reach(target) / eps, target, ns.number(target.points.count(samples)))


def _score_sides(
    ns: NumberSystem,
    b: Number,
    two_one: Number,
    two_one_t: Number,
    d: int,
    eps: Number,
    samples: int,
    queries: int,
    seq_len: int,
) -> Values:
    norms = MatrixNorms(two_one, two_one, two_one, two_one_t, two_one, two_one, d)
    targets = _score_targets(ns, b, norms, d, queries, seq_len)

    def cost(target: Target) -> Number:
        return T2.closed(ns, T2.reach(target) / eps, target, ns.number(target.points.count(samples)))

    return {"query side": cost(targets["query"]), "key side": cost(targets["key"])}


def _score_uniform(ns: NumberSystem, b: Number, op: Number, d: int, eps: Number) -> Number:
    norms = MatrixNorms(op, op, op, op, op, op, d)
    target = _score_targets(ns, b, norms, d, 1, 1)["query"]
    return T4.closed(ns, T4.reach(target) / eps, target, ns.number(1))


def _split_scores(ns: NumberSystem, b: Number, c_q: Number, c_k: Number, d_head: int) -> Values:
    """Output error per eps_Q and eps_K over that per unit of score error, and the lipschitz factor, with |W_V| = 1."""
    layer = Attention(1, d_head=d_head, qk="split")
    fact = _rule(ns, layer, b, {"W_Q": c_q, "W_K": c_k, "W_V": ns.number(1)})
    slots = _slots(fact)
    return {
        "score error per eps_Q": slots["W_Q"].sensitivity / b,
        "score error per eps_K": slots["W_K"].sensitivity / b,
        "lipschitz": fact.lipschitz,
    }


def _own_query(ns: NumberSystem, b: Number, c_q: Number, c_v: Number, seq_len: int) -> Values:
    """Output error per eps_q, the most it can be, and the lipschitz factor, of one head."""
    layer = Attention(1, normaliser=Normaliser("softmax", 1.0), qk="fixed")
    fact = _rule(ns, layer, b, {"q": c_q, "W_V": c_v}, 1, seq_len)
    slot = _slots(fact)["q"]
    assert slot.cap is not None  # noqa: S101 - scores always have one
    return {"per eps_q": slot.sensitivity, "at most": slot.cap, "lipschitz": fact.lipschitz}


LAYERS = (
    Statement(
        "L1",
        "softmax is 1-Lipschitz from l_inf to l_1",
        r"|\mathrm{softmax}(u/\tau)-\mathrm{softmax}(v/\tau)|_1\le\tfrac1\tau|u-v|_\infty",
        "Rows of any length and any mask. A shift of u - v by a constant is free.",
        "On the segment from v to u the derivative is J = diag(p) - p p^T. |Jh|_1 is convex in h, so over |h|_inf "
        "<= 1 it is largest at a vector of signs; there, with P the mass of the signs +1, sum_i p_i |h_i - p.h| = "
        "4P(1-P) = 1 - (p.h)^2 <= 1. Tight at P = 1/2. (Globally 2 tanh(|u-v|_inf/(2 tau)), see S5.)",
        "published with constant 2",
        EDELMAN2022,
        compute=_softmax,
    ),
    Statement(
        "L2",
        "what a normaliser must provide",
        r"|\mathrm{norm}(u)-\mathrm{norm}(v)|_1\le c\,|u-v|_\infty,\quad |\mathrm{norm}(u)|_1\le\mu",
        "softmax and softmax-plus-one with temperature tau: (1/tau, 1); sigmoid(s/tau)/T: (1/(4 tau), 1); s/(tau "
        "T): (1/tau, b b' C_W/tau), approximate scores clipped to the range of the true ones; custom: (c/tau, "
        "mu). Refused, because no constant is independent of T: sparsemax, entmax, hardmax, sigmoid(s - log T).",
        "Softmax: L1; softmax-plus-one is softmax with one more score, 0, whose weight is dropped. The others act "
        "entry by entry with slope 1/(4T) or 1/T, and T entries are summed.",
        compute=_normaliser,
        applies=_has_constants,
    ),
    Statement(
        "L3",
        "activations",
        r"|\sigma(x)-\sigma(y)|\le L_\sigma|x-y|,\quad|\sigma(x)|\le|x|",
        f"{', '.join(f'{name}: {slope:g}' for name, slope in ACTIVATION_LIPSCHITZ.items())}. Entry by entry, so "
        "the same holds for the l2 norm of a row. GELU in its erf and its tanh form.",
        "The slope is largest where the second derivative vanishes; that value is rounded up. Quick GELU is "
        "SiLU(1.702 x)/1.702, so its slopes are SiLU's. Each of these functions is x times a factor in [0, 1], or tanh.",
        compute=_activation,
        applies=_has_slope,
    ),
    Statement(
        "L4",
        "projection of rows onto a ball",
        r"|\Pi_R(x)-\Pi_R(y)|\le|x-y|,\quad|\Pi_R(x)|\le\min(|x|,R)",
        "Every row is projected onto the l2 ball of radius R.",
        "Projection onto a convex set is 1-Lipschitz.",
        source=EDELMAN2022,
        compute=_ball,
    ),
    Statement(
        "L5",
        "LayerNorm and RMSNorm",
        r"\mathrm{Lip}\le\frac{|g|_\infty}{\sqrt{v+e}},\quad|y|\le|g|_\infty\frac{\sqrt "
        r"d\,\beta}{\sqrt{\beta^2+de}}+|c|_2\le\sqrt d\,|g|_\infty+|c|_2",
        "y = g * x/sqrt(|x|^2/d + e) + c, x centred for LayerNorm, rows |x| <= beta; v >= 0 is a coordinate "
        "variance (RMSNorm: mean square) that the class guarantees for every admissible input, not one read off "
        "the sample; e + v > 0.",
        "Where the class guarantees v, put max(|x|^2/d, v) for |x|^2/d in every approximate network: nothing "
        "changes on true activations. The map is then linear with slope 1/sqrt(v+e) inside |x|^2 <= dv; outside, "
        "with s^2 = |x|^2/d + e, its derivative (I - x x^T/(d s^2))/s has eigenvalues 1/s and e/s^3, at most "
        "1/sqrt(v+e). |x| sqrt(d)/sqrt(|x|^2 + de) grows with |x|, and centring is a projection.",
        compute=_layernorm,
        applies=_smooth,
    ),
    Statement(
        "L6",
        "linear maps",
        r"|xW-yW|\le|W|_{\mathrm{op}}|x-y|,\quad|xW+c|\le b|W|_{\mathrm{op}}+|c|_2",
        "Rows |x| <= b. Also |AB|_{2,1} <= |A|_op |B|_{2,1} and |AB|_F <= |A|_op |B|_F.",
        "By definition of the spectral norm, column by column for the products.",
        compute=_linear,
    ),
    Statement(
        "L7",
        "one attention head",
        r"\mathrm{Lip}\le C_V\big(\kappa+\sqrt{1+\kappa^2}\big),\ \kappa=b^2C_W/\tau\ "
        r"(\text{softmax});\quad\mathrm{Lip}\le C_V(\mu+2cb^2C_W)\ (\text{any});\quad\text{radius}\ \mu bC_V",
        "y_q = sum_t a_qt x_t V, a_q = norm(x_q W x_t^T), rows |x| <= b, |W|_op <= C_W, |V|_op <= C_V, any mask; "
        "normaliser (c, mu). The first form is for softmax and (without biases) softmax-plus-one, with one W for "
        "all pairs of positions. A uniform score error e_s moves the output by at most b C_V min(c e_s, 2 mu); an "
        "error of V on the pooled rows u_q = sum_t a_qt x_t, |u_q| <= mu b, by that error, so V is covered on n_q "
        "m points. With a query bias, b^2 C_W becomes b b' C_W' under the root (T8); a value bias joins b C_V "
        "wherever weights do not sum to 1.",
        "Second form: |a - a'|_1 b C_V + mu C_V |dx|, and a score moves by at most 2 b C_W |dx|. First form: for "
        "a unit direction v let c_t = <v, x_t - sum_s a_s x_s>, z = x_q W/tau, u = sum_t a_t x_t. Then <v, du> = "
        "sum_t a_t <v + c_t z, dx_t> + dx_q (W/tau) Cov_a(x) v. As sum_t a_t c_t = 0 and sum_t a_t c_t^2 <= b^2, "
        "Cauchy-Schwarz bounds the first sum by sqrt(1 + |z|^2 b^2) <= sqrt(1 + kappa^2), and |Cov_a(x)| <= "
        "b^2 the second by kappa. (Softmax-plus-one: one more row, x = 0.)",
        "published as C_V (1 + 4 C_W) at b = 1",
        EDELMAN2022,
        compute=_head,
        applies=_has_constants,
    ),
    Statement(
        "L8",
        "several heads, residuals, and branches beside each other",
        r"\mathrm{Lip}\Big(\sum_hf_h\Big)\le\sum_h\mathrm{Lip}f_h,\quad\mathrm{Lip}(f_1|\dots|f_H)\le\sqrt{"
        r"\textstyle\sum_h\mathrm{Lip}(f_h)^2},\quad\mathrm{Lip}\Big(\mathrm{id}+\sum_if_i\Big)\le1+\sum_i\mathrm{Lip}f_i",
        "The same for radii (id: b) and for errors. Heads are summed (each with its own output matrix), or set "
        "side by side before one output matrix. A residual has one branch, or several that read the same rows (GPT-NeoX, "
        "GPT-J, Phi, Falcon): id + f + g.",
        "Triangle inequality; Pythagoras for outputs side by side.",
        compute=_heads,
    ),
    Statement(
        "L9",
        "gated feed-forward",
        r"\text{radius}\ b^2C_1C_3C_2,\quad\mathrm{Lip}\le bC_1C_3C_2(1+L_\sigma);\quad\text{sensitivities}\ "
        r"L_\sigma bC_3C_2,\ bC_1C_2,\ 1\ \text{to errors of}\ xW_1,\,xW_3,\,hW_2",
        "(sigma(x W_1) * (x W_3)) W_2, rows |x| <= b. In the cover, approximate x W_1 and x W_3 are projected to "
        "radii b C_1 and b C_3 and their product to b^2 C_1 C_3, which is the radius W_2 is covered on.",
        "|u * v|_2 <= |u|_2 |v|_2 and |sigma(u)| <= |u|; change one factor at a time. Without the projections the "
        "other factor of a changed product would not be bounded.",
        compute=_gated,
        applies=_has_slope,
    ),
)

LAYERS += (
    Statement(
        "L10",
        "gains around one",
        r"|1+w|_\infty\le1+|w|_\infty,\quad|(1+w)\ast u-(1+w')\ast u|\le|w-w'|_\infty|u|",
        "A normalisation y = (1 + w) * x/sqrt(|x|^2/d + e), as Gemma has it; w is trained and has the budget. In L5 and T9 "
        "the largest gain is 1 + |w|_inf, and what is covered is w (or its distance from a reference, T7).",
        "Triangle inequality; the ones cancel in a difference.",
        compute=_around_one,
    ),
    Statement(
        "L11",
        "fixed numbers added to scores",
        r"s_{qt}\mapsto s_{qt}+c_{qt}:\quad\text{L7, L8, S1--S4 as they are (softmax)}",
        "Numbers that depend on positions alone and are no weights, such as ALiBi's (Bloom, MPT). Softmax only: other "
        "normalisers' masses were bounded through the largest score.",
        "Differences of scores, and derivatives of scores by rows, do not contain c; that weights sum to 1, and all else "
        "that the proofs of L7 and L1 use of them, holds for any scores.",
        compute=_fixed_offsets,
    ),
    Statement(
        "L12",
        "soft caps",
        r"|\mathrm{cap}\tanh(x/\mathrm{cap})-\mathrm{cap}\tanh(y/\mathrm{cap})|\le|x-y|,\quad|\cdot|\le\min(|x|,"
        r"\mathrm{cap}\sqrt k)",
        "Entry by entry on rows of width k (logits), or on the scores of attention after division by the temperature "
        "(Gemma 2). A capped head has L7 in its second form; an offset of the keys then matters under softmax too.",
        "The slope of tanh is in (0, 1] and |tanh x| <= min(|x|, 1). A score error is not enlarged, so c and S1-S4 stay; the "
        "first form of L7 used that sum_t a_t c_t = 0, which slopes that differ between keys break. What a query adds to "
        "all its scores is bent by the cap, so softmax no longer forgets it.",
        compute=_soft_cap,
    ),
    Statement(
        "L13",
        "normalised queries and keys",
        r"|q|\le R_Q=\frac{G_Q\sqrt k\,r}{\sqrt{r^2+ke}},\quad\varepsilon_s\le\frac{R_K}{\tau}\Big(\frac{G_Q}{\sqrt e}"
        r"\varepsilon_Q+\varepsilon_{g_Q}\Big)+\frac{R_Q}{\tau}\Big(\frac{G_K}{\sqrt e}\varepsilon_K+\varepsilon_{g_K}\Big)",
        "q = g_Q * u/sqrt(|u|^2/k + e) with u = x W_Q (+ b_Q), |u| <= r, rows of width k = d_head, |g_Q|_inf <= G_Q, then "
        "rotations; keys alike (Qwen3). Lengths are at most G sqrt(k) whatever the matrices are. In L7 (second form, softmax) "
        "and S4 these lengths and C G/sqrt(e) stand for b C and C. One gain serves all heads; T9 covers it on rows of norm "
        "sqrt(k). Normalised over all H heads together (OLMo 2; H_K of keys): lengths times sqrt(H) and sqrt(H_K), gains of "
        "H k and H_K k entries, else the same, where heads stand side by side and have the same budgets.",
        "L5 with v = 0: u -> u/sqrt(|u|^2/k + e) is 1/sqrt(e)-Lipschitz and its length rises with |u|; rotations keep norms. "
        "Change W_Q, then its gain, project to the length, then the keys. Together: sqrt(sum_h |dq_h|^2) is |dq|, at most "
        "G_Q/sqrt(e) times sqrt(H) the error of one head, with keys no longer than |k|; on the key side "
        "sum_h |q_h|^2 max_t |dk_h(t)|^2 <= |q|^2 max_t |dk(t)|^2, |q| has the factor sqrt(H) and |dk| sqrt(H_K) <= sqrt(H). "
        "Both are what H heads side by side have in L8 with these lengths.",
        compute=_normalised,
    ),
    Statement(
        "L14",
        "learned numbers added to scores",
        r"s_{qt}\mapsto s_{qt}+\beta_{k(q,t)h}:\quad|y-y'|\le2\min(\varepsilon/(2\tau),1)\,bC_V,\quad\log N\le"
        r"n\log\lceil|\beta|_\infty/\varepsilon\rceil",
        "Each head h has one number per bucket k(q, t) of positions (T5), n in all, added before the temperature; softmax. "
        "L7, L8 and S1-S4 stay as they are (L11); the numbers are covered by T9 at radius 1, on no points. Blocks that share "
        "a table are covered as if each had its own.",
        "For given numbers L11. Another table within epsilon moves every score by at most that, over tau; then L1 and L7.",
        compute=_learned_offsets,
    ),
    Statement(
        "L15",
        "experts that all run, mixed by a gate",
        r"\text{radius}\ R=b^2C_1C_3C_2,\quad\mathrm{Lip}\le bC_1C_3C_2(1+L_\sigma)+RC_g/\sqrt2;\quad\text{sensitivities}\ "
        r"R/\sqrt2\ \text{(at most}\ 2R)\ \text{to errors of the gate, L9's to the experts'}",
        "y = sum_i p_i f_i(x), p = softmax(x W_g), f_i gated parts (L9) with the same budgets, all of which run. Where only "
        "some run (top-k routing) there is no statement: where two entries of the gate cross another expert is picked, the "
        "output jumps, and no error before it, however small, can be carried through.",
        "A convex combination of rows within R is within R. |sum_i p_i (f_i(x) - f_i(x'))| <= Lip f |x - x'| and "
        "|sum_i (p_i - p'_i) f_i| <= R |p - p'|_1, at most 2R and R/sqrt(2) times the l2 error of the gate's row: for "
        "signs s with mass a on +, J = diag(p) - p p^T has |J s|_2^2 <= 8 a^2 (1 - a)^2 <= 1/2. An error of every expert "
        "counts once, since p sums to 1; experts are covered one by one.",
        compute=_mixed_experts,
        applies=_has_slope,
    ),
)

SCORES = (
    Statement(
        "S1",
        "scores as one bilinear map",
        r"\log N(\varepsilon_s)\le\log N_{T1}\ \text{with}\ B=|W|_F,\ b^2\ \text{for}\ b,\ N=mn_qT",
        "Scores x W z^T on n_q query rows of T keys in m samples, |x|, |z| <= b; a causal mask only removes "
        "pairs. Empirical: log T, no factor of the width.",
        "x W z^T = <W, x^T z> with |x^T z|_F = |x||z| (T1 in the space of matrices).",
        source=ZHANG2002,
        compute=_score_pairs,
    ),
    Statement(
        "S2",
        "scores from the query side, or from the key side",
        r"\log N(\varepsilon_s)\le\log N_{T2}\ \text{at}\ \varepsilon_s/b\ \text{with}\ B=|W|_{2,1},\ N=mn_q\ "
        r"\text{(queries)},\ \text{or}\ B=|W^T|_{2,1},\ N=mT\ \text{(keys)}",
        "Rows |x|, |z| <= b. From the query side with n_q = 1 nothing depends on T.",
        "|x (W-V) z^T| <= |x (W-V)| |z|, and the same with z (W-V)^T.",
        source=EDELMAN2022,
        compute=_score_sides,
    ),
    Statement(
        "S3",
        "scores without counting points",
        r"\log N(\varepsilon_s)\le\log N_{T3\text{--}T6}\ \text{with}\ b^2\ \text{for}\ b",
        "As S2, with a uniform lemma for W. Uniform and independent of T. The value is that of T4.",
        "|x (W-V) z^T| <= |x (W-V)| |z|.",
        compute=_score_uniform,
    ),
    Statement(
        "S4",
        "separate queries and keys",
        r"\varepsilon_s\le\frac{bC_K\,\varepsilon_Q+bC_Q\,\varepsilon_K}{\sqrt{d_{\mathrm{head}}}},\quad "
        r"C_W=\frac{C_QC_K}{\sqrt{d_{\mathrm{head}}}}",
        "Scores <R x W_Q, R' z W_K>/sqrt(d_head) with rotations R, R' (RoPE), or several query heads per key "
        "head. In the cover one approximate side is projected to its radius b C_K (with biases b C_K + |b_K|). "
        "W_Q is covered on m n_q rows, W_K on mT. L7 in its second form.",
        "Change one factor at a time; rotations keep norms. sqrt(d_head) is the temperature unless one is given, "
        "never both.",
        compute=_split_scores,
    ),
    Statement(
        "S5",
        "a query of the layer's own",
        r"\varepsilon_s\le b\,\varepsilon_q/\tau,\quad|y-y'|\le2\tanh(\varepsilon_s/2)\,bC_V,\quad"
        r"\mathrm{Lip}\le C_V\sqrt{1+(b|q|/\tau)^2}\quad(\text{softmax})",
        "Scores <q, x_t>/tau with one trained q of R^d per head, the same for every example and every row of the output: "
        "attention pooling, learned queries, or q = x_0 W_QK of a [CLS] row x_0 without data in a first attention layer "
        "that is read at that row alone. q is covered as a map of d weights with its own |q| <= Q on the mT keys, V on one "
        "pooled row per sample. Other normalisers: the error as in L7, Lip <= C_V mu + c b C_V |q|.",
        "Scores are linear in q. If |h|_inf <= e and a' is proportional to a e^h, |a' - a|_1 = 2 (a'(S) - a(S)) for a set "
        "S; given a(S) the most is at h = e on S and -e off it, sigmoid(x + 2e) - sigmoid(x), largest at x = -e: "
        "tanh(e/2). With the cap 2 b C_V of a head it is cap tanh(first order/cap); heads have one tau, so of several it is "
        "the same of their sums (side by side: roots of sums of squares). Lip: L7 without dx_q.",
        compute=_own_query,
    ),
)
