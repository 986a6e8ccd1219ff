"""G13: how many numbers a network stores, counted layer by layer."""

from collections.abc import Iterable

from .layers import Layer
from .numbers import MP, Real, num
from .setting import Setting


def log_networks(setting: Setting) -> Real:
    """Log of how many networks there are of weights with so many bits, at most."""
    return num(numbers(setting.stages, setting.seq_len)) * num(setting.bits) * MP.log(2)


def numbers(layers: Iterable[Layer], seq_len: int) -> int:
    """What layers store."""
    return sum(_of(layer, seq_len) for layer in layers)


def _of(layer: Layer, seq_len: int) -> int:
    match layer.label:
        case "residual":
            return sum(numbers(branch, seq_len) for branch in (layer.branch, *layer.beside))
        case "linear":
            return layer.d_out * (layer.d_in + (layer.bias is not None))
        case "layernorm":
            return layer.d * (layer.gain + layer.offset)
        case "embedding":
            return layer.d * (layer.vocabulary + layer.segments + (seq_len if layer.positions == "learned" else 0))
        case "gated":
            return 3 * layer.d * layer.d_ff + (2 * layer.d_ff + layer.d if layer.bias else 0)
        case "experts":
            return layer.experts * (layer.d + 3 * layer.d * layer.d_ff)
        case "hidden":
            return layer.d_ff * (layer.d + 1 + (layer.bias is not None))
        case "lookup":
            return (layer.vocabulary + seq_len) * layer.heads * (1 + layer.d_value)
        case "attention":
            values = layer.groups * layer.out * (layer.d + layer.v_bias)
            return _queries_and_keys(layer) + values + layer.heads * (layer.buckets or 0)
    return 0


def _queries_and_keys(layer: Layer) -> int:
    """Offsets of keys are stored though a softmax forgets them."""
    d, heads, shared = layer.d, layer.heads, layer.groups
    if layer.qk == "fixed":
        return heads * d
    if layer.d_head is None and layer.qk == "joint":  # one matrix a head, bordered by the offsets
        plain = heads * (d + layer.qk_bias) * (d + (layer.qk_bias and not layer.keys_alone))
        return plain + (shared * d if layer.qk_bias and layer.keys_alone else 0)
    width = layer.d_head or d
    gains = {"none": 0, "head": 2 * width, "width": (heads + shared) * width}[layer.qk_norm]
    return (heads + shared) * width * (d + layer.qk_bias) + gains
