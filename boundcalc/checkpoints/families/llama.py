"""Llama, Mistral and Qwen2: RMSNorm first, rotary positions, grouped queries, a gated feed-forward part."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, tables
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture, Layer


def _architecture(model: Model) -> Architecture:
    d = model.shape("embedding")[1]
    heads = model.heads
    shape = Shape(
        d=d,
        heads=heads,
        d_head=model.head_width(model.shape("W_Q", 0)[1]),
        d_ff=model.shape("W_1", 0)[1],
        activation=activation(model.setting("hidden_act", default="silu")),
        eps=model.number("rms_norm_eps", default=1e-6),
        norm="rmsnorm",
        first=True,
        kv_heads=model.whole("num_key_value_heads", default=heads),
        gated=True,
        rope=True,
        causal=True,
    )
    front, seq_len = tables(model, d, model.whole("max_position_embeddings", default=2048))
    layers: list[Layer] = [front]
    for index in range(model.depth):
        layers += block(model, shape, index)
    layers.append(normalisation(model, "norm_final", shape))
    tail, classes = read_out(model, d)
    return assemble(layers + tail, seq_len, classes)


_L = "layers.{b}."
LLAMA = Family(
    "llama",
    ("llama", "mistral", "qwen2"),
    {
        "embed_tokens.weight": "embedding",
        _L + "input_layernorm.weight": "norm_attention.gain",
        _L + "self_attn.q_proj.weight": "W_Q.T",
        _L + "self_attn.q_proj.bias": "b_Q",
        _L + "self_attn.k_proj.weight": "W_K.T",
        _L + "self_attn.k_proj.bias": "b_K",
        _L + "self_attn.v_proj.weight": "W_V.T",
        _L + "self_attn.v_proj.bias": "b_V",
        _L + "self_attn.o_proj.weight": "W_O.T",
        _L + "self_attn.o_proj.bias": "b_O",
        _L + "post_attention_layernorm.weight": "norm_ffn.gain",
        _L + "mlp.gate_proj.weight": "W_1.T",
        _L + "mlp.gate_proj.bias": "b_1",
        _L + "mlp.up_proj.weight": "W_3.T",
        _L + "mlp.up_proj.bias": "b_3",
        _L + "mlp.down_proj.weight": "W_2.T",
        _L + "mlp.down_proj.bias": "b_2",
        "norm.weight": "norm_final.gain",
        "lm_head.weight": "readout.T",
        "score.weight": "readout.T",
    },
    _architecture,
    {"*rotary_emb.inv_freq": "the frequencies of the rotary positions, a buffer"},
    prefixes=("model.",),
)
