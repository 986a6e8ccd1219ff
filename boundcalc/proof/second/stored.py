"""G13: how many numbers a network stores."""

from .layers import flat
from .numbers import MP, Real, num
from .setting import Setting, weights_of


def log_networks(setting: Setting) -> Real:
    """Log of how many networks there are of weights with so many bits, at most."""
    return num(numbers(setting)) * num(setting.bits) * MP.log(2)


def numbers(setting: Setting) -> int:
    """What its layers store; offsets of keys too, though a softmax forgets them."""
    found = weights_of(setting.stages, setting.seq_len)
    total = sum(each.size for weight in found for each in weight.factors or (weight,))
    for layer in flat(setting.stages):
        if layer.label == "attention" and layer.qk == "joint" and layer.qk_bias and layer.keys_alone:
            total += layer.groups * (layer.d_head or layer.d)
    return total
