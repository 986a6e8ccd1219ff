"""A, G, P1 and PUB: every value a statement computes, against a second implementation in 50 digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from boundcalc.base.numbers import FLOAT, NumberSystem
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Budget,
    LayerNorm,
    Linear,
    Normaliser,
    Norms,
    Pool,
    Residual,
    Sample,
    Setting,
)
from boundcalc.statements import gap
from boundcalc.statements.compose import lower
from boundcalc.statements.layers.activation import ACTIVATION_LIPSCHITZ
from tests.oracle import compose_mp, extra_mp, gap_mp, layers_mp
from tests.oracle.agreement import disagreements
from tests.oracle.covers_mp import MP, num
from tests.statements.inputs import ROUNDS, Check, Rng, Value, compute, delta_of, of, some, whole

# ---------------------------------------------------------------- A


def a0(rng: Rng) -> tuple[Value, Any]:
    """A pre-norm block with residuals, walked backward by the library and forward by the oracle."""
    c_w, c_v, c_o, c_1, c_2, w, eps_norm, gain = some(rng, 8)
    heads, d = whole(rng, 1, 4), 4
    blocks = whole(rng, 1, 3)
    layers: list[Any] = []
    budgets = {"readout": Budget(op=w)}
    for kind, op in (("W_QK", c_w), ("W_V", c_v), ("W_O", c_o), ("W_1", c_1), ("W_2", c_2)):
        budgets[kind] = Budget(op=op)
    budgets["norm.gain"] = Budget(sup=gain)
    for block in range(blocks):
        norm = LayerNorm("norm", d, eps_norm, block=block)
        attention = Attention(d, heads, combine="concat", normaliser=Normaliser("softmax", 1.0), block=block)
        ffn = (Linear("W_1", d, d, block=block), Activation("gelu"), Linear("W_2", d, d, block=block))
        layers += [Residual((norm, attention, Linear("W_O", d * heads, d, block=block))), Residual((norm, *ffn))]
    layers += [Pool("cls"), Linear("readout", d, 1)]
    setting = Setting(Architecture(layers=tuple(layers)), Norms(budgets=budgets), Sample(margin=0.5))
    pieces = lower(setting, FLOAT).pieces
    eps = {piece.key: float(rng.uniform(0.01, 1)) for piece in pieces}

    def piece_error(key: str, sensitivity: Any) -> Any:
        return num(sensitivity) * num(eps[key])

    sharp = num(ACTIVATION_LIPSCHITZ["gelu"])
    nodes: list[compose_mp.Node] = []
    radius = num(1)
    for block in range(blocks):
        for branch in ("attention", "ffn"):
            name = f"norm.gain[{block}]" + ("#2" if branch == "ffn" else "")
            reach = layers_mp.l5_radius(gain, eps_norm, d, radius)
            norm = compose_mp.Map(layers_mp.l5_lipschitz(gain, eps_norm), piece_error(name, 1))
            if branch == "attention":
                side = MP.sqrt(heads)
                own = piece_error(f"W_QK[{block}]", side * reach * c_v) + piece_error(f"W_V[{block}]", side)
                attention = compose_mp.Map(side * layers_mp.l7_lipschitz_sharp(reach, c_w, c_v), own)
                parts = (norm, attention, compose_mp.Map(num(c_o), piece_error(f"W_O[{block}]", 1)))
                radius += side * reach * num(c_v) * num(c_o)
            else:
                first = compose_mp.Map(num(c_1), piece_error(f"W_1[{block}]", 1))
                last = compose_mp.Map(num(c_2), piece_error(f"W_2[{block}]", 1))
                parts = (norm, first, compose_mp.Map(sharp), last)
                radius += reach * num(c_1) * num(c_2)
            nodes.append(compose_mp.Residual(compose_mp.Chain(parts)))
    nodes.append(compose_mp.Map(num(w), piece_error("readout", 1)))
    network = compose_mp.Chain(tuple(nodes))
    truth = {
        "radius": 2 * radius * num(w),
        "amplification": 2 * compose_mp.a0_lipschitz(network),
        "error": 2 * compose_mp.a0_error(network),
    }
    return lambda ns: compute("A0")(ns, setting, eps), truth


def a1(rng: Rng) -> tuple[Value, Any]:
    count = whole(rng, 1, 9)
    costs, gains = some(rng, count, 1e-3, 1e5), some(rng, count, 1e-3, 1e3)

    def value(ns: NumberSystem) -> Any:
        return compute("A1")(ns, [ns.number(a) for a in costs], [ns.number(k) for k in gains])

    return value, compose_mp.a1_minimum(costs, gains)


def a2(rng: Rng) -> tuple[Value, Any]:
    counts = some(rng, 5, 1e-3, 1e5)
    parts = [0.1] * 5

    def value(ns: NumberSystem) -> Any:
        return compute("A2")(ns, [ns.number(x) for x in counts], parts, parts)

    return value, MP.fsum(num(x) for x in counts)


def a3(rng: Rng) -> tuple[Value, Any]:
    counts = some(rng, 4)
    return of("A3", *counts), min(num(x) for x in counts)


def a4(rng: Rng) -> tuple[Value, Any]:
    """The closed form by lowering, against the printed formula (and that against a direct sum, below)."""
    net, setting = a4_case(rng)
    samples = int(net.n_train)
    return lambda ns: compute("A4")(ns, setting, samples), extra_mp.a4_closed(net)


def a4_case(rng: Rng, low: float = 1.0, high: float = 3.0) -> tuple[compose_mp.DeepNet, Setting]:
    op = float(rng.uniform(low, high))
    cols = op * float(rng.uniform(1, 2))
    frob = op + (math.sqrt(op * cols) - op) * float(rng.uniform(0, 1))
    activation = str(rng.choice(["relu", "gelu"]))
    depth, seq_len, heads = whole(rng, 1, 6), whole(rng, 1, 5000), whole(rng, 1, 3)
    readout, width, samples = some(rng, 1)[0], 4 * heads, whole(rng, 10, 10**7)
    net = compose_mp.DeepNet(
        depth, seq_len, samples, width, op, cols, frob, readout, ACTIVATION_LIPSCHITZ[activation], heads
    )
    weight = Budget(op=op, two_one=cols)
    norms = Norms(
        budgets={
            "W_QK": Budget(op=op, fro=frob, two_one=cols, two_one_t=cols),
            "W_V": weight,
            "W_1": weight,
            "readout": Budget(op=readout),
        }
    )
    architecture = Architecture(depth, seq_len, width, heads, activation=activation)
    return net, Setting(architecture, norms, Sample(samples, margin=1.0))


def a5(rng: Rng) -> tuple[Value, Any]:
    d, k = whole(rng, 1, 30), whole(rng, 1, 30)
    sizes = dict(zip(("op", "F", "21", "11"), sorted(some(rng, 4)), strict=True))
    kept = {name: size for name, size in sizes.items() if rng.random() < 0.6} or {"21": sizes["21"]}
    kept = {name: size for name, size in kept.items() if name != "11" or "21" in kept or "op" not in kept}
    names = {"op": "op", "F": "fro", "21": "two_one", "11": "one_one"}
    limits: dict[str, Any] = {names[name]: size for name, size in kept.items()}
    budget = Budget(**limits)
    closed = compose_mp.a5_closure(kept, d, k)
    truth = {names[name]: closed[name] for name in names if name != "11"}
    return lambda ns: compute("A5")(ns, budget, d, k), truth


def a6(rng: Rng) -> tuple[Value, Any]:
    names = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")
    left, right = (dict(zip(names, some(rng, 6), strict=True)) for _ in range(2))
    a, b = ({name: num(value) for name, value in side.items()} for side in (left, right))
    truth = {
        "op": a["op"] * b["op"],
        "fro": min(a["op"] * b["fro"], a["fro"] * b["op"]),
        "two_one": a["op"] * b["two_one"],
        "two_one_t": a["two_one_t"] * b["op"],
        "nuclear": min(a["op"] * b["nuclear"], a["nuclear"] * b["op"], a["fro"] * b["fro"]),
    }

    def value(ns: NumberSystem) -> Any:
        given = [{name: ns.number(x) for name, x in side.items()} for side in (left, right)]
        return compute("A6")(ns, *given)

    return value, truth


def a7(rng: Rng) -> tuple[Value, Any]:
    token, position, eps, first, second = some(rng, 5)
    radius = num(token) + num(position)
    truth = {"radius": radius, "error": 2 * MP.tanh(num(eps) / 2) * radius + num(first) + num(second)}
    return of("A7", token, position, eps, first, second), truth


def v4(rng: Rng) -> tuple[Value, Any]:
    name, slope, bend = (("gelu", 1.12891, 0.79789), ("relu", 1.0, 0.0), ("silu", 1.09984, 0.5))[whole(rng, 0, 2)]
    units = whole(rng, 1, 300)
    reach, size, seen, t = some(rng, 4)
    k, steep, s = num(units), num(slope), num(seen)
    kinks = MP.sqrt(k) / MP.sqrt(2 * MP.pi) if name == "relu" else num(0)
    mean = s / 2 + kinks * s + (num(bend) * MP.sqrt(k) / 2 + k / (2 * num(reach))) * s**2
    truth = num(size) * (steep * s * num(t) + mean)

    def value(ns: NumberSystem) -> Any:
        numbers = [ns.number(x) for x in (reach, size, seen, t)]
        return compute("V4")(ns, name, slope, units, *numbers)

    return value, truth


# ---------------------------------------------------------------- G


def chain_case(rng: Rng) -> tuple[list[float], list[float], float, float]:
    """Scales (halving, so that they fall), counts in any order, log(1/delta) and m."""
    levels = whole(rng, 1, 7)
    scales = [0.5 * float(rng.uniform(0.6, 1.0)) * 2.0**-j for j in range(levels + 1)]
    counts = some(rng, levels, 1, 1e4)
    return scales, counts, float(rng.uniform(0.1, 20)), float(whole(rng, 10, 10**8))


def in_system(ns: NumberSystem, values: list[float]) -> list[Any]:
    return [ns.number(x) for x in values]


def g0(rng: Rng) -> tuple[Value, Any]:
    (gamma,) = some(rng, 1)
    classes = whole(rng, 1, 4)
    setting = Setting.of(margin=gamma, classes=classes)
    truth = gap_mp.g0_lipschitz(gamma, multiclass=classes > 1)
    return lambda ns: compute("G0")(ns, setting), truth


def g0e(rng: Rng) -> tuple[Value, Any]:
    """The length of the vector that takes an output to its margin, written out coordinate by coordinate."""
    (radius,) = some(rng, 1)
    classes = whole(rng, 1, 12)
    others = [num(-1) / (classes - 1)] * (classes - 1) if classes > 1 else []
    truth = num(radius) * MP.sqrt(sum(x**2 for x in [num(1), *others]))
    return of("G0e", radius, classes=classes), truth


def g1(rng: Rng) -> tuple[Value, Any]:
    scales, counts, _, m = chain_case(rng)

    def value(ns: NumberSystem) -> Any:
        return compute("G1")(ns, in_system(ns, scales), in_system(ns, counts), ns.number(m))

    uncapped = gap_mp.g2_uniform_entropy_chain(scales, counts, m, None) - num(scales[-1])
    assert abs(gap_mp.g1_entropy_chain(scales, counts, m) - min(MP.mpf(1) / 2, uncapped)) < num(10) ** -45
    return value, uncapped


def g2(rng: Rng) -> tuple[Value, Any]:
    scales, counts, confidence, m = chain_case(rng)
    ghosts, uniform = [(None, False), (None, True), (whole(rng, 1, 32), False)][whole(rng, 0, 2)]

    def value(ns: NumberSystem) -> Any:
        numbers = in_system(ns, scales), in_system(ns, counts), ns.number(confidence), ns.number(m)
        return compute("G2")(ns, *numbers, ghosts, uniform)

    delta = delta_of(confidence)
    if uniform:
        return value, gap_mp.g2_uniform_entropy_chain(scales, counts, m, delta)
    # Symmetrisation multiplies links by 2, as one ghost per sample does (on fewer points).
    return value, gap_mp.g2_ghost_entropy_chain(scales, counts, m, delta, ghosts or 1)


def risk_case(rng: Rng) -> tuple[float, float, float, float, float]:
    """q, count, log(1/delta), m, mu."""
    return (
        float(rng.choice([0.0, rng.uniform(0.001, 0.9)])),
        float(np.exp(rng.uniform(0, 6))),
        float(rng.uniform(0.1, 20)),
        float(whole(rng, 400, 10**6)),
        float(np.exp(rng.uniform(-4, 3))),
    )


def g12(rng: Rng) -> tuple[Value, Any]:
    """Where counts rise it is G2 with them."""
    scales, counts, confidence, m = chain_case(rng)
    counts = sorted(counts)

    def value(ns: NumberSystem) -> Any:
        return compute("G12")(ns, in_system(ns, scales), in_system(ns, counts), ns.number(confidence), ns.number(m))

    return value, gap_mp.g2_uniform_entropy_chain(scales, counts, m, delta_of(confidence))


def g3(rng: Rng) -> tuple[Value, Any]:
    q, count, confidence, m, mu = risk_case(rng)
    truth = gap_mp.g3_by_tail(q, num(count) + num(confidence), m, mu)
    errors = int(q * m)
    if errors < 300:
        assert truth >= gap_mp.g3_binomial(errors, count, int(m), delta_of(confidence))
    return of("G3", q, count, confidence, m, mu), truth


def g11(rng: Rng) -> tuple[Value, Any]:
    q, count, confidence, m, mu = risk_case(rng)
    eta = float(rng.uniform(1e-9, 0.5))
    spent = num(count) + num(confidence) + MP.log(2 + MP.sqrt(MP.pi * num(m) / 2))
    truth = gap_mp.klinv_mu(num(q) + num(eta), spent / num(m), mu) / (1 - num(eta))
    return of("G11", q, count, eta, confidence, m, mu), truth


def g4(rng: Rng) -> tuple[Value, Any]:
    _, count, confidence, m, _ = risk_case(rng)
    alpha = whole(rng, 1, 32)

    def value(ns: NumberSystem) -> Any:
        numbers = [ns.number(x) for x in (count, confidence, m)]
        return ns.minimum(ns.number(1), compute("G4")(ns, *numbers, alpha))

    delta = delta_of(confidence)
    ways = (gap_mp.g4, gap_mp.g4_hypergeometric, gap_mp.g4_middle)
    truth = min(way(count, int(m), delta, alpha) for way in ways)
    assert truth >= gap_mp.g4_exact(count, int(m), delta, alpha)
    return value, truth


def g5(rng: Rng) -> tuple[Value, Any]:
    q, count, confidence, m, mu = risk_case(rng)
    alpha = whole(rng, 1, 32)
    c = gap_mp.g5_complexity(count, m, delta_of(confidence))

    def value(ns: NumberSystem) -> Any:
        numbers = [ns.number(x) for x in (q, count, confidence, m)]
        return compute("G5")(ns, *numbers, alpha, ns.number(mu))

    return value, gap_mp.g5_mu(q, c, m, alpha, mu)


def g7(rng: Rng) -> tuple[Value, Any]:
    q, bits, confidence, m, mu = risk_case(rng)
    truth = gap_mp.g3_by_tail(q, num(bits) * MP.log(2) + num(confidence), m, mu)
    errors = int(q * m)
    if errors < 300:
        assert truth >= gap_mp.g3_binomial(errors, num(bits) * MP.log(2), int(m), delta_of(confidence))
    return of("G7", q, bits, confidence, m, mu), truth


def g13(rng: Rng) -> tuple[Value, Any]:
    q, _, confidence, m, mu = risk_case(rng)
    weights, bits = whole(rng, 10, 10**9), whole(rng, 1, 64)
    nats = num(weights) * bits * MP.log(2)

    def value(ns: NumberSystem) -> Any:
        told = (ns.number(confidence), ns.number(m), ns.number(q), ns.number(mu))
        return compute("G13")(ns, ns.number(weights), bits, *told)

    return value, {
        "log N": nats,
        "gap": MP.sqrt((nats + num(confidence)) / (2 * num(m))),
        "risk": gap_mp.g3_by_tail(q, nats + num(confidence), m, mu),
    }


def g8(rng: Rng) -> tuple[Value, Any]:
    s = whole(rng, 1, 6)
    seq_len = whole(rng, s + 20, 10**6)
    return lambda ns: compute("G8")(ns, s, ns.number(seq_len)), {
        "log class size": gap_mp.g8_log_class(seq_len, s),
        "label floor": gap_mp.g8_counting_floor(seq_len, s),
    }


# ---------------------------------------------------------------- P1, PUB


def p1(rng: Rng) -> tuple[Value, Any]:
    steps = [whole(rng, 0, 200) for _ in range(6)]
    both = [bool(rng.random() < 0.4) for _ in steps]
    truth = gap_mp.p1_cost(
        [k for k, two in zip(steps, both, strict=True) if not two],
        [k for k, two in zip(steps, both, strict=True) if two],
    )
    return lambda ns: compute("P1")(ns, steps, both), truth


def pub(rng: Rng) -> tuple[Value, Any]:
    capacity, m, confidence = some(rng, 1, 1, 1e9)[0], float(whole(rng, 100, 10**9)), float(rng.uniform(0.1, 20))
    return of("PUB", capacity, confidence, m), extra_mp.pub_gap(capacity, m, delta_of(confidence))


CHECKS: dict[str, Check] = {
    "A0": a0, "A1": a1, "A2": a2, "A3": a3, "A4": a4, "A5": a5, "A6": a6, "A7": a7, "V4": v4,
    "G0": g0, "G0e": g0e, "G1": g1, "G2": g2, "G3": g3, "G4": g4, "G5": g5, "G7": g7, "G8": g8, "G11": g11, "G12": g12,
    "G13": g13,
    "P1": p1, "PUB": pub,
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


def test_the_printed_closed_form_is_the_direct_sum() -> None:
    rng = np.random.default_rng(4)
    for _ in range(ROUNDS):
        net, _ = a4_case(rng)
        direct, printed = extra_mp.a4_direct(net), extra_mp.a4_closed(net)
        assert abs(direct / printed - 1) < num(10) ** -40
        assert extra_mp.a4_closed(net) <= compose_mp.a4_closed(net)  # the constant of T2 is the better one


def test_small_weights_cost_less_than_the_printed_closed_form() -> None:
    """The printed form takes all radii 1; below C = 1 the activations shrink, and the value with them."""
    rng = np.random.default_rng(5)
    for _ in range(ROUNDS):
        net, setting = a4_case(rng, 0.3, 0.45)
        assert compute("A4")(FLOAT, setting, int(net.n_train)) < float(extra_mp.a4_closed(net))


def one_line_offsets() -> list[Any]:
    """chain/(2k) - log(1/(2k)) for the best geometric chain, or the range of the loss where that is less."""
    m = 10**7
    found = []
    for t in (*np.linspace(0.02, 9, 60), float(2 * MP.log(2) - 1)):
        k = MP.exp(-num(t)) / 2
        capacity = m * (32 * k / (17 * MP.e)) ** 2 / 2
        chain = extra_mp.gap_by_scales(capacity, m, 0.05) - gap_mp.deviation(0.05, m)
        found.append(chain / (2 * k) - num(t))
    return found


def test_the_one_line_form_bounds_the_chain_it_stands_for() -> None:
    """The offset of the one-line form must be at least 4/e + 1 - 2 log 2 = 1.0852, and no less would do."""
    offsets = one_line_offsets()
    least = 4 / MP.e + 1 - 2 * MP.log(2)
    assert least * (1 - num(1e-9)) < max(offsets) < least * (1 + num(1e-9))
    assert max(offsets) <= gap.CLOSED_OFFSET
    assert min(offsets) >= 1


def test_the_one_line_form() -> None:
    rng = np.random.default_rng(6)
    for _ in range(ROUNDS):
        capacity, m, confidence = some(rng, 1, 1e-3, 1e9)[0], float(whole(rng, 100, 10**9)), float(rng.uniform(0.1, 20))

        def value(ns: NumberSystem, numbers: tuple[float, ...] = (capacity, confidence, m)) -> Any:
            return gap.gap_closed(ns, *(ns.number(x) for x in numbers))

        truth = extra_mp.gap_closed(capacity, m, delta_of(confidence), gap.CLOSED_OFFSET)
        assert disagreements(value, truth) == []


def test_single_uniform_covers() -> None:
    rng = np.random.default_rng(2)
    for _ in range(ROUNDS):
        scale, count, confidence, m = (*some(rng, 3), float(whole(rng, 100, 10**6)))

        def value(ns: NumberSystem, numbers: tuple[float, ...] = (scale, count, confidence, m)) -> Any:
            return gap.gap_uniform_single(ns, *(ns.number(x) for x in numbers))

        assert disagreements(value, gap_mp.g2_uniform_single(scale, count, m, delta_of(confidence))) == []


def test_the_kl_inverse_is_tight_at_the_best_mu_and_exact_at_no_error() -> None:
    for q, c in ((0.1, 0.02), (0.3, 0.4), (0.001, 0.5)):
        mu = gap_mp.klinv_best_mu(q, c)
        assert abs(gap_mp.klinv_mu(q, c, mu) / gap_mp.klinv(q, c) - 1) < num(10) ** -30
        found = gap.binary_kl_inverse(FLOAT, q, c, float(mu))
        assert float(gap_mp.klinv(q, c)) * (1 - 1e-12) <= found <= float(gap_mp.klinv(q, c)) * (1 + 1e-9)
    zero = disagreements(lambda ns: gap.binary_kl_inverse(ns, ns.number(0), ns.number(0.3), None), gap_mp.klinv(0, 0.3))
    assert zero == []


def test_ghost_risk_is_above_the_maximum_over_training_errors() -> None:
    """G5 at any mu is at least the exact maximum over q' <= q, and close to it at the best mu."""
    for q, count, m, alpha in ((0.05, 20.0, 5000.0, 2), (0.3, 5.0, 300.0, 1), (0.0, 3.0, 100.0, 4)):
        exact = gap_mp.g5(q, count, m, 0.05, alpha)
        values = [
            gap.risk_ghost(FLOAT, q, count, float(MP.log(1 / num(0.05))), m, alpha, float(mu))
            for mu in np.exp(np.linspace(-5, 5, 60))
        ]
        assert float(exact) * (1 - 1e-12) <= min(values) <= float(exact) * 1.02
        if q == 0:
            assert min(1.0, gap.risk_ghost(FLOAT, q, count, float(MP.log(20)), m, alpha, None)) <= min(values)


def test_dudleys_integral_is_the_published_closed_form() -> None:
    capacity, m = 3e4, 10**9
    k = MP.sqrt(num(capacity) / m)
    by_quadrature = gap_mp.pub_dudley(lambda e: num(capacity) / e**2, 3 * k, m, top=MP.mpf(1) / 2)
    assert (
        disagreements(lambda ns: gap.complexity_published(ns, ns.number(capacity), ns.number(m)), by_quadrature, 1e-12)
        == []
    )
