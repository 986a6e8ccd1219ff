"""Attempts to falsify section A: covers of whole small networks, built layer by layer.

A network and its approximation are run side by side. Each layer is replaced by an element of an
explicit cover taken at the *approximate* inputs; the error at the output must stay within the
recursion A0. Leaving a factor out of the recursion must be noticed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracle import compose_mp as compose
from tests.oracle.compose_mp import Chain, Heads, Map, Node, Residual
from tests.soundness.library import COMPOSITION

Array = NDArray[np.float64]
ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], float]] = {
    "relu": (lambda x: np.maximum(x, 0), 1.0),
    "tanh": (np.tanh, 1.0),
    "silu": (lambda x: x / (1 + np.exp(-x)), 1.09984),
}


# ------------------------------------------------------------------------------- elementary pieces


@pytest.fixture(params=COMPOSITION)
def whose(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library, or the second implementation."""
    monkeypatch.setitem(globals(), "compose", COMPOSITION[request.param])


def row_norm(x: Array) -> float:
    """The metric of A0: the largest l2 norm of a row."""
    return float(np.linalg.norm(x, axis=-1).max())


def ball(x: Array, radius: float) -> Array:
    """L4: every row projected to the ball."""
    norms = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * np.minimum(1, radius / np.maximum(norms, 1e-300))


def softmax(scores: Array) -> Array:
    z = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def op_norm(w: Array) -> float:
    return float(np.linalg.norm(w, 2))


def scaled_to(w: Array, op: float) -> Array:
    """The same direction with spectral norm ``op``."""
    return w * (op / max(op_norm(w), 1e-300))


# -------------------------------------------------------------------------------- explicit covers


def perceptron(points: Array, w: Array, eps: float, radius: float) -> tuple[Array, int]:
    """T1's cover element for one column, and its number of steps (fewer than (b|w|/eps)^2)."""
    v = np.zeros_like(w)
    steps = 0
    while True:
        residual = points @ (w - v)
        worst = int(np.abs(residual).argmax())
        if abs(residual[worst]) <= eps:
            break
        v = v + (eps / radius**2) * np.sign(residual[worst]) * points[worst]
        steps += 1
    budget = (radius * float(np.linalg.norm(w)) / eps) ** 2
    assert steps <= max(0, math.ceil(budget * (1 + 1e-9)) - 1)
    return v, steps


def matrix_cover(points: Array, w: Array, eps: float, radius: float, method: str, rng: np.random.Generator) -> Array:
    """An element V of a cover of x -> xW with max_i |x_i (W - V)|_2 <= eps on ``points``."""
    if eps == 0:
        return w
    if eps >= radius * op_norm(w) and method != "adversary":
        return np.zeros_like(w)
    if method == "perceptron":
        share = eps / math.sqrt(w.shape[1])
        columns = [perceptron(points, col, share, radius)[0] for col in w.T]
        v = np.stack(columns, axis=1)
    elif method == "grid":
        step = 2 * eps / (radius * math.sqrt(w.size))
        v = np.round(w / step) * step
    else:  # any element within eps belongs to some finite cover: the worst one, at random
        left, right = rng.standard_normal(w.shape[0]), rng.standard_normal(w.shape[1])
        error = np.outer(left, right)
        v = w - error * (eps / (radius * op_norm(error)))
    assert row_norm(points @ (w - v)) <= eps * (1 + 1e-9)
    return v


def score_cover(x: Array, w: Array, eps: float, radius: float, method: str) -> Array:
    """S1: the perceptron on the points x_q x_t^T of all samples, in the space of matrices."""
    if method != "perceptron" or eps == 0:
        return w
    n, t, d = x.shape
    pairs = np.einsum("nqi,ntj->nqtij", x, x).reshape(n * t * t, d * d)
    return perceptron(pairs, w.ravel(), eps, radius**2)[0].reshape(d, d)


# ------------------------------------------------------------------- a network and its shadow, side by side


