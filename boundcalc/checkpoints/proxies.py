"""Proxies of E: sizes of published bounds for this model, without their unspecified constants. Never bounds.

    Edelman et al. 2022, per layer:  (1 + sum_l alpha_l^(2/3) xi_l)^(3/2)
    Sakai & Imaizumi 2026:           sqrt(D) + sum over matrices of
                                     min_p (sum sigma^p)^(1/(p+2)) s^(p/(p+2)) d^((p+1)/(p+2))

as used in the literature's experiments on BERT-like models. A head's V is W_V W_O (what it adds to the row), its QK is
W_Q W_K^T divided by the temperature, M_in and M_out are the two maps of the feed-forward part. Everything is in logs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.numbers import log_sum
from boundcalc.checkpoints.audit import Audit
from boundcalc.setting import Layer
from boundcalc.setting.attention import attentions
from boundcalc.setting.layer import flat
from boundcalc.statements.layers.activation import ACTIVATION_LIPSCHITZ


@dataclass(frozen=True)
class Norm3:
    """A matrix of a block: log of |.|_op and |.|_21, its singular values and its width."""

    log_op: float
    log_21: float
    spectrum: tuple[float, ...] | None = None
    d: int = 1


@dataclass(frozen=True)
class BlockNorms:
    """What both proxies read of one block."""

    values: tuple[Norm3, ...]
    scores: tuple[Norm3, ...]
    first: Norm3
    second: Norm3
    lipschitz: float = 1.0


@dataclass(frozen=True)
class Proxy:
    """A number that goes with a bound's size; printed with "~"."""

    name: str
    log_value: float
    parts: dict[str, float]
    """Each block's or matrix's share."""


def edelman_proxy(blocks: Sequence[BlockNorms]) -> Proxy:
    """Edelman et al. 2022, deep networks layer by layer."""
    alphas = _log_alphas(blocks)
    terms: dict[str, float] = {}
    for index, (block, alpha) in enumerate(zip(blocks, alphas, strict=True)):
        feed = block.first.log_op + block.second.log_op
        xi: list[float] = []
        for v, qk in zip(block.values, block.scores, strict=True):
            xi.append(2 / 3 * (feed + v.log_op + qk.log_21))
            xi.append(2 / 3 * (feed + v.log_21))
        xi.append(2 / 3 * (block.second.log_op + block.first.log_21))
        xi.append(2 / 3 * block.second.log_21)
        terms[f"block {index}"] = 2 / 3 * alpha + log_sum(xi)
    total = log_sum([0.0, *terms.values()])
    return Proxy("edelman2022-layers", 1.5 * total, {name: math.exp(t - total) for name, t in terms.items()})


def _log_alphas(blocks: Sequence[BlockNorms]) -> list[float]:
    """alpha_l = prod over later blocks of L_phi |M_in| |M_out| sum_h |V_h| (1 + 4 |QK_h|)."""
    alphas: list[float] = []
    later = 0.0
    for block in reversed(blocks):
        alphas.append(later)
        heads = [
            v.log_op + math.log1p(4 * math.exp(min(qk.log_op, 700.0)))
            for v, qk in zip(block.values, block.scores, strict=True)
        ]
        later += math.log(block.lipschitz) + block.first.log_op + block.second.log_op + log_sum(heads)
    return alphas[::-1]


def spectrum_proxy(blocks: Sequence[BlockNorms]) -> Proxy:
    """Sakai & Imaizumi 2026, with the best power for each matrix."""
    depth = len(blocks)
    terms: dict[str, float] = {}
    for index, (block, alpha) in enumerate(zip(blocks, _log_alphas(blocks), strict=True)):
        scale = alpha + math.log(depth)
        feed = block.first.log_op + block.second.log_op
        for head, (v, qk) in enumerate(zip(block.values, block.scores, strict=True)):
            terms[f"QK[{index},{head}]"] = _best_power(qk, math.log(2) + v.log_op + feed + scale, depth)
            terms[f"V[{index},{head}]"] = _best_power(v, feed + scale, depth)
        terms[f"M_in[{index}]"] = _best_power(block.first, block.second.log_op + scale, depth)
        terms[f"M_out[{index}]"] = _best_power(block.second, scale, depth)
    total = log_sum([0.5 * math.log(depth), *terms.values()])
    return Proxy("sakai2026-spectrum", total, {name: math.exp(t - total) for name, t in terms.items()})


