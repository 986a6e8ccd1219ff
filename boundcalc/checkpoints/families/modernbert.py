"""ModernBERT: an encoder with rotary positions, windows and gated parts; its first attention reads the rows as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boundcalc.checkpoints.families.blocks import Shape, read_out, sizes_of, stacked
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    STACK,
    START,
    TIED,
    WINDOW,
    ConfigField,
    activation,
    agrees,
    every,
    neutral,
    there,
    used,
)
from boundcalc.checkpoints.families.names import with_offsets
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture, Layer, Pool
from boundcalc.setting.validate import choice


def _architecture(model: Model) -> Architecture:
    shape = Shape(
        **sizes_of(model),
        activation=activation(model.setting("hidden_activation")),
        eps=model.number("norm_eps"),
        first=True,
        gated=True,
        rope=True,
    )
    return stacked(model, shape, "max_position_embeddings", normed=True, tail=_read_out(model, shape.d, shape.eps))


def _read_out(model: Model, d: int, eps: float) -> tuple[list[Layer], int]:
    """Its heads normalise what the activation makes; a classifier may read the mean of all rows."""
    act = activation(model.setting("classifier_activation"))
    pooling = choice("classifier_pooling", model.setting("classifier_pooling"), ("cls", "mean"))
    tail, classes = read_out(model, d, transform=act, eps=eps)
    if model.head == "ForSequenceClassification" and pooling == "mean":
        tail[0] = Pool("mean")
    return tail, classes


def _plain(given: object) -> bool:
    """Tables of rotary positions, one per kind of attention, that only turn."""
    if not isinstance(given, Mapping):
        return False
    tables: list[Any] = [table for table in given.values() if isinstance(table, Mapping)]
    kinds = {table.get("rope_type", table.get("type", "default")) for table in tables} | {
        given.get("rope_type", "default")
    }
    return kinds <= {"default", "linear", "dynamic", "llama3"}


_L = "layers.{b}."
MODERNBERT = Family(
    "modernbert",
    ("modernbert",),
    {
        "embeddings.tok_embeddings.weight": "embedding",
        **with_offsets(
            {
                "embeddings.norm": "norm_embedding.gain",
                _L + "attn_norm": "norm_attention.gain",
                _L + "attn.Wqkv": "W_QKV.T",
                _L + "attn.Wo": "W_O.T",
                _L + "mlp_norm": "norm_ffn.gain",
                _L + "mlp.Wi": "W_13.T",
                _L + "mlp.Wo": "W_2.T",
                "final_norm": "norm_final.gain",
                "head.dense": "W_transform.T",
                "head.norm": "norm_transform.gain",
                "decoder": "readout.T",
                "classifier": "readout.T",
            }
        ),
    },
    _architecture,
    prefixes=("model.",),
    fields={
        "hidden_activation": used("activation of the gated part", "gelu"),
        "classifier_activation": used("activation of the head", "gelu"),
        "classifier_pooling": used("which rows a classifier reads", "cls"),
        "norm_eps": used("epsilon of every normalisation", 1e-5),
        "num_attention_heads": used("attention heads"),
        "max_position_embeddings": used("T, unless it is given", 8192),
        "tie_word_embeddings": TIED,
        "rope_parameters": ConfigField("only", "a factor of its rotations is not supported", permitted=_plain),
        "rope_scaling": ConfigField("only", "a factor of its rotations is not supported", permitted=_plain),
        **every("global_rope_theta local_rope_theta rope_theta", neutral("angles of rotations, which keep norms (S4)")),
        "layer_types": WINDOW["layer_types"],
        **every(
            "local_attention sliding_window global_attn_every_n_layers",
            neutral("which keys a query sees is a mask fixed in advance: masks may be any (L7)"),
        ),
        "norm_bias": agrees("whether normalisations have offsets", there("norm_final.offset", None)),
        "attention_bias": agrees("whether maps of attention have offsets", there("b_QKV")),
        "mlp_bias": agrees("whether the gated part has offsets", there("b_13")),
        "decoder_bias": agrees(
            "whether the read-out of a language model has an offset",
            lambda model: model.has("b_readout") if model.head == "ForMaskedLM" else None,
        ),
        "classifier_bias": agrees(
            "whether the head has an offset",
            lambda model: model.has("b_transform") if model.has("W_transform") else None,
        ),
        **STACK,
        **every("attention_dropout embedding_dropout mlp_dropout classifier_dropout", DROPOUT),
        "initializer_cutoff_factor": START,
        **every(
            "deterministic_flash_attn reference_compile repad_logits_with_grad",
            neutral("the same sums in another order"),
        ),
        **every("sparse_prediction sparse_pred_ignore_index", neutral("which rows the loss of training reads")),
        "position_embedding_type": neutral("no model of the library reads it"),
    },
    classes={
        "Model": ("!decoder.bias", "!classifier.weight"),
        "ForMaskedLM": ("head.dense.weight", "!classifier.weight"),
        "ForSequenceClassification": ("classifier.weight", "head.dense.weight"),
        "ForTokenClassification": ("classifier.weight", "head.dense.weight"),
    },
    halves={"W_13": ("W_1", "W_3"), "b_13": ("b_1", "b_3")},
    bare_sublayers=True,
)