@dataclass
class Shadow:
    """True and approximate activations, their common radius, and the layers passed so far."""

    true: Array
    approx: Array
    radius: float
    layers: list[Node] = field(default_factory=list)

    def push(self, true: Array, approx: Array, radius: float, node: Node) -> None:
        assert row_norm(true) <= radius * (1 + 1e-9)
        self.true, self.approx, self.radius = true, ball(approx, radius), radius
        self.layers.append(node)


@dataclass(frozen=True)
class Options:
    """``omit`` names the factor left out of the recursion (a negative control)."""

    method: str
    rng: np.random.Generator
    omit: str = ""

    def factor(self, name: str, value: float) -> float:
        return 1.0 if name == self.omit else value


def linear(s: Shadow, w: Array, bound: float, eps: float, o: Options) -> None:
    """L6 with a cover at eps on the approximate rows."""
    rows = s.approx.reshape(-1, s.approx.shape[-1])
    v = matrix_cover(rows, w, eps, s.radius, o.method, o.rng)
    node = Map(o.factor("linear lip", bound), eps)
    s.push(s.true @ w, s.approx @ v, s.radius * bound, node)


def activation(s: Shadow, name: str, o: Options) -> None:
    """L3."""
    f, lip = ACTIVATIONS[name]
    s.push(f(s.true), f(s.approx), s.radius, Map(lip))


def project(s: Shadow, radius: float) -> None:
    """L4."""
    s.push(ball(s.true, radius), ball(s.approx, radius), min(radius, s.radius), Map(1))


def gain(s: Shadow, g: Array, bound: float, eps: float, o: Options) -> None:
    """T9: a diagonal gain, rounded to a grid of spacing 2 eps/radius."""
    step = 2 * eps / s.radius
    rounded = np.round(g / step) * step if eps else g
    s.push(s.true * g, s.approx * rounded, s.radius * bound, Map(o.factor("gain lip", bound), eps))


def rms_norm(s: Shadow, floor: float, o: Options) -> None:
    """L5: x / sqrt(mean x^2 + floor)."""

    def f(x: Array) -> Array:
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + floor)

    d = s.true.shape[-1]
    radius = math.sqrt(d) * s.radius / math.sqrt(s.radius**2 + d * floor)
    s.push(f(s.true), f(s.approx), radius, Map(o.factor("norm lip", 1 / math.sqrt(floor))))


@dataclass(frozen=True)
class HeadSpec:
    """One head: weights, op budgets, and the errors spent on scores and values."""

    w: Array
    v: Array
    c_w: float
    c_v: float
    eps_s: float
    eps_v: float
    score_error: Array | None = None  # an adversarial cover element is W + score_error


def head(s: Shadow, h: HeadSpec, o: Options) -> tuple[Array, Array, Node]:
    """L7: softmax head, scores covered first, then V at the approximate pooled rows."""
    b = s.radius
    w_hat = score_cover(s.approx, h.w, h.eps_s, b, o.method)
    if h.score_error is not None:
        w_hat = h.w + h.score_error
    scores_at = np.einsum("nqi,ij,ntj->nqt", s.approx, h.w, s.approx)
    scores_hat = np.einsum("nqi,ij,ntj->nqt", s.approx, w_hat, s.approx)
    assert np.abs(scores_at - scores_hat).max() <= h.eps_s * (1 + 1e-9)
    pooled_hat = softmax(scores_hat) @ s.approx
    rows = pooled_hat.reshape(-1, pooled_hat.shape[-1])
    v_hat = matrix_cover(rows, h.v, h.eps_v, b, o.method, o.rng)
    true = softmax(np.einsum("nqi,ij,ntj->nqt", s.true, h.w, s.true)) @ s.true @ h.v
    kap = b**2 * h.c_w
    lip = h.c_v * o.factor("attention lip", kap + math.sqrt(1 + kap**2))
    score = b * o.factor("score sensitivity", h.c_v) * min(h.eps_s, 2.0)
    return true, ball(pooled_hat @ v_hat, b * h.c_v), Map(lip, score + h.eps_v)


