"""Section A (composition of covers) in 50-digit arithmetic, written from the statements alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpmath.ctx_mp import MPContext

MP = MPContext()
MP.dps = 50

Real = Any  # an int, a float or an mpf: mpmath has no type stubs
inf = MP.inf


def num(x: Real) -> Real:
    """A 50-digit number; a float is taken at its exact binary value."""
    return MP.mpf(x)


# ---------------------------------------------------------------------------------------------- A0


@dataclass(frozen=True)
class Map:
    """A layer of A0: Lipschitz factor and the error s*eps its own cover adds."""

    lip: Real
    own_error: Real = 0


@dataclass(frozen=True)
class Chain:
    """Layers applied one after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Residual:
    """x + branch(x)."""

    branch: Node


@dataclass(frozen=True)
class Heads:
    """The sum of parallel branches."""

    branches: tuple[Node, ...]


Node = Map | Chain | Residual | Heads


def a0_error(node: Node, err_in: Real = 0) -> Real:
    """A0: the error after ``node`` when its input is known within ``err_in``."""
    if isinstance(node, Map):
        return num(node.lip) * num(err_in) + num(node.own_error)
    if isinstance(node, Chain):
        err = num(err_in)
        for part in node.parts:
            err = a0_error(part, err)
        return err
    if isinstance(node, Residual):
        return num(err_in) + a0_error(node.branch, err_in)
    return MP.fsum(a0_error(branch, err_in) for branch in node.branches)


def a0_lipschitz(node: Node) -> Real:
    """A0/L8: the Lipschitz factor of ``node`` (its error recursion is affine with this slope)."""
    return a0_error(node, 1) - a0_error(node, 0)


# ---------------------------------------------------------------------------------------------- A1


def a1_minimum(coefficients: Sequence[Real], factors: Sequence[Real], eps: Real = 1) -> Real:
    """A1: min of sum A_j/eps_j^2 subject to sum k_j eps_j = eps."""
    third = MP.mpf(1) / 3
    pairs = zip(coefficients, factors, strict=True)
    total = MP.fsum((num(a) * num(k) ** 2) ** third for a, k in pairs)
    return total**3 / num(eps) ** 2


def a1_allocation(coefficients: Sequence[Real], factors: Sequence[Real], eps: Real = 1) -> list[Real]:
    """A1: the minimising eps_j, proportional to (A_j/k_j)^(1/3)."""
    third = MP.mpf(1) / 3
    raw = [(num(a) / num(k)) ** third for a, k in zip(coefficients, factors, strict=True)]
    scale = num(eps) / MP.fsum(num(k) * e for k, e in zip(factors, raw, strict=True))
    return [scale * e for e in raw]


# ---------------------------------------------------------------------------------------------- A4


def t2_lam(columns: Real, points: Real) -> Real:
    """T2: Lam(k, N), the minimum over 1 < rho <= 1.58, by golden section in log(rho - 1)."""
    log_count = MP.log(2 * num(points) * num(columns) + 1)

    def value(t: Real) -> Real:
        rho = 1 + MP.exp(t)
        return rho * log_count + rho**2 * MP.log(rho / (rho - 1))

    return golden_minimum(value, MP.log(MP.mpf(10) ** -9), MP.log(MP.mpf("0.58")))


def t2_lam_at(columns: Real, points: Real, rho: Real | None = None) -> Real:
    """T2: the value at one rho, by default the near-optimal min(1.58, 1 + 1/log(2Nk+1))."""
    log_count = MP.log(2 * num(points) * num(columns) + 1)
    r = min(MP.mpf("1.58"), 1 + 1 / log_count) if rho is None else num(rho)
    return r * log_count + r**2 * MP.log(r / (r - 1))


def golden_minimum(value: Any, low: Real, high: Real, steps: int = 130) -> Real:
    """The least value seen by golden-section search (exact up to its square for smooth minima)."""
    ratio = (MP.sqrt(5) - 1) / 2
    a, b = num(low), num(high)
    x, y = b - ratio * (b - a), a + ratio * (b - a)
    fx, fy = value(x), value(y)
    best = min(value(a), value(b), fx, fy)
    for _ in range(steps):
        if fx < fy:
            b, y, fy = y, x, fx
            x = b - ratio * (b - a)
            fx = value(x)
            best = min(best, fx)
        else:
            a, x, fx = x, y, fy
            y = a + ratio * (b - a)
            fy = value(y)
            best = min(best, fy)
    return best


@dataclass(frozen=True)
class DeepNet:
    """The setting of A4: post-norm blocks, unit temperature, all radii 1."""

    depth: int
    seq_len: Real
    n_train: Real
    width: Real
    op: Real  # C, every spectral norm
    cols: Real  # K, every (2,1) norm
    frob_qk: Real  # K_F
    readout: Real  # B_w
    lip_act: Real = 1
    heads: int = 1


