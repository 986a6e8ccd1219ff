"""torch.nn.TransformerEncoder: rows in, rows out. Its files say neither the number of heads nor the order of things."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, sizes_of
from boundcalc.checkpoints.families.fields import DROPOUT, activation, depth, neutral, sizes, used, width
from boundcalc.checkpoints.families.names import with_offsets
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture, Layer


def _architecture(model: Model) -> Architecture:
    d = model.shape("W_1", 0)[0]
    shape = Shape(
        **sizes_of(model, d),
        activation=activation(model.setting("activation")),
        eps=model.number("layer_norm_eps"),
        first=model.flag("norm_first"),
    )
    layers: list[Layer] = []
    for index in range(model.depth):
        layers += block(model, shape, index)
    if model.has("norm_final.gain"):
        layers.append(normalisation(model, "norm_final", shape))
    tail, classes = read_out(model, d)
    seq_len, radius = model.option("seq_len"), model.option("input_radius")
    if seq_len is None:
        model.settings.assume("seq_len", seq_len := 512)
    if radius is None:
        model.settings.assume("input_radius", radius := 1.0)
    return assemble(layers + tail, seq_len, classes, radius)


_L = "layers.{b}."
TORCH_ENCODER = Family(
    "torch-encoder",
    ("torch-encoder",),
    {
        _L + "self_attn.in_proj_weight": "W_QKV.T",
        _L + "self_attn.in_proj_bias": "b_QKV",
        **with_offsets(
            {
                _L + "self_attn.out_proj": "W_O.T",
                _L + "linear1": "W_1.T",
                _L + "linear2": "W_2.T",
                _L + "norm1": "norm_attention.gain",
                _L + "norm2": "norm_ffn.gain",
                "norm": "norm_final.gain",
                "readout": "readout.T",
            }
        ),
    },
    _architecture,
    prefixes=("encoder.",),
    fields={
        "heads": used("attention heads"),
        "norm_first": used("whether normalisation comes before each sublayer", False),
        "activation": used("activation of the feed-forward part", "relu"),
        "layer_norm_eps": used("epsilon of every normalisation", 1e-5),
        **sizes(d_model=width("W_1", 0), dim_feedforward=width("W_1", 1), num_layers=depth),
        "dropout": DROPOUT,
        "batch_first": neutral("the order of the axes of its input"),
    },
    aliases={"num_attention_heads": "heads", "nhead": "heads"},
    heads="heads",
    marks=("layers.0.self_attn.in_proj_weight",),
)