def attention(s: Shadow, heads: list[HeadSpec], o: Options) -> None:
    """L8: heads add."""
    parts = [head(s, h, o) for h in heads]
    nodes = [node for _, _, node in parts]
    if o.omit == "second head":
        nodes = nodes[:1]
    radius = s.radius * sum(h.c_v for h in heads)
    s.push(sum(p[0] for p in parts), sum(p[1] for p in parts), radius, Heads(tuple(nodes)))  # type: ignore[arg-type]


def residual(s: Shadow, branch: Callable[[Shadow], None], o: Options) -> None:
    """L8: x + branch(x); the branch's pieces are amplified inside the branch only."""
    inner = Shadow(s.true, s.approx, s.radius)
    branch(inner)
    node: Node = Chain(tuple(inner.layers))
    node = node if o.omit == "skip" else Residual(node)
    s.push(s.true + inner.true, s.approx + inner.approx, s.radius + inner.radius, node)


def outcome(s: Shadow) -> tuple[float, float]:
    """(actual error, error predicted by A0)."""
    predicted = float(compose.a0_error(Chain(tuple(s.layers)), 0))
    return row_norm(s.true - s.approx), predicted


# ---------------------------------------------------------------------------------- random networks


def random_matrix(rng: np.random.Generator, d: int, k: int, op: float) -> Array:
    """Within the op ball, usually on its boundary, sometimes of rank one."""
    kind = rng.integers(3)
    w = rng.standard_normal((d, k))
    if kind == 0:
        w = np.outer(rng.standard_normal(d), rng.standard_normal(k))
    return scaled_to(w, op * (1.0 if kind < 2 else float(rng.random())))


def random_network(rng: np.random.Generator, method: str, omit: str = "") -> tuple[float, float]:
    """One random architecture of depth <= 3 with random weights and coarse errors."""
    o = Options(method, rng, omit)
    n, t, d = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    x = ball(rng.standard_normal((n, t, d)) * 3, 1.0)
    s = Shadow(x, x.copy(), 1.0)
    use_residual, use_gain, use_norm = (bool(v) for v in rng.integers(0, 2, 3))
    act = str(rng.choice(list(ACTIVATIONS)))

    def eps(scale: float) -> float:
        return scale * float(rng.choice((0.02, 0.1, 0.4)))

    def random_head(b: float) -> HeadSpec:
        c_w, c_v = (float(v) for v in rng.choice((0.5, 1.0, 2.0), 2))
        w, v = random_matrix(rng, d, d, c_w), random_matrix(rng, d, d, c_v)
        eps_s, eps_v = eps(b * b * c_w), eps(b * c_v)
        error = None
        if method == "adversary":
            error = scaled_to(rng.standard_normal((d, d)), eps_s / b**2)
        return HeadSpec(w, v, c_w, c_v, eps_s, eps_v, error)

    def attend(z: Shadow) -> None:
        attention(z, [random_head(z.radius) for _ in range(int(rng.integers(1, 3)))], o)
        if z.radius > 1.5:
            project(z, 1.5)

    def feed(z: Shadow) -> None:
        activation(z, act, o)
        c = float(rng.choice((0.5, 1.0, 2.0)))
        k = z.true.shape[-1]
        linear(z, random_matrix(rng, k, k, c), c, eps(z.radius * c), o)

    for _ in range(int(rng.integers(1, 4))):
        for part in (attend, feed):
            if use_residual:
                residual(s, part, o)
            else:
                part(s)
        if use_norm:
            rms_norm(s, 1.0, o)
        if use_gain:
            g = rng.uniform(-1.5, 1.5, d)
            gain(s, g, 1.5, eps(s.radius), o)
        project(s, 1.0)
    linear(s, random_matrix(rng, d, 1, 1.5), 1.5, eps(1.5 * s.radius), o)
    return outcome(s)


