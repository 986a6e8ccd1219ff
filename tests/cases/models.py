"""Small models as their library saves them, for tests without that library: a config.json, and tensors in short."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SIZES = {"d": 8, "f": 12, "k": 4, "V": 11, "T": 6, "C": 3}
"""Widths of rows, of hidden rows, of all keys; words, positions, logits."""


@dataclass(frozen=True)
class SmallModel:
    """A model in short.

    Attributes:
        config: its config.json, with all its sizes.
        tensors: a module or tensor per line. "d -> f" is a linear map with an offset, stored as its transpose
            (torch.nn.Linear); "d => f" is stored as it is (GPT-2's Conv1D); "d" is a normalisation; each without its
            offset where the line ends with "bare"; "= V d" is a tensor of this name and shape. "{a,b}" stands for
            either, "{#}" for the number of every block, "^" for `prefix`.
        prefix: what most names begin with.
    """

    config: Mapping[str, Any]
    tensors: str
    prefix: str = ""

    def shapes(self, depth: int = 2, **sizes: int) -> dict[str, tuple[int, ...]]:
        """Of all tensors, by name, with so many blocks and other sizes than usual."""
        shapes: dict[str, tuple[int, ...]] = {}
        for written, *what in filter(None, map(str.split, self.tensors.splitlines())):
            letters = (
                re.fullmatch(r"(\d*)([a-zA-Z]?)", word) for word in what if word not in ("=", "->", "=>", "bare")
            )
            sides = tuple(int(m[1] or 1) * ({**_SIZES, **sizes}[m[2]] if m[2] else 1) for m in letters if m)
            for name in _either(written.replace("^", self.prefix), depth):
                if what[0] == "=":
                    shapes[name] = sides
                    continue
                shapes[f"{name}.weight"] = sides[::-1] if "->" in what else sides
                if what[-1] != "bare":
                    shapes[f"{name}.bias"] = sides[-1:]
        return shapes

    def drawn(self, seed: int, depth: int = 2, **sizes: int) -> dict[str, NDArray[Any]]:
        """Random numbers as after training; gains are around 1."""
        rng = np.random.default_rng(seed)
        return {
            name: ((name.endswith("weight") and len(shape) == 1) + 0.3 * rng.standard_normal(shape)).astype(np.float32)
            for name, shape in self.shapes(depth, **sizes).items()
        }


def _either(written: str, depth: int) -> Iterator[str]:
    """All that braces stand for."""
    choice = re.search(r"\{([^}]*)\}", written)
    if choice is None:
        yield written
        return
    for part in map(str, range(depth)) if choice[1] == "#" else choice[1].split(","):
        yield from _either(written.replace(choice[0], part, 1), depth)


def _config(kind: str, cls: str, *parts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"model_type": kind, "architectures": [cls]}
    for part in (*parts, more):
        fields |= part
    return fields


_HEADS = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": 8}
_ENCODER = _HEADS | {"intermediate_size": 12, "vocab_size": 11, "max_position_embeddings": 6}
_IMAGES = _HEADS | {"intermediate_size": 12, "image_size": 4, "patch_size": 2, "num_channels": 3}
MODELS: Mapping[str, SmallModel] = {
    "bert": SmallModel(
        _config("bert", "BertForSequenceClassification", _ENCODER, num_labels=3),
        """
        ^embeddings.word_embeddings.weight = V d
        ^embeddings.position_embeddings.weight = T d
        ^embeddings.token_type_embeddings.weight = 2 d
        ^embeddings.LayerNorm d
        ^encoder.layer.{#}.attention.self.{query,key,value} d -> d
        ^encoder.layer.{#}.attention.output.dense d -> d
        ^encoder.layer.{#}.{attention.,}output.LayerNorm d
        ^encoder.layer.{#}.intermediate.dense d -> f
        ^encoder.layer.{#}.output.dense f -> d
        ^pooler.dense d -> d
        classifier d -> C
        """,
        "bert.",
    ),
    "gpt2": SmallModel(
        _config("gpt2", "GPT2LMHeadModel", n_embd=8, n_head=4, n_layer=2, n_positions=6, vocab_size=11, n_inner=12),
        """
        ^wte.weight = V d
        ^wpe.weight = T d
        ^h.{#}.attn.c_attn d => 3d
        ^h.{#}.attn.c_proj d => d
        ^h.{#}.mlp.c_fc d => f
        ^h.{#}.mlp.c_proj f => d
        ^h.{#}.ln_{1,2} d
        ^ln_f d
        """,
        "transformer.",
    ),
    "llama": SmallModel(
        _config("qwen2", "Qwen2ForCausalLM", _ENCODER, num_key_value_heads=2, tie_word_embeddings=False),
        """
        ^embed_tokens.weight = V d
        ^layers.{#}.self_attn.q_proj d -> d
        ^layers.{#}.self_attn.{k,v}_proj d -> k
        ^layers.{#}.self_attn.o_proj d -> d bare
        ^layers.{#}.mlp.{gate,up}_proj d -> f bare
        ^layers.{#}.mlp.down_proj f -> d bare
        ^norm d bare
        ^layers.{#}.{input,post_attention}_layernorm d bare
        lm_head d -> V bare
        """,
        "model.",
    ),
    "vit": SmallModel(
        _config("vit", "ViTForImageClassification", _IMAGES, num_labels=3),
        """
        ^embeddings.cls_token = 1 1 d
        ^embeddings.patch_embeddings.projection.weight = d 3 2 2
        ^embeddings.patch_embeddings.projection.bias = d
        ^encoder.layer.{#}.attention.attention.{query,key,value} d -> d
        ^encoder.layer.{#}.attention.output.dense d -> d
        ^encoder.layer.{#}.layernorm_{before,after} d
        ^encoder.layer.{#}.intermediate.dense d -> f
        ^encoder.layer.{#}.output.dense f -> d
        ^layernorm d
        classifier d -> C
        ^embeddings.position_embeddings = 1 5 d
        """,
        "vit.",
    ),
}
"""By the name of their family."""
