"""Independent high-precision values of L1-L9 (radius, Lipschitz, sensitivity) and S1-S4.

Metric everywhere: maximum over rows of the l2 norm. Names follow the covers module: ``b`` radius,
``c_w``, ``c_v`` operator norms, ``(c, mu)`` the constants of a normaliser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.oracle.covers_mp import MP, Mpf, Real, num

# ---------------------------------------------------------------- L1, L2


def l1_softmax(gap: Real | Mpf) -> Mpf:
    """L1, global form: |softmax(u) - softmax(v)|_1 <= 2 tanh(gap/2), gap = |u-v|_inf."""
    return 2 * MP.tanh(num(gap) / 2)


def l1_constant() -> Mpf:
    """L1: the l_inf -> l_1 Lipschitz constant of softmax."""
    return MP.mpf(1)


def l2_normaliser(name: str, tau: Real = 1, b: Real | None = None, c_w: Real | None = None) -> tuple[Mpf, Mpf]:
    """L2: (c, mu) of softmax, softmax_plus_one, sigmoid (over T), linear (over T)."""
    if name in ("softmax", "softmax_plus_one"):
        return 1 / num(tau), MP.mpf(1)
    if name == "sigmoid":
        return MP.mpf(1) / 4, MP.mpf(1)
    if name == "linear" and b is not None and c_w is not None:
        return MP.mpf(1), num(b) ** 2 * num(c_w)
    raise ValueError(f"no usable T-free constant for {name!r}")


# ---------------------------------------------------------------- L3

_C = "0.044715"

ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "gelu": (lambda x: x * MP.ncdf(x), 1.4),
    "gelu_tanh": (
        lambda x: x * (1 + MP.tanh(MP.sqrt(2 / MP.pi) * (x + MP.mpf(_C) * x**3))) / 2,
        1.4,
    ),
    "silu": (lambda x: x / (1 + MP.exp(-x)), 2.4),
    "quick_gelu": (lambda x: x / (1 + MP.exp(-MP.mpf("1.702") * x)), 1.4),
    "mish": (lambda x: x * MP.tanh(MP.log1p(MP.exp(x))), 1.5),
}


def l3_lipschitz(name: str) -> Mpf:
    """L3: the largest slope, where the derivative is stationary; 1 for relu, tanh, identity."""
    if name in ("relu", "tanh", "identity"):
        return MP.mpf(1)
    f, start = ACTIVATIONS[name]
    x = MP.findroot(lambda t: MP.diff(f, t, 2), start)
    return MP.diff(f, x)


# ---------------------------------------------------------------- L4, L5


def l4_projection(beta: Real, radius: Real) -> tuple[Mpf, Mpf]:
    """L4: (Lipschitz, radius) of the row projection to the ball of the given radius."""
    return MP.mpf(1), min(num(beta), num(radius))


def l5_lipschitz(gain: Real, e: Real) -> Mpf:
    """L5: |g|_inf / sqrt(e)."""
    return num(gain) / MP.sqrt(num(e))


def l5_radius(gain: Real, e: Real, d: int, beta: Real, offset: Real = 0) -> Mpf:
    """L5: |g|_inf sqrt(d) beta / sqrt(beta^2 + d e) + |c|_2."""
    root = MP.sqrt(num(beta) ** 2 + d * num(e))
    return num(gain) * MP.sqrt(d) * num(beta) / root + num(offset)


def l5_radius_limit(gain: Real, d: int, offset: Real = 0) -> Mpf:
    """L5: sqrt(d) |g|_inf + |c|_2, whatever the input."""
    return num(gain) * MP.sqrt(d) + num(offset)


def l5_variance_factor(gain: Real, e: Real, v: Real) -> Mpf:
    """L5 with variance at least v on the class: 2|g|_inf / sqrt(v+e)."""
    return 2 * num(gain) / MP.sqrt(num(v) + num(e))


def l5_variance_error(gain: Real, e: Real, v: Real, d: int, error: Real) -> Mpf:
    """L5: |g|_inf d_in / (sqrt(v+e) - d_in/(2 sqrt d)) for d_in < sqrt(d(v+e))."""
    if num(error) >= MP.sqrt(d * (num(v) + num(e))):
        raise ValueError("the input error is too large")
    return num(gain) * num(error) / (MP.sqrt(num(v) + num(e)) - num(error) / (2 * MP.sqrt(d)))


def l5_variance_error_always(gain: Real, e: Real, v: Real, error: Real) -> Mpf:
    """L5: 2|g|_inf d_in / (sqrt(v+e) + sqrt e), any d_in."""
    return 2 * num(gain) * num(error) / (MP.sqrt(num(v) + num(e)) + MP.sqrt(num(e)))


def l5_clamped_lipschitz(gain: Real, e: Real, v: Real) -> Mpf:
    """Improved L5: |g|_inf / sqrt(v+e), for every pair of inputs.

    In the cover, replace the normaliser by y / sqrt(max(|y|^2/d, v) + e): it equals the true one on
    every admissible input, and is 1/sqrt(v+e)-Lipschitz everywhere (linear inside, derivative at
    most 1/sqrt(v+e) outside, continuous). Centres need not lie in the class, so no factor 2.
    """
    return num(gain) / MP.sqrt(num(v) + num(e))


# ---------------------------------------------------------------- L6-L8


def l6_linear(b: Real, op: Real) -> tuple[Mpf, Mpf]:
    """L6: (Lipschitz, radius) of a linear map."""
    return num(op), num(b) * num(op)


def l7_radius(b: Real, c_v: Real, mu: Real | Mpf = 1) -> Mpf:
    """L7: mu b C_V."""
    return num(mu) * num(b) * num(c_v)


def l7_lipschitz(b: Real, c_w: Real, c_v: Real, c: Real | Mpf = 1, mu: Real | Mpf = 1) -> Mpf:
    """L7, any normaliser: C_V (mu + 2 c b^2 C_W)."""
    return num(c_v) * (num(mu) + 2 * num(c) * num(b) ** 2 * num(c_w))


def l7_lipschitz_sharp(b: Real, c_w: Real, c_v: Real, tau: Real = 1) -> Mpf:
    """L7, softmax and softmax-plus-one, one W: C_V (kap + sqrt(1+kap^2)), kap = b^2 C_W/tau."""
    kap = num(b) ** 2 * num(c_w) / num(tau)
    return num(c_v) * (kap + MP.sqrt(1 + kap**2))


def l7_lipschitz_query_bias(b: Real, c_w: Real, c_w_augmented: Real, c_v: Real, tau: Real = 1) -> Mpf:
    """T8/L7: C_V (b^2 C_W + sqrt(1 + (b b' C_W')^2)), b' = sqrt(b^2+1), norms divided by tau."""
    b_aug = MP.sqrt(num(b) ** 2 + 1)
    z = num(b) * b_aug * num(c_w_augmented) / num(tau)
    return num(c_v) * (num(b) ** 2 * num(c_w) / num(tau) + MP.sqrt(1 + z**2))