def _best_power(matrix: Norm3, log_s: float, depth: int) -> float:
    """Log of a matrix's term at the best p in {0, 1/g, ..., 2}, g = ceil(D + log d); p = 0 means the rank."""
    if matrix.spectrum is None:
        raise Unsupported(
            Refusal(
                "the spectrum-adaptive proxy", "no singular values", "the spectrum of every matrix", "Add --spectra."
            )
        )
    sigma = np.array([s for s in matrix.spectrum if s > 0])
    if not len(sigma):
        return -math.inf
    # singular values are upper ends: those that are rounding alone do not count for the rank
    effective = sigma[sigma > 1e-6 * sigma[0]]
    steps = math.ceil(depth + math.log(matrix.d))
    log_d, log_sigma = math.log(matrix.d), np.log(effective)
    best = math.inf
    for i in range(2 * steps + 1):
        p = i / steps
        log_total = float(np.logaddexp.reduce(p * log_sigma))
        best = min(best, (log_total + p * log_s + (p + 1) * log_d) / (p + 2))
    return best


def block_norms(found: Audit) -> list[BlockNorms]:
    """The norms both proxies need; refuses models that are not BERT-like."""
    blocks: dict[int, dict[str, Layer]] = {}
    activations: dict[int, str] = {}
    last: int | None = None
    stages = found.architecture.stages
    for layer in flat(stages):
        block = layer.where()
        if layer.entrywise is not None and last is not None:
            activations.setdefault(last, layer.entrywise)
        if block is not None:
            last = block
            blocks.setdefault(block, {})[getattr(layer, "kind", layer.label)] = layer
    return [_block(found, index, parts, activations.get(index, "relu")) for index, parts in sorted(blocks.items())]


def _block(found: Audit, index: int, parts: dict[str, Layer], activation: str) -> BlockNorms:
    attention = next(attentions(parts.values()), None)
    if attention is None or "W_1" not in parts or "W_2" not in parts:
        raise Unsupported(
            Refusal(
                "a proxy of BERT-like models",
                f"block {index} without",
                "an ungated feed-forward part in every block",
            )
        )
    tau = attention.normaliser.temperature or 1.0
    measured = found.measured

    def norm(key: str, scale: float = 1.0) -> Norm3:
        m = measured[key]
        spectrum = None if m.spectrum is None else tuple(s / scale for s in m.spectrum)
        return Norm3(_log((m.op or 0.0) / scale), _log((m.two_one or 0.0) / scale), spectrum, max(m.shape))

    values = "W_VO[{}]~" if f"W_VO[{index},0]~" in measured else "W_V[{}]"
    scores = "W_QK[{}]~" if f"W_QK[{index},0]~" in measured else "W_QK[{}]"
    heads = [f"{index},{head}" for head in range(attention.heads)]
    return BlockNorms(
        tuple(norm(values.format(head)) for head in heads),
        tuple(norm(scores.format(head), tau) for head in heads),
        norm(f"W_1[{index}]"),
        norm(f"W_2[{index}]"),
        ACTIVATION_LIPSCHITZ[activation],
    )


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def proxies(found: Audit) -> list[Proxy | Refusal]:
    """Both proxies, or why they do not apply."""
    try:
        blocks = block_norms(found)
    except Unsupported as error:
        return [error.refusal]
    out: list[Proxy | Refusal] = []
    for make in (edelman_proxy, spectrum_proxy):
        try:
            out.append(make(blocks))
        except Unsupported as error:
            out.append(error.refusal)
    return out
