"""ViT and DeiT: patches through one linear map, a class token, normalisation before each sublayer.

The class token is row 0. With an input row of zeros there, its embedding is the patch offset plus position 0; so
position 0 is read as (position 0 + class token - patch offset), and the model is exactly one without a class token.
DeiT's distillation token is row 1, likewise.
"""

from __future__ import annotations

from dataclasses import replace

from boundcalc.checkpoints.families.blocks import stack
from boundcalc.checkpoints.families.names import with_offsets
from boundcalc.checkpoints.families.table import Family

_LAYER, _LIVE = "encoder.layer.{b}.", "layers.{b}."
"""Newer releases of the library call the parts of a live module otherwise, and write files in the old names."""

VIT = Family(
    "vit",
    ("vit",),
    {"embeddings.cls_token": "class_token", "embeddings.position_embeddings": "positions"}
    | with_offsets(
        {
            "embeddings.patch_embeddings.projection": "W_patch.T",
            _LAYER + "layernorm_before": "norm_attention.gain",
            _LAYER + "attention.attention.query": "W_Q.T",
            _LAYER + "attention.attention.key": "W_K.T",
            _LAYER + "attention.attention.value": "W_V.T",
            _LAYER + "attention.output.dense": "W_O.T",
            _LAYER + "layernorm_after": "norm_ffn.gain",
            _LAYER + "intermediate.dense": "W_1.T",
            _LAYER + "output.dense": "W_2.T",
            _LIVE + "layernorm_before": "norm_attention.gain",
            _LIVE + "attention.q_proj": "W_Q.T",
            _LIVE + "attention.k_proj": "W_K.T",
            _LIVE + "attention.v_proj": "W_V.T",
            _LIVE + "attention.o_proj": "W_O.T",
            _LIVE + "layernorm_after": "norm_ffn.gain",
            _LIVE + "mlp.fc1": "W_1.T",
            _LIVE + "mlp.fc2": "W_2.T",
            "layernorm": "norm_final.gain",
            "pooler.dense": "W_pool.T",
            "classifier": "readout.T",
        }
    ),
    stack,
    {"embeddings.mask_token": "stands for masked patches in pre-training; no input has any"},
    prefixes=("vit.",),
    reads={
        "activation": ("hidden_act", "gelu"),
        "eps": ("layer_norm_eps", 1e-12),
        "heads": ("num_attention_heads", None),
        "pooler": ("pooler_act", "tanh"),
    },
    fixed={"first": True},
    neutral="encoder_stride|tie_word_embeddings|pooler_output_size",
    classes={"Model": ("!classifier.weight",), "ForImageClassification": ("classifier.weight", "!pooler.dense.weight")},
)
DEIT = replace(
    VIT,
    name="deit",
    model_types=("deit",),
    tensors={**VIT.tensors, "embeddings.distillation_token": "distillation_token"},
    prefixes=("deit.",),
    tokens=("class_token", "distillation_token"),
)
