"""GPT-2: normalisation before each sublayer, fused queries, keys and values, weights stored as x -> x W (Conv1D)."""

from __future__ import annotations

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, tables
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture, Layer


def _architecture(model: Model) -> Architecture:
    if model.setting("scale_attn_by_inverse_layer_idx", default=False):
        raise CheckpointError(
            "scores divided by the layer's number are not supported (scale_attn_by_inverse_layer_idx)"
        )
    d = model.shape("embedding")[1]
    heads = model.heads
    shape = Shape(
        d=d,
        heads=heads,
        d_head=model.head_width(d),
        d_ff=model.shape("W_1", 0)[1],
        activation=activation(model.setting("activation_function", default="gelu_new")),
        eps=model.number("layer_norm_epsilon", default=1e-5),
        first=True,
        causal=True,
        scaled=bool(model.setting("scale_attn_weights", default=True)),
    )
    front, seq_len = tables(model, d, model.whole("n_positions", default=1024))
    layers: list[Layer] = [front]
    for index in range(model.depth):
        layers += block(model, shape, index)
    layers.append(normalisation(model, "norm_final", shape))
    tail, classes = read_out(model, d)
    return assemble(layers + tail, seq_len, classes)


_H = "h.{b}."
GPT2 = Family(
    "gpt2",
    ("gpt2",),
    {
        "wte.weight": "embedding",
        "wpe.weight": "positions",
        _H + "ln_1.weight": "norm_attention.gain",
        _H + "ln_1.bias": "norm_attention.offset",
        _H + "attn.c_attn.weight": "W_QKV",
        _H + "attn.c_attn.bias": "b_QKV",
        _H + "attn.c_proj.weight": "W_O",
        _H + "attn.c_proj.bias": "b_O",
        _H + "ln_2.weight": "norm_ffn.gain",
        _H + "ln_2.bias": "norm_ffn.offset",
        _H + "mlp.c_fc.weight": "W_1",
        _H + "mlp.c_fc.bias": "b_1",
        _H + "mlp.c_proj.weight": "W_2",
        _H + "mlp.c_proj.bias": "b_2",
        "ln_f.weight": "norm_final.gain",
        "ln_f.bias": "norm_final.offset",
        "lm_head.weight": "readout.T",
        "score.weight": "readout.T",
    },
    _architecture,
    {
        "h.*.attn.bias": "the causal mask, a buffer",
        "h.*.attn.masked_bias": "a constant of the mask, a buffer",
    },
    prefixes=("transformer.",),
)