def a4_lip_attention(net: DeepNet) -> Real:
    """L7 (sharp, b = tau = 1) and L8: H C (C + sqrt(1 + C^2))."""
    c = num(net.op)
    return net.heads * c * (c + MP.sqrt(1 + c**2))


def a4_block_lipschitz(net: DeepNet) -> Real:
    """r = L C lip_att."""
    return num(net.lip_act) * num(net.op) * a4_lip_attention(net)


def a4_pieces(net: DeepNet) -> list[tuple[str, Real, Real]]:
    """Every piece as (name, A, k): log-count at most A/eps^2, error amplified by k. Block by block.

    The last block is read at one position, so it is covered on one row per sample.
    """
    m, t, d = num(net.n_train), num(net.seq_len), num(net.width)
    c, cols, act = num(net.op), num(net.cols), num(net.lip_act)
    pieces: list[tuple[str, Real, Real]] = []
    for block in range(1, net.depth + 1):
        rows = MP.mpf(1) if block == net.depth else t
        later = num(net.readout) * a4_block_lipschitz(net) ** (net.depth - block)
        lam = t2_lam(d, m * rows)
        score = min(num(net.frob_qk) ** 2 * MP.log(2 * m * rows * t + 1), cols**2 * lam)
        for head in range(net.heads):
            # score -> attention (b C_V = C) -> W_C (C) -> activation (L)
            pieces.append((f"score {block}.{head}", score, later * act * c * c))
            pieces.append((f"value {block}.{head}", cols**2 * lam, later * act * c))
        pieces.append((f"output {block}", cols**2 * lam, later))
    pieces.append(("readout", num(net.readout) ** 2 * MP.log(2 * m + 1), MP.mpf(1)))
    return pieces


def a4_direct(net: DeepNet) -> Real:
    """A4 by a direct A1 sum over all pieces: C_func."""
    pieces = a4_pieces(net)
    return a1_minimum([a for _, a, _ in pieces], [k for _, _, k in pieces])


def a4_block_sum(net: DeepNet, rows: Real) -> Real:
    """S(n) of A4, with n = ``rows`` query rows per sample."""
    third = MP.mpf(1) / 3
    m, c, cols = num(net.n_train), num(net.op), num(net.cols)
    lam = t2_lam(net.width, m * num(rows))
    lam_s = min((num(net.frob_qk) / cols) ** 2 * MP.log(2 * m * num(rows) * num(net.seq_len) + 1), lam)
    inner = lam_s**third * c ** (4 * third) + lam**third * c ** (2 * third)
    return cols ** (2 * third) * (net.heads * num(net.lip_act) ** (2 * third) * inner + lam**third)


def a4_closed(net: DeepNet) -> Real:
    """A4's closed form for C_func."""
    third = MP.mpf(1) / 3
    q = a4_block_lipschitz(net) ** (2 * third)
    series = num(net.depth - 1) if q == 1 else (q**net.depth - q) / (q - 1)
    total = MP.log(2 * num(net.n_train) + 1) ** third + a4_block_sum(net, 1) + a4_block_sum(net, net.seq_len) * series
    return num(net.readout) ** 2 * total**3


# ---------------------------------------------------------------------------------------------- A5


NORM_NAMES = ("op", "F", "21", "11", "rank")


def a5_closure(given: Mapping[str, Real], d: int, k: int, *, interpolate: bool = True) -> dict[str, Real]:
    """A5: the least upper bounds on op, F, 21, 11 (and rank) that follow from ``given``.

    Only the listed inequalities, iterated to a fixed point. ``interpolate`` adds
    |W|_F^2 = sum_j |w_j|^2 <= max_j |w_j| sum_j |w_j| <= |W|_op |W|_21.
    """
    v: dict[str, Real] = {name: num(given.get(name, inf)) for name in NORM_NAMES}
    v["rank"] = min(v["rank"], num(min(d, k)))
    root_k, root_d = MP.sqrt(k), MP.sqrt(d)
    for _ in range(12):
        before = dict(v)
        v["op"] = min(v["op"], v["F"])
        v["F"] = min(v["F"], v["21"], MP.sqrt(v["rank"]) * v["op"])
        if interpolate and max(v["op"], v["21"]) < inf:
            v["F"] = min(v["F"], MP.sqrt(v["op"] * v["21"]))
        v["21"] = min(v["21"], root_k * v["F"], v["11"])
        v["11"] = min(v["11"], root_d * v["21"], root_k * root_d * v["F"])
        if v == before:
            break
    return v
