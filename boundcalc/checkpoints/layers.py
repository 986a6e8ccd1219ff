"""NumPy as the array library of `layers.forward`: in float64, written from the definitions of the functions alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit, softmax

Rows = NDArray[np.float64]

ACTIVATIONS: Mapping[str, Callable[[Rows], Rows]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x * expit(x),
    "quick_gelu": lambda x: x * expit(1.702 * x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "tanh": np.tanh,
    "identity": lambda x: x,
}


def _layer_norm(x: Rows, eps: float) -> Rows:
    y = x - x.mean(-1, keepdims=True)
    return y / np.sqrt((y**2).mean(-1, keepdims=True) + eps)


def _affine(x: Rows, matrix: Rows, offset: Rows | None) -> Rows:
    return x @ matrix if offset is None else x @ matrix + offset[..., None, :]


NUMPY = SimpleNamespace(
    activations=ACTIVATIONS,
    affine=_affine,
    causal=lambda x: np.tri(x.shape[1], dtype=bool),
    concatenate=np.concatenate,
    einsum=partial(np.einsum, optimize=True),
    embedding=lambda tokens, table: table[tokens],
    layer_norm=_layer_norm,
    ones_like=np.ones_like,
    repeat_interleave=np.repeat,
    sigmoid=expit,
    softmax=softmax,
    sqrt=np.sqrt,
    tanh=np.tanh,
    where=np.where,
    zeros_like=np.zeros_like,
)