def composition_violations(method: str, omit: str = "", runs: int = 250, seed: int = 0) -> list[str]:
    """Random networks whose error exceeds the prediction."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(runs):
        actual, predicted = random_network(rng, method, omit)
        if actual > predicted * (1 + 1e-9) + 1e-12:
            found.append(f"network {i}: {actual} > {predicted}")
    return found


@pytest.mark.parametrize("method", ["grid", "perceptron", "adversary"])
def test_layerwise_covers_stay_within_the_recursion(method: str) -> None:
    assert composition_violations(method) == []


# ------------------------------------------------------------------------------------ aligned attacks

Scenario = Callable[[np.random.Generator, str], tuple[float, float]]


def linear_chain(rng: np.random.Generator, omit: str) -> tuple[float, float]:
    """An error in the first layer only, aligned with the amplifying direction of the others."""
    o = Options("adversary", rng, omit)
    x = ball(rng.standard_normal((2, 2, 1)) * 3, 1.0)
    s = Shadow(x, x.copy(), 1.0)
    linear(s, np.array([[2.0]]), 2.0, 0.3, o)
    linear(s, np.array([[3.0]]), 3.0, 0.0, o)
    gain(s, np.array([1.5]), 1.5, 0.0, o)
    linear(s, np.array([[2.0]]), 2.0, 0.0, o)
    return outcome(s)


def skip_connection(rng: np.random.Generator, omit: str) -> tuple[float, float]:
    """The error travels through the skip and through the branch."""
    o = Options("adversary", rng, omit)
    x = ball(rng.standard_normal((2, 1, 1)) * 3, 1.0)
    s = Shadow(x, x.copy(), 1.0)
    linear(s, np.array([[1.0]]), 1.0, 0.3, o)
    residual(s, lambda z: linear(z, np.array([[0.5]]), 0.5, 0.0, o), o)
    return outcome(s)


def normalised(rng: np.random.Generator, omit: str) -> tuple[float, float]:
    """Small rows before RMSNorm with a small floor."""
    o = Options("adversary", rng, omit)
    x = ball(rng.standard_normal((2, 1, 1)), 0.05)
    s = Shadow(x, x.copy(), 0.05)
    linear(s, np.array([[1.0]]), 1.0, 0.02, o)
    rms_norm(s, 0.04, o)
    return outcome(s)


def opposite_keys(rng: np.random.Generator, omit: str) -> tuple[float, float]:
    """x_1 = -x_2: L1 is attained as the score error vanishes. The error hits the scores of both heads."""
    o = Options("adversary", rng, omit)
    x = np.array([[[1.0], [-1.0]]])
    s = Shadow(x, x.copy(), 1.0)
    eps_s = float(rng.choice((0.02, 0.1)))
    one = HeadSpec(np.zeros((1, 1)), np.array([[3.0]]), 0.0, 3.0, eps_s, 0.0, np.array([[eps_s]]))
    attention(s, [one, one], o)
    return outcome(s)


def sharp_attention(rng: np.random.Generator, omit: str) -> tuple[float, float]:
    """An input error moves query and keys of a head with a large score matrix."""
    o = Options("adversary", rng, omit)
    base = np.array([[[1.0], [float(rng.uniform(-1, 0))], [float(rng.uniform(-1, 1))]]])
    s = Shadow(base, base.copy(), 1.0)
    linear(s, np.array([[1.0]]), 1.0, 0.02, o)
    spec = HeadSpec(np.array([[float(rng.uniform(-3, 3))]]), np.array([[1.0]]), 3.0, 1.0, 0.0, 0.0)
    attention(s, [spec], o)
    return outcome(s)


SCENARIOS: Mapping[str, tuple[Scenario, tuple[str, ...]]] = {
    "linear chain": (linear_chain, ("linear lip", "gain lip")),
    "skip": (skip_connection, ("skip",)),
    "norm": (normalised, ("norm lip",)),
    "heads": (opposite_keys, ("second head", "score sensitivity")),
    "attention": (sharp_attention, ("attention lip",)),
}


def scenario_violations(name: str, omit: str, runs: int = 150) -> list[str]:
    """Draws of one aligned scenario whose error exceeds the prediction."""
    rng = np.random.default_rng(11)
    found = []
    for _ in range(runs):
        actual, predicted = SCENARIOS[name][0](rng, omit)
        if actual > predicted * (1 + 1e-9) + 1e-12:
            found.append(f"{name}: {actual} > {predicted}")
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_aligned_attacks_do_not_break_the_recursion(name: str) -> None:
    assert scenario_violations(name, "") == []


@pytest.mark.parametrize(("name", "omit"), [(name, omit) for name, (_, omits) in SCENARIOS.items() for omit in omits])
def test_a_factor_left_out_is_noticed(name: str, omit: str) -> None:
    assert scenario_violations(name, omit)


def hill_climb(seed: int, omit: str, steps: int = 300) -> float:
    """The largest actual/predicted ratio a local search finds for one head in two dimensions."""
    rng = np.random.default_rng(seed)

    def ratio(theta: Array) -> float:
        x = ball(theta[:6].reshape(1, 3, 2), 1.0)
        moved = ball(x + ball(theta[6:12].reshape(1, 3, 2), 0.02), 1.0)
        w = scaled_to(theta[12:16].reshape(2, 2), 2.0)
        v = scaled_to(theta[16:20].reshape(2, 2), 1.5)
        s = Shadow(x, moved, 1.0, [Map(1, row_norm(x - moved))])
        attention(s, [HeadSpec(w, v, 2.0, 1.5, 0.0, 0.0)], Options("grid", rng, omit))
        actual, predicted = outcome(s)
        return actual / predicted if predicted > 1e-9 else 0.0

    theta = rng.standard_normal(20)
    best, width = ratio(theta), 1.0
    for _ in range(steps):
        trial = theta + width * rng.standard_normal(20)
        value = ratio(trial)
        if value > best:
            theta, best, width = trial, value, min(2.0, width * 1.3)
        else:
            width = max(0.02, width * 0.96)
    return best


def test_hill_climbing_on_a_head() -> None:
    ratios = [hill_climb(seed, "") for seed in range(6)]
    assert max(ratios) <= 1 + 1e-9
    assert max(ratios) > 0.3  # the search does get somewhere
    assert max(hill_climb(seed, "attention lip") for seed in range(3)) > 1


# ------------------------------------------------------------------------ a complete cover, enumerated


def enumerated_violations(inflate: float) -> list[str]:
    """Every member of a one-parameter-per-layer class against the whole finite composite cover.

    f(x) = relu(relu(x a) b) c with |a|,|b|,|c| <= 2: the product of three grids, its size the
    product of their sizes, covers the class within the predicted error divided by ``inflate``.
    """
    budget, spent = 2.0, (0.1, 0.2, 0.4)
    x = np.linspace(-1, 1, 9)
    radii = (1.0, budget, budget**2)
    grids = []
    for eps, radius in zip(spent, radii, strict=True):
        step = 2 * eps / radius
        count = math.ceil(2 * budget / step)
        grids.append(-budget + (np.arange(count) + 0.5) * (2 * budget / count))

    def run(a: float, b: float, c: float) -> Array:
        return np.maximum(np.maximum(x * a, 0) * b, 0) * c

    cover = np.array([run(*p) for p in product(*(g.tolist() for g in grids))])
    assert len(cover) == math.prod(len(g) for g in grids)
    node = Chain(tuple(Map(budget, eps) for eps in spent))
    predicted = float(compose.a0_error(node)) / inflate
    rng = np.random.default_rng(3)
    found = []
    for _ in range(300):
        p = np.where(rng.random(3) < 0.3, rng.choice((-budget, budget), 3), rng.uniform(-2, 2, 3))
        target = run(*p.tolist())
        error = float(np.abs(cover - target).max(axis=1).min())
        if error > predicted * (1 + 1e-9):
            found.append(f"{p}: {error} > {predicted}")
    return found


def test_an_enumerated_composite_cover() -> None:
    assert enumerated_violations(1.0) == []
    assert enumerated_violations(4.0)


# --------------------------------------------------------------------------------------- A1, A4, A5


def allocation_violations(shrink: float) -> list[str]:
    """Random feasible allocations that beat A1's minimum times ``shrink``."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(200):
        size = int(rng.integers(1, 6))
        a, k = rng.exponential(1, size) + 1e-3, rng.exponential(1, size) + 1e-3
        least = shrink * float(compose.a1_minimum(a.tolist(), k.tolist(), 0.7))
        best = np.array([float(e) for e in compose.a1_allocation(a.tolist(), k.tolist(), 0.7)])
        for eps in (best, *(best * np.exp(0.1 * rng.standard_normal((4, size))))):
            eps = eps * 0.7 / float(k @ eps)
            if float((a / eps**2).sum()) < least * (1 - 1e-9):
                found.append(f"{a} {k} {eps}")
    return found


