"""T7, T9b, L and S: every value a statement computes, against a second implementation in 50 digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from boundcalc.base.numbers import NumberSystem
from boundcalc.setting import Attention, Budget, Normaliser
from boundcalc.statements.layers import facts
from boundcalc.statements.layers.activation import ACTIVATION_LIPSCHITZ
from boundcalc.statements.slots import Context
from boundcalc.statements.targets import MatrixNorms, Points, Target
from boundcalc.statements.weights import Given
from tests.oracle import compose_mp, covers_mp, extra_mp, layers_mp
from tests.oracle.agreement import disagreements
from tests.oracle.covers_mp import MP, num
from tests.statements.inputs import ROUNDS, Check, Rng, Value, compute, of, some, whole

# ---------------------------------------------------------------- T7, T9b


def t7(rng: Rng) -> tuple[Value, Any]:
    d, k = whole(rng, 4, 9), whole(rng, 4, 9)
    op, rank = some(rng, 1)[0], whole(rng, 1, 2)
    budget = Budget(op=10.0, distance=Budget(op=op))

    def value(ns: NumberSystem) -> Mapping[str, Any]:
        norms = compute("T7")(ns, budget, d, k, rank)
        return {name: getattr(norms, name) for name in ("op", "fro", "two_one")}

    closed = compose_mp.a5_closure({"op": op, "rank": 2 * rank}, d, k)
    return value, {"op": closed["op"], "fro": closed["F"], "two_one": closed["21"]}


def t9b(rng: Rng) -> tuple[Value, Any]:
    d = whole(rng, 1, 30)
    size, eps = some(rng, 2)
    eps = min(eps, 0.9 * size)

    def value(ns: NumberSystem) -> Any:
        n = ns.number(size)
        target = Target("vector", 1, d, ns.number(1), MatrixNorms(n, n, n, n, n, n, 1), Points(0, 1))
        return compute("T9b")(ns, n / ns.number(eps), target, 1)

    return value, covers_mp.t9b(size, eps, d)


# ---------------------------------------------------------------- L, S


def l1(rng: Rng) -> tuple[Value, Any]:
    (tau,) = some(rng, 1)
    return of("L1", tau), layers_mp.l2_normaliser("softmax", tau)[0]


def l2(rng: Rng) -> tuple[Value, Any]:
    name = str(rng.choice(["softmax", "softmax1", "sigmoid", "linear"]))
    b, c_w = some(rng, 2)
    oracle = layers_mp.l2_normaliser({"softmax1": "softmax_plus_one"}.get(name, name), 1, b, c_w)

    def value(ns: NumberSystem) -> Any:
        radius = ns.number(b) ** 2 * ns.number(c_w)
        return compute("L2")(ns, name, ns.number(1), radius)

    return value, {"c": oracle[0], "mu": oracle[1]}


def l3(rng: Rng) -> tuple[Value, Any]:
    name = str(rng.choice(list(ACTIVATION_LIPSCHITZ)))
    return lambda ns: compute("L3")(ns, name), num(ACTIVATION_LIPSCHITZ[name])


def l4(rng: Rng) -> tuple[Value, Any]:
    beta, radius = some(rng, 2)
    lipschitz, reach = layers_mp.l4_projection(beta, radius)
    return of("L4", beta, radius=radius), {"lipschitz": lipschitz, "radius": reach}


def l5(rng: Rng) -> tuple[Value, Any]:
    beta, gain, offset = some(rng, 3)
    d, eps = whole(rng, 2, 900), float(10 ** rng.uniform(-12, -1))
    floor = (
        float(rng.choice([0.0, 0.3])) * float(beta) ** 2 / d
    )  # below the largest variance that rows of norm beta have

    def value(ns: NumberSystem) -> Any:
        numbers = [ns.number(x) for x in (gain, offset)]
        return compute("L5")(ns, ns.number(beta), d, *numbers, eps, floor)

    return value, {
        "radius": layers_mp.l5_radius(gain, eps, d, beta, offset),
        "lipschitz": layers_mp.l5_clamped_lipschitz(gain, eps, floor),
    }


def l6(rng: Rng) -> tuple[Value, Any]:
    b, op, bias = some(rng, 3)
    lipschitz, radius = layers_mp.l6_linear(b, op)
    return of("L6", b, op, bias), {"lipschitz": lipschitz, "radius": radius + num(bias)}


def l7(rng: Rng) -> tuple[Value, Any]:
    b, c_w, c_v, tau = some(rng, 4)
    name = str(rng.choice(["softmax", "softmax1", "sigmoid", "linear"]))
    if name.startswith("softmax"):
        c, mu = 1 / num(tau), num(1)
        lipschitz = layers_mp.l7_lipschitz_sharp(b, c_w, c_v, tau)
    else:
        c, mu = layers_mp.l2_normaliser(name, 1, b, c_w)
        c, mu = c / num(tau), mu / (num(tau) if name == "linear" else 1)
        lipschitz = layers_mp.l7_lipschitz(b, c_w, c_v, c, mu)
    eps_s = num(10) ** -9
    return of("L7", b, c_w, c_v, normaliser=name, temperature=tau), {
        "radius": layers_mp.l7_radius(b, c_v, mu),
        "lipschitz": lipschitz,
        "score sensitivity": layers_mp.l7_score_sensitivity(b, c_v, eps_s, c, mu) / eps_s,
        "score cap": layers_mp.l7_score_sensitivity(b, c_v, num(10) ** 9, c, mu),
        "value sensitivity": num(1),
        "value radius": num(b) * mu,
    }


def l8(rng: Rng) -> tuple[Value, Any]:
    b, c_w, c_v, tau = some(rng, 4)
    heads = whole(rng, 1, 12)
    combine = str(rng.choice(["sum", "concat"]))
    one = {
        "radius": layers_mp.l7_radius(b, c_v),
        "lipschitz": layers_mp.l7_lipschitz_sharp(b, c_w, c_v, tau),
        "score sensitivity": num(b) * num(c_v) / num(tau),
    }
    gather = layers_mp.l8_sum if combine == "sum" else lambda values: layers_mp.l8_concat(values, 1)
    truth = {name: gather([value] * heads) for name, value in one.items()}
    return of("L8", b, c_w, c_v, heads=heads, combine=combine, temperature=tau), truth


def l9(rng: Rng) -> tuple[Value, Any]:
    b, c1, c3, c2 = some(rng, 4)
    name = str(rng.choice(list(ACTIVATION_LIPSCHITZ)))
    slope = num(ACTIVATION_LIPSCHITZ[name])
    first, second, third = layers_mp.l9_sensitivities(b, c1, c3, c2, slope)
    return of("L9", b, c1, c3, c2, activation=name), {
        "radius": layers_mp.l9_radius(b, c1, c3, c2),
        "lipschitz": layers_mp.l9_lipschitz(b, c1, c3, c2, slope),
        "W_1 sensitivity": first,
        "W_3 sensitivity": second,
        "W_2 sensitivity": third,
        "W_2 radius": layers_mp.l9_radius(b, c1, c3, 1),
    }


def s1(rng: Rng) -> tuple[Value, Any]:
    b, fro, share = some(rng, 3)
    samples, queries, seq_len = whole(rng, 1, 10**6), whole(rng, 1, 50), whole(rng, 1, 10**4)
    eps = b * b * fro * min(share, 3.0) / 4
    radius, budget, points = layers_mp.s1_arguments(b, fro, samples, queries, seq_len)
    truth = (radius * budget / num(eps)) ** 2 * MP.log(2 * points + 1)
    return of("S1", b, fro, eps, samples=samples, queries=queries, seq_len=seq_len), truth


def s2(rng: Rng) -> tuple[Value, Any]:
    b, columns, rows, share = some(rng, 4)
    d = whole(rng, 2, 60)
    samples, queries, seq_len = whole(rng, 1, 10**6), whole(rng, 1, 50), whole(rng, 1, 10**4)
    eps = b * b * min(columns, rows) * min(share, 3.0) / 4
    radius, tolerance, query_points = layers_mp.s2_query_arguments(b, eps, samples, queries)
    _, _, key_points = layers_mp.s2_key_arguments(b, eps, samples, seq_len)

    def value(ns: NumberSystem) -> Any:
        numbers = [ns.number(x) for x in (b, columns, rows)]
        return compute("S2")(ns, *numbers, d, ns.number(eps), samples, queries, seq_len)

    scale = (radius / tolerance) ** 2
    return value, {
        "query side": scale * num(columns) ** 2 * extra_mp.lam(d, query_points),
        "key side": scale * num(rows) ** 2 * extra_mp.lam(d, key_points),
    }


def s3(rng: Rng) -> tuple[Value, Any]:
    b, op, share = some(rng, 3)
    d = whole(rng, 2, 60)
    eps = b * b * op * min(share, 3.0) / 4

    def value(ns: NumberSystem) -> Any:
        return compute("S3")(ns, ns.number(b), ns.number(op), d, ns.number(eps))

    return value, d * d * MP.log(1 + 2 * layers_mp.s3_radius(b) * num(op) / num(eps))


def s4(rng: Rng) -> tuple[Value, Any]:
    b, c_q, c_k = some(rng, 3)
    d_head = whole(rng, 1, 256)
    c_w = layers_mp.s4_score_norm(c_q, c_k, d_head)
    return of("S4", b, c_q, c_k, d_head=d_head), {
        "score error per eps_Q": layers_mp.s4_score_error(b, c_q, c_k, 1, 0, d_head),
        "score error per eps_K": layers_mp.s4_score_error(b, c_q, c_k, 0, 1, d_head),
        "lipschitz": 1 + 2 * num(b) ** 2 * c_w,
    }


def s5(rng: Rng) -> tuple[Value, Any]:
    b, c_q, c_v = some(rng, 3)
    return of("S5", b, c_q, c_v, seq_len=whole(rng, 1, 900)), {
        "per eps_q": num(b) * c_v,
        "at most": 2 * num(b) * c_v,
        "lipschitz": num(c_v) * MP.sqrt(1 + (num(b) * c_q) ** 2),
    }


def l10(rng: Rng) -> tuple[Value, Any]:
    beta, w = some(rng, 2)
    d, eps = whole(rng, 1, 900), float(10 ** rng.uniform(-12, -1))

    def value(ns: NumberSystem) -> Any:
        return compute("L10")(ns, ns.number(beta), d, ns.number(w), eps)

    gain = 1 + num(w)
    return value, {
        "radius": layers_mp.l5_radius(gain, eps, d, beta),
        "lipschitz": layers_mp.l5_lipschitz(gain, eps),
    }


def l11(rng: Rng) -> tuple[Value, Any]:
    b, c_w, c_v = some(rng, 3)
    truth = {"radius": layers_mp.l7_radius(b, c_v), "lipschitz": layers_mp.l7_lipschitz_sharp(b, c_w, c_v)}
    return of("L11", b, c_w, c_v), truth


def l12(rng: Rng) -> tuple[Value, Any]:
    b, c_w, c_v = some(rng, 3)
    width, cap = whole(rng, 1, 900), float(10 ** rng.uniform(-2, 2))

    def value(ns: NumberSystem) -> Any:
        return compute("L12")(ns, ns.number(b), width, cap, ns.number(c_w), ns.number(c_v))

    return value, {
        "radius": min(num(b), num(cap) * MP.sqrt(width)),
        "lipschitz": num(1),
        "head lipschitz": layers_mp.l7_lipschitz(b, c_w, c_v),
    }


def l13(rng: Rng) -> tuple[Value, Any]:
    b, c_q, c_k, g_q, g_k = some(rng, 5)
    k, eps = whole(rng, 1, 256), float(10 ** rng.uniform(-8, 0))

    def value(ns: NumberSystem) -> Any:
        return compute("L13")(ns, *(ns.number(x) for x in (b, c_q, c_k, g_q, g_k)), k, eps)

    long_q, long_k = (layers_mp.l5_radius(g, eps, k, num(b) * num(c)) for g, c in ((g_q, c_q), (g_k, c_k)))
    steep_q, steep_k = (layers_mp.l5_lipschitz(g, eps) for g in (g_q, g_k))
    return value, {
        "lipschitz": 1 + num(b) * (steep_q * c_q * long_k + long_q * steep_k * c_k),
        "W_Q": steep_q * long_k,
        "W_K": steep_k * long_q,
        "norm_Q.gain": long_k,
        "norm_K.gain": long_q,
    }


def l14(rng: Rng) -> tuple[Value, Any]:
    b, c_w, c_v, largest = some(rng, 4)
    return of("L14", b, c_w, c_v, largest, buckets=whole(rng, 1, 99)), {
        "lipschitz": layers_mp.l7_lipschitz_sharp(b, c_w, c_v),
        "per eps": num(b) * c_v,
        "at most": 2 * num(b) * c_v,
    }


CHECKS: dict[str, Check] = {
    "T7": t7, "T9b": t9b,
    "L1": l1, "L2": l2, "L3": l3, "L4": l4, "L5": l5, "L6": l6, "L7": l7, "L8": l8, "L9": l9,
    "L10": l10, "L11": l11, "L12": l12, "L13": l13, "L14": l14,
    "S1": s1, "S2": s2, "S3": s3, "S4": s4, "S5": s5,
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_values_are_those_of_the_oracle(name: str) -> None:
    rng = np.random.default_rng(sum(map(ord, name)))
    for _ in range(ROUNDS):
        value, truth = CHECKS[name](rng)
        assert disagreements(value, truth) == []


@pytest.mark.parametrize("name", CHECKS)
def test_the_comparison_rejects_values_a_billionth_too_small(name: str) -> None:
    value, truth = CHECKS[name](np.random.default_rng(1))

    def shrunk(ns: NumberSystem) -> Any:
        found = value(ns)
        factor = ns.number(1 - 1e-9)
        return {key: x * factor for key, x in found.items()} if isinstance(found, Mapping) else found * factor

    assert disagreements(shrunk, truth)


@pytest.mark.parametrize("name", ACTIVATION_LIPSCHITZ)
def test_activation_constants_are_rounded_up(name: str) -> None:
    """L3: above the largest slope, by less than two units of the fifth digit; a fifth digit less would not do."""
    slope = layers_mp.l3_lipschitz(name)
    assert slope <= num(ACTIVATION_LIPSCHITZ[name]) <= slope * (1 + num(2e-5))
    if slope > 1:
        assert num(ACTIVATION_LIPSCHITZ[name]) - num(1e-5) < slope


def test_query_biases() -> None:
    """T8 in L7: the root carries the augmented matrix and radius."""
    rng = np.random.default_rng(8)
    for _ in range(ROUNDS):
        b, c_w, c_v, tau = some(rng, 4)

        def value(ns: NumberSystem, b: float = b, c_w: float = c_w, c_v: float = c_v, tau: float = tau) -> Any:
            layer = Attention(4, normaliser=Normaliser("softmax", tau), qk_bias=True)
            given = Given(ns, {"W_QK": ns.number(c_w), "W_V": ns.number(c_v)})
            return facts(layer, Context(given, ns.number(b), 1, 1)).lipschitz

        assert disagreements(value, layers_mp.l7_lipschitz_query_bias(b, c_w, c_w, c_v, tau)) == []
