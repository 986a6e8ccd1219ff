"""G13: how many numbers a network stores, counted layer by layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from boundcalc.proof.second.numbers import MP, Real, demand, num, unknown

_MOST_BITS = 128


def log_networks(architecture: Any) -> Real:
    """Log of how many networks there are of weights with so many bits, at most."""
    bits = architecture.bits
    demand(bits is not None, "nobody said how many bits a weight has")
    demand(isinstance(bits, int) and 1 <= bits <= _MOST_BITS, "a weight has from 1 to 128 bits")
    return num(_stored(architecture.stages, architecture.seq_len)) * num(bits) * MP.log(2)


def _stored(layers: Iterable[Any], seq_len: int) -> int:
    return sum(_of(layer, seq_len) for layer in layers)


def _of(layer: Any, seq_len: int) -> int:
    """The numbers of one layer and of what is inside it."""
    kind = type(layer).__name__
    if kind in ("Ball", "SoftCap", "Activation", "Pool"):
        return 0
    if kind == "Residual":
        return sum(_stored(branch, seq_len) for branch in (layer.branch, *layer.beside))
    if kind == "Linear":
        return layer.d_out * (layer.d_in + (layer.bias is not None))
    if kind == "LayerNorm":
        return layer.d * (int(layer.gain) + int(layer.offset))
    if kind == "Embedding":
        learned = seq_len if layer.positions == "learned" else 0
        return layer.d * (layer.vocabulary + layer.segments + learned)
    if kind == "GatedFeedForward":
        return 3 * layer.d * layer.d_ff + (2 * layer.d_ff + layer.d if layer.bias else 0)
    if kind == "Experts":
        return layer.experts * (layer.d + 3 * layer.d * layer.d_ff)
    if kind == "Hidden":
        return layer.d_ff * (layer.d + 1 + (layer.bias is not None))
    if kind == "Lookup":
        return (layer.vocabulary + seq_len) * layer.heads * (1 + layer.d_value)
    if kind == "Attention":
        return _queries_and_keys(layer) + _values(layer) + layer.heads * (layer.buckets or 0)
    raise unknown("layer", kind)


def _queries_and_keys(layer: Any) -> int:
    d, heads, shared = layer.d, layer.heads, layer.kv_heads or layer.heads
    if layer.qk == "fixed":
        return heads * d
    if layer.d_head is None and layer.qk == "joint":  # one matrix a head, bordered by the offsets
        softmax = layer.normaliser.name == "softmax" and layer.cap is None
        plain = heads * (d + layer.qk_bias) * (d + (layer.qk_bias and not softmax))
        return plain + (shared * d if layer.qk_bias and softmax else 0)
    width = layer.d_head or d
    gains = {"none": 0, "head": 2 * width, "width": (heads + shared) * width}[layer.qk_norm]
    return (heads + shared) * width * (d + layer.qk_bias) + gains


def _values(layer: Any) -> int:
    return (layer.kv_heads or layer.heads) * (layer.d_value or layer.d) * (layer.d + layer.v_bias)
