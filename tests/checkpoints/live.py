"""Small models of the transformers library, made from configs, with weights as after training."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    hf = pytest.importorskip("transformers")

SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "vocab_size": 31,
    "max_position_embeddings": 12,
}
DISTIL: dict[str, Any] = {
    "dim": 16,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 24,
    "vocab_size": 31,
    "max_position_embeddings": 12,
}
GPT2: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 12, "vocab_size": 31, "pad_token_id": 0}
VIT: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "image_size": 8,
    "patch_size": 4,
}
GROUPED = SMALL | {"num_key_value_heads": 2}


def seeded(make: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():  # biases start at 0, gains at 1: weights as after training, that hide nothing
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model