@pytest.mark.usefixtures("whose")
def test_a1_is_the_minimum_and_is_attained() -> None:
    assert allocation_violations(1.0) == []
    assert allocation_violations(1.001)


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("op", [0.3, 1.0, 2.0])
def test_a4_closed_form_is_the_direct_sum(depth: int, heads: int, op: float) -> None:
    for seq_len, cols, frob in ((1, 2.0, 1.0), (500, 6.0, 4.0), (500, 1.0, 3.0)):
        net = compose.DeepNet(depth, seq_len, 10**5, 16, op, cols, frob, 1.5, 1.13, heads)
        direct, closed = compose.a4_direct(net), compose.a4_closed(net)
        assert abs(closed / direct - 1) < compose.num("1e-45")


def test_a4_at_block_lipschitz_one() -> None:
    # r = C^2 (C + sqrt(1 + C^2)) = 1 up to rounding: the series is then D - 1.
    low, high = 0.1, 1.0
    for _ in range(60):
        mid = (low + high) / 2
        r = mid * mid * (mid + math.sqrt(1 + mid * mid))
        low, high = (mid, high) if r < 1 else (low, mid)
    net = compose.DeepNet(6, 20, 1000, 8, low, 2.0, 1.0, 1.0)
    assert abs(compose.a4_closed(net) / compose.a4_direct(net) - 1) < compose.num("1e-30")


