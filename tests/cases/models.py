"""A small model of every family as its library saves it: its config.json, and its tensors in short
(brought/short.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boundcalc.setting import Architecture
from tests.cases.short import SmallModel


def _config(kind: str, cls: str, *parts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"model_type": kind, "architectures": [cls]}
    for part in (*parts, more):
        fields |= part
    return fields


_HEADS = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": 8}
_ENCODER = _HEADS | {"intermediate_size": 12, "vocab_size": 11, "max_position_embeddings": 6}
_DECODER = _ENCODER | {"num_key_value_heads": 2, "tie_word_embeddings": False}
_GPT = {"n_embd": 8, "n_head": 4, "n_layer": 2, "n_positions": 6, "vocab_size": 11}
_BLOOM = {"n_head": 4, "n_layer": 2, "hidden_size": 8, "vocab_size": 11, "seq_length": 6}
_LABELS = {"num_labels": 3}

_TABLES = """
embedding ^embeddings.word_embeddings.weight = V d
positions ^embeddings.position_embeddings.weight = T d
segments ^embeddings.token_type_embeddings.weight = 2 d
norm_embedding ^embeddings.LayerNorm d
"""
_NARROW = _TABLES.replace(" d", " e")
_POST = """
W_{Q,K,V} ^encoder.layer.{#}.attention.self.{query,key,value} d -> d
W_O ^encoder.layer.{#}.attention.output.dense d -> d
norm_{attention,ffn} ^encoder.layer.{#}.{attention.,}output.LayerNorm d
W_1 ^encoder.layer.{#}.intermediate.dense d -> f
W_2 ^encoder.layer.{#}.output.dense f -> d
"""
_CLASSIFIER = """
W_pool classifier.dense d -> d
readout classifier.out_proj d -> C
"""
_PATCHES = """
class_token ^embeddings.cls_token = 1 1 d
W_patch ^embeddings.patch_embeddings.projection.weight = d 3 2 2
b_patch ^embeddings.patch_embeddings.projection.bias = d
W_{Q,K,V} ^encoder.layer.{#}.attention.attention.{query,key,value} d -> d
W_O ^encoder.layer.{#}.attention.output.dense d -> d
norm_{attention,ffn} ^encoder.layer.{#}.layernorm_{before,after} d
W_1 ^encoder.layer.{#}.intermediate.dense d -> f
W_2 ^encoder.layer.{#}.output.dense f -> d
norm_final ^layernorm d
readout classifier d -> C
"""
_IMAGES = _HEADS | {"intermediate_size": 12, "image_size": 4, "patch_size": 2, "num_channels": 3} | _LABELS
_GATED = """
embedding ^embed_tokens.weight = V d
W_Q ^layers.{#}.self_attn.q_proj d -> q bare
W_{K,V} ^layers.{#}.self_attn.{k,v}_proj d -> k bare
W_O ^layers.{#}.self_attn.o_proj q -> d bare
W_{1,3} ^layers.{#}.mlp.{gate,up}_proj d -> f bare
W_2 ^layers.{#}.mlp.down_proj f -> d bare
norm_final ^norm d bare
"""
_BEFORE = "norm_{attention,ffn} ^layers.{#}.{input,post_attention}_layernorm d bare\n"
_AFTER = "norm_{attention,ffn}_out ^layers.{#}.post_{attention,feedforward}_layernorm d bare\n"
_UNTIED = "readout lm_head d -> V bare\n"
_WIDER = {"q": 12, "k": 6}
"""Heads of width 3."""


def _gated(kind: str, cls: str, more: str = _BEFORE + _UNTIED, wide: bool = False, **config: Any) -> SmallModel:
    wider = {"head_dim": 3} if wide else {}
    fields = _config(kind, f"{cls}ForCausalLM", _DECODER, wider, config)
    return SmallModel(fields, _GATED + more, "model.", _WIDER if wide else {}, rotated=True)


_TEXT_TOWER = """
        embedding ^embeddings.token_embedding.weight = V d
        positions ^embeddings.position_embedding.weight = T d
        W_{Q,K,V,O} ^encoder.layers.{#}.self_attn.{q,k,v,out}_proj d -> d
        norm_{attention,ffn} ^encoder.layers.{#}.layer_norm{1,2} d
        W_1 ^encoder.layers.{#}.mlp.fc1 d -> f
        W_2 ^encoder.layers.{#}.mlp.fc2 f -> d
        norm_final ^final_layer_norm d
"""
MODELS: Mapping[str, SmallModel] = {
    "bert": SmallModel(
        _config("bert", "BertForSequenceClassification", _ENCODER, _LABELS),
        _TABLES + _POST + "W_pool ^pooler.dense d -> d\nreadout classifier d -> C",
        "bert.",
    ),
    "roberta": SmallModel(
        _config("roberta", "RobertaForSequenceClassification", _ENCODER, _LABELS, type_vocab_size=2, pad_token_id=1),
        _TABLES + _POST + _CLASSIFIER,
        "roberta.",
    ),
    "distilbert": SmallModel(
        _config(
            "distilbert",
            "DistilBertForSequenceClassification",
            {"dim": 8, "n_heads": 4, "n_layers": 2, "hidden_dim": 12, "vocab_size": 11, "max_position_embeddings": 6},
            _LABELS,
        ),
        """
        embedding ^embeddings.word_embeddings.weight = V d
        positions ^embeddings.position_embeddings.weight = T d
        norm_embedding ^embeddings.LayerNorm d
        W_{Q,K,V,O} ^transformer.layer.{#}.attention.{q,k,v,out}_lin d -> d
        norm_{attention,ffn} ^transformer.layer.{#}.{sa,output}_layer_norm d
        W_1 ^transformer.layer.{#}.ffn.lin1 d -> f
        W_2 ^transformer.layer.{#}.ffn.lin2 f -> d
        W_pool pre_classifier d -> d
        readout classifier d -> C
        """,
        "distilbert.",
    ),
    "electra": SmallModel(
        _config("electra", "ElectraForSequenceClassification", _ENCODER, _LABELS, embedding_size=5),
        _NARROW + "W_in ^embeddings_project e -> d" + _POST + _CLASSIFIER,
        "electra.",
        {"e": 5},
    ),
    "modernbert": SmallModel(
        _config(
            "modernbert",
            "ModernBertForSequenceClassification",
            _ENCODER,
            _LABELS,
            {"pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2, "classifier_pooling": "mean"},
        ),
        """
        embedding ^embeddings.tok_embeddings.weight = V d
        norm_embedding ^embeddings.norm d bare
        norm_attention.gain[1] ^layers.1.attn_norm.weight = d
        W_QKV ^layers.{#}.attn.Wqkv d -> 3d bare
        W_O ^layers.{#}.attn.Wo d -> d bare
        norm_ffn ^layers.{#}.mlp_norm d bare
        W_13 ^layers.{#}.mlp.Wi d -> 2f bare
        W_2 ^layers.{#}.mlp.Wo f -> d bare
        norm_final ^final_norm d bare
        W_transform head.dense d -> d bare
        norm_transform head.norm d bare
        readout classifier d -> C
        """,
        "model.",
        rotated=True,
    ),
    "t5": SmallModel(
        _config(
            "t5",
            "T5ForTokenClassification",
            {"d_model": 8, "d_kv": 3, "d_ff": 12, "num_layers": 2, "num_heads": 4, "vocab_size": 11, "n_positions": 6},
            {"relative_attention_num_buckets": 6, "relative_attention_max_distance": 8},
            {"is_encoder_decoder": False, "feed_forward_proj": "gated-gelu"},
            _LABELS,
        ),
        """
        embedding ^shared.weight = V d
        score_offsets ^encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight = 6 4
        W_{Q,K,V} ^encoder.block.{#}.layer.0.SelfAttention.{q,k,v} d -> q bare
        W_O ^encoder.block.{#}.layer.0.SelfAttention.o q -> d bare
        norm_{attention,ffn} ^encoder.block.{#}.layer.{0,1}.layer_norm d bare
        W_{1,3} ^encoder.block.{#}.layer.1.DenseReluDense.wi_{0,1} d -> f bare
        W_2 ^encoder.block.{#}.layer.1.DenseReluDense.wo f -> d bare
        norm_final ^encoder.final_layer_norm d bare
        readout classifier d -> C
        """,
        "transformer.",
        {"q": 12},
    ),
    "gpt2": SmallModel(
        _config("gpt2", "GPT2LMHeadModel", _GPT, n_inner=12),
        """
        embedding ^wte.weight = V d
        positions ^wpe.weight = T d
        W_QKV ^h.{#}.attn.c_attn d => 3d
        W_O ^h.{#}.attn.c_proj d => d
        W_1 ^h.{#}.mlp.c_fc d => f
        W_2 ^h.{#}.mlp.c_proj f => d
        norm_{attention,ffn} ^h.{#}.ln_{1,2} d
        norm_final ^ln_f d
        """,
        "transformer.",
    ),
    "gptj": SmallModel(
        _config("gptj", "GPTJForCausalLM", _GPT, n_inner=12, rotary_dim=2, tie_word_embeddings=False),
        """
        embedding ^wte.weight = V d
        W_{Q,K,V,O} ^h.{#}.attn.{q,k,v,out}_proj d -> d bare
        W_1 ^h.{#}.mlp.fc_in d -> f
        W_2 ^h.{#}.mlp.fc_out f -> d
        norm_attention ^h.{#}.ln_1 d
        norm_final ^ln_f d
        readout lm_head d -> V
        """,
        "transformer.",
        rotated=True,
    ),
    "opt": SmallModel(
        _config(
            "opt",
            "OPTForCausalLM",
            _HEADS,
            {"ffn_dim": 12, "vocab_size": 11, "max_position_embeddings": 6, "word_embed_proj_dim": 5},
            {"do_layer_norm_before": False, "pad_token_id": 1},
        ),
        """
        embedding ^embed_tokens.weight = V e
        positions ^embed_positions.weight = T+2 d
        W_in ^project_in e -> d bare
        W_out ^project_out d -> e bare
        W_{Q,K,V,O} ^layers.{#}.self_attn.{q,k,v,out}_proj d -> d
        norm_{attention,ffn} ^layers.{#}.{self_attn,final}_layer_norm d
        W_1 ^layers.{#}.fc1 d -> f
        W_2 ^layers.{#}.fc2 f -> d
        """,
        "model.decoder.",
        {"e": 5},
    ),
    "bloom": SmallModel(
        _config("bloom", "BloomForCausalLM", _BLOOM),
        """
        embedding ^word_embeddings.weight = V d
        norm_embedding ^word_embeddings_layernorm d
        norm_{attention,ffn} ^h.{#}.{input,post_attention}_layernorm d
        W_QKV ^h.{#}.self_attention.query_key_value d -> 3d
        W_O ^h.{#}.self_attention.dense d -> d
        W_1 ^h.{#}.mlp.dense_h_to_4h d -> 4d
        W_2 ^h.{#}.mlp.dense_4h_to_h 4d -> d
        norm_final ^ln_f d
        """,
        "transformer.",
        groups=4,
    ),
    "gpt_neox": SmallModel(
        _config("gpt_neox", "GPTNeoXForCausalLM", _ENCODER, rotary_pct=1.0, tie_word_embeddings=False),
        """
        embedding ^embed_in.weight = V d
        norm_{attention,ffn} ^layers.{#}.{input,post_attention}_layernorm d
        W_QKV ^layers.{#}.attention.query_key_value d -> 3d
        W_O ^layers.{#}.attention.dense d -> d
        W_1 ^layers.{#}.mlp.dense_h_to_4h d -> f
        W_2 ^layers.{#}.mlp.dense_4h_to_h f -> d
        norm_final ^final_layer_norm d
        readout embed_out d -> V bare
        """,
        "gpt_neox.",
        rotated=True,
        groups=4,
    ),
    "phi": SmallModel(
        _config("phi", "PhiForCausalLM", _DECODER, partial_rotary_factor=1.0),
        """
        embedding ^embed_tokens.weight = V d
        norm_attention ^layers.{#}.input_layernorm d
        W_{Q,O} ^layers.{#}.self_attn.{q_proj,dense} d -> d
        W_{K,V} ^layers.{#}.self_attn.{k,v}_proj d -> k
        W_1 ^layers.{#}.mlp.fc1 d -> f
        W_2 ^layers.{#}.mlp.fc2 f -> d
        norm_final ^final_layernorm d
        readout lm_head d -> V
        """,
        "model.",
        rotated=True,
    ),
    "falcon": SmallModel(
        _config(
            "falcon",
            "FalconForCausalLM",
            _HEADS,
            {"ffn_hidden_size": 12, "vocab_size": 11, "max_position_embeddings": 6},
            {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 2},
        ),
        """
        embedding ^word_embeddings.weight = V d
        norm_{attention,ffn} ^h.{#}.ln_{attn,mlp} d
        W_QKV ^h.{#}.self_attention.query_key_value d -> 2d bare
        W_O ^h.{#}.self_attention.dense d -> d bare
        W_1 ^h.{#}.mlp.dense_h_to_4h d -> f bare
        W_2 ^h.{#}.mlp.dense_4h_to_h f -> d bare
        norm_final ^ln_f d
        """,
        "transformer.",
        rotated=True,
        groups=2,
    ),
    "llama": _gated(
        "qwen2",
        "Qwen2",
        _BEFORE
        + _UNTIED
        + """
        b_Q ^layers.{#}.self_attn.q_proj.bias = q
        b_{K,V} ^layers.{#}.self_attn.{k,v}_proj.bias = k
        """,
    ),
    "qwen3": _gated(
        "qwen3", "Qwen3", _BEFORE + _UNTIED + "norm_{Q,K} ^layers.{#}.self_attn.{q,k}_norm 3 bare", wide=True
    ),
    "olmo2": _gated(
        "olmo2",
        "Olmo2",
        _AFTER
        + _UNTIED
        + """
        norm_Q ^layers.{#}.self_attn.q_norm q bare
        norm_K ^layers.{#}.self_attn.k_norm k bare
        """,
    ),
    "granite": _gated(
        "granite",
        "Granite",
        embedding_multiplier=3.0,
        residual_multiplier=0.3,
        logits_scaling=2.5,
        attention_multiplier=0.7,
    ),
    "gemma": _gated("gemma", "Gemma", _BEFORE, wide=True, tie_word_embeddings=True),
    "gemma2": _gated(
        "gemma2",
        "Gemma2",
        _AFTER + "norm_{attention,ffn} ^layers.{#}.{input,pre_feedforward}_layernorm d bare",
        wide=True,
        tie_word_embeddings=True,
        query_pre_attn_scalar=3,
    ),
    "phi3": SmallModel(
        _config("phi3", "Phi3ForCausalLM", _DECODER, num_key_value_heads=4, pad_token_id=0),
        """
        embedding ^embed_tokens.weight = V d
        W_QKV ^layers.{#}.self_attn.qkv_proj d -> 3d bare
        W_O ^layers.{#}.self_attn.o_proj d -> d bare
        W_13 ^layers.{#}.mlp.gate_up_proj d -> 2f bare
        W_2 ^layers.{#}.mlp.down_proj f -> d bare
        norm_final ^norm d bare
        """
        + _BEFORE
        + _UNTIED,
        "model.",
        rotated=True,
    ),
    "smollm3": _gated("smollm3", "SmolLM3", no_rope_layers=[1, 0], pad_token_id=0),
    "gemma3": _gated(
        "gemma3_text",
        "Gemma3",
        _AFTER
        + "norm_{attention,ffn} ^layers.{#}.{input,pre_feedforward}_layernorm d bare\n"
        + "norm_{Q,K} ^layers.{#}.self_attn.{q,k}_norm 3 bare",
        wide=True,
        tie_word_embeddings=True,
        query_pre_attn_scalar=3,
    ),
    "mpnet": SmallModel(
        _config("mpnet", "MPNetForSequenceClassification", _ENCODER, _LABELS, pad_token_id=1),
        """
        embedding ^embeddings.word_embeddings.weight = V d
        positions ^embeddings.position_embeddings.weight = T d
        norm_embedding ^embeddings.LayerNorm d
        score_offsets ^encoder.relative_attention_bias.weight = 32 4
        W_{Q,K,V,O} ^encoder.layer.{#}.attention.attn.{q,k,v,o} d -> d
        norm_{attention,ffn} ^encoder.layer.{#}.{attention.,output.}LayerNorm d
        W_1 ^encoder.layer.{#}.intermediate.dense d -> f
        W_2 ^encoder.layer.{#}.output.dense f -> d
        """
        + _CLASSIFIER,
        "mpnet.",
    ),
    "clip_vision": SmallModel(
        _config("clip_vision_model", "CLIPVisionModelWithProjection", _IMAGES, projection_dim=3),
        """
        class_token ^embeddings.class_embedding = d
        W_patch ^embeddings.patch_embedding.weight = d 3 2 2
        positions ^embeddings.position_embedding.weight = 5 d
        norm_embedding ^pre_layrnorm d
        W_{Q,K,V,O} ^encoder.layers.{#}.self_attn.{q,k,v,out}_proj d -> d
        norm_{attention,ffn} ^encoder.layers.{#}.layer_norm{1,2} d
        W_1 ^encoder.layers.{#}.mlp.fc1 d -> f
        W_2 ^encoder.layers.{#}.mlp.fc2 f -> d
        norm_final ^post_layernorm d
        readout visual_projection d -> C bare
        """,
        "vision_model.",
    ),
    "siglip_text": SmallModel(
        _config("siglip_text_model", "SiglipTextModel", _ENCODER, projection_size=3, pad_token_id=1)
        | {"bos_token_id": 2, "eos_token_id": 3},
        _TEXT_TOWER + "readout ^head d -> C",
    ),
    "clip_text": SmallModel(
        _config("clip_text_model", "CLIPTextModelWithProjection", _ENCODER, projection_dim=3, pad_token_id=1)
        | {"bos_token_id": 0, "eos_token_id": 3},
        _TEXT_TOWER + "readout text_projection d -> C bare",
        "text_model.",
    ),
    "dinov2": SmallModel(
        _config(
            "dinov2",
            "Dinov2Model",
            _HEADS,
            image_size=4,
            patch_size=2,
            num_channels=3,
            mlp_ratio=2,
        ),
        """
        class_token ^embeddings.cls_token = 1 1 d
        W_patch ^embeddings.patch_embeddings.projection.weight = d 3 2 2
        b_patch ^embeddings.patch_embeddings.projection.bias = d
        positions ^embeddings.position_embeddings = 1 5 d
        mask_token ^embeddings.mask_token = 1 d
        W_{Q,K,V} ^encoder.layer.{#}.attention.attention.{query,key,value} d -> d
        W_O ^encoder.layer.{#}.attention.output.dense d -> d
        outputs_of.W_O ^encoder.layer.{#}.layer_scale1.lambda1 = d
        outputs_of.W_2 ^encoder.layer.{#}.layer_scale2.lambda1 = d
        norm_{attention,ffn} ^encoder.layer.{#}.norm{1,2} d
        W_1 ^encoder.layer.{#}.mlp.fc1 d -> 2d
        W_2 ^encoder.layer.{#}.mlp.fc2 2d -> d
        norm_final ^layernorm d
        """,
    ),
    "vit": SmallModel(
        _config("vit", "ViTForImageClassification", _IMAGES),
        _PATCHES + "positions ^embeddings.position_embeddings = 1 5 d",
        "vit.",
    ),
    "deit": SmallModel(
        _config("deit", "DeiTForImageClassification", _IMAGES),
        _PATCHES
        + "positions ^embeddings.position_embeddings = 1 6 d\n"
        + "distillation_token ^embeddings.distillation_token = 1 1 d",
        "deit.",
    ),
    "boundcalc": SmallModel(
        {
            "architecture": Architecture(
                depth=2, d=6, heads=2, seq_len=5, d_head=3, vocabulary=4, positions="fixed", position_radius=1
            ).to_json()
        },
        """
        embedding embedding = 4 6
        positions positions = 5 6
        W_{Q,K} W_{Q,K}[{#}] = 2 6 3
        W_V W_V[{#}] = 2 6 6
        W_1 W_1[{#}] = 6 6
        readout readout = 6 1
        """,
    ),
}
"""By the name of their family."""