def l7_score_sensitivity(b: Real, c_v: Real, eps_s: Real, c: Real | Mpf = 1, mu: Real | Mpf = 1) -> Mpf:
    """L7: error from a uniform score error, b C_V min(c eps_s, 2 mu)."""
    return num(b) * num(c_v) * min(num(c) * num(eps_s), 2 * num(mu))


def l7_score_error_softmax(b: Real, c_v: Real, eps_s: Real, tau: Real = 1) -> Mpf:
    """Improved L7 for softmax: b C_V 2 tanh(eps_s/(2 tau)), by the global form of L1."""
    return num(b) * num(c_v) * l1_softmax(num(eps_s) / num(tau))


def l8_sum(values: Sequence[Real | Mpf]) -> Mpf:
    """L8: heads that are added: radii, factors and errors add."""
    return sum((num(v) for v in values), MP.mpf(0))


def l8_residual(b: Real, radius: Real, lip: Real) -> tuple[Mpf, Mpf]:
    """L8: (Lipschitz, radius) of X + f(X)."""
    return 1 + num(lip), num(b) + num(radius)


def l8_concat(values: Sequence[Real | Mpf], c_o: Real) -> Mpf:
    """Concatenated heads, then one matrix: C_O sqrt(sum of squares); radii, factors, errors."""
    return num(c_o) * MP.sqrt(sum((num(v) ** 2 for v in values), MP.mpf(0)))


# ---------------------------------------------------------------- L9


def l9_radius(b: Real, c1: Real, c3: Real, c2: Real) -> Mpf:
    """L9: b^2 C1 C3 C2."""
    return num(b) ** 2 * num(c1) * num(c3) * num(c2)


def l9_lipschitz(b: Real, c1: Real, c3: Real, c2: Real, slope: Real | Mpf) -> Mpf:
    """L9: b C1 C3 C2 (1 + L_s)."""
    return num(b) * num(c1) * num(c3) * num(c2) * (1 + num(slope))


def l9_sensitivities(b: Real, c1: Real, c3: Real, c2: Real, slope: Real | Mpf) -> tuple[Mpf, Mpf, Mpf]:
    """L9: amplification of the errors of xW1, xW3 and of the last map."""
    return num(slope) * num(b) * num(c3) * num(c2), num(b) * num(c1) * num(c2), MP.mpf(1)


# ---------------------------------------------------------------- S1-S4


def s1_arguments(b: Real, frobenius: Real, samples: int, queries: int, seq_len: int) -> tuple[Mpf, Mpf, int]:
    """S1: (radius b^2, budget |W|_F, N = m n_q T) for T1."""
    return num(b) ** 2, num(frobenius), samples * queries * seq_len


def s2_query_arguments(b: Real, eps_s: Real, samples: int, queries: int) -> tuple[Mpf, Mpf, int]:
    """S2, query side: (radius b, tolerance eps_s/b, N = m n_q) for T2 with |W|_21."""
    return num(b), num(eps_s) / num(b), samples * queries


def s2_key_arguments(b: Real, eps_s: Real, samples: int, seq_len: int) -> tuple[Mpf, Mpf, int]:
    """S2, key side: (radius b, tolerance eps_s/b, N = mT) for T2 with |W^T|_21."""
    return num(b), num(eps_s) / num(b), samples * seq_len


def s3_radius(b: Real) -> Mpf:
    """S3: T3-T6 at radius b^2."""
    return num(b) ** 2


def s4_score_error(b: Real, c_q: Real, c_k: Real, eps_q: Real, eps_k: Real, d_head: int) -> Mpf:
    """S4: (b C_K eps_Q + b C_Q eps_K)/sqrt(d_head), approximate keys projected to radius b C_K."""
    return num(b) * (num(c_k) * num(eps_q) + num(c_q) * num(eps_k)) / MP.sqrt(d_head)


def s4_score_norm(c_q: Real, c_k: Real, d_head: int) -> Mpf:
    """S4: the C_W of L7, C_Q C_K / sqrt(d_head)."""
    return num(c_q) * num(c_k) / MP.sqrt(d_head)