def closure_violations(names: tuple[str, ...], shrink: float = 1.0) -> list[str]:
    """Random matrices with a norm above the closure of the norms in ``names``."""
    rng = np.random.default_rng(12)
    found = []
    for _ in range(150):
        d, k = (int(v) for v in rng.integers(1, 6, 2))
        w = rng.standard_normal((d, k)) * np.exp(2 * rng.standard_normal(k))
        if rng.random() < 0.5:
            w = w * (rng.random((d, k)) < 0.4)
        if rng.random() < 0.2:
            w = np.eye(d, k)
        if not w.any():
            continue
        truth = {
            "op": op_norm(w),
            "F": float(np.linalg.norm(w)),
            "21": float(np.linalg.norm(w, axis=0).sum()),
            "11": float(np.abs(w).sum()),
            "rank": float(np.linalg.matrix_rank(w)),
        }
        closed = compose.a5_closure({n: truth[n] for n in names}, d, k)
        for name, value in truth.items():
            if value > shrink * float(closed[name]) * (1 + 1e-9):
                found.append(f"{name} from {names}: {value} > {closed[name]}")
    return found


@pytest.mark.usefixtures("whose")
@pytest.mark.parametrize(
    "names", [("op",), ("F",), ("21",), ("11",), ("op", "21"), ("op", "rank"), ("F", "11", "rank")]
)
def test_a5_closure(names: tuple[str, ...]) -> None:
    assert closure_violations(names) == []
    assert closure_violations(names, 0.99)


def test_a5_interpolation_is_sharper() -> None:
    given = {"op": 1, "21": 3}
    plain = compose.a5_closure(given, 20, 20, interpolate=False)["F"]
    assert compose.a5_closure(given, 20, 20)["F"] < plain
