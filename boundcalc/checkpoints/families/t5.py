"""T5's encoder: RMSNorm first, no temperature, and learned numbers added to the scores instead of positions."""

from __future__ import annotations

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.blocks import Shape, sizes_of, stacked
from boundcalc.checkpoints.families.fields import (
    BLOCKS,
    DROPOUT,
    TIED,
    activation,
    agrees,
    every,
    head_width,
    neutral,
    only,
    renamed,
    role_rows,
    sizes,
    used,
)
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture


def _architecture(model: Model) -> Architecture:
    gated, act = _forward(model)
    shape = Shape(
        **sizes_of(model),
        activation=act,
        eps=model.number("layer_norm_epsilon"),
        norm="rmsnorm",
        first=True,
        gated=gated,
        temperature=1.0,
        buckets=model.shape("score_offsets")[0],
    )
    return stacked(model, shape, "n_positions")


def _forward(model: Model) -> tuple[bool, str]:
    """Whether the feed-forward part is gated, and its activation: of gated GELU the tanh form."""
    said = model.setting("feed_forward_proj")
    words = said.split("-") if isinstance(said, str) else []
    gated = words[:1] == ["gated"]
    if len(words) != 1 + gated:
        raise CheckpointError(
            f"{model.checkpoint.where}: feed_forward_proj is like relu or gated-gelu, got {said!r:.40}"
        )
    if gated != model.has("W_3", 0):
        model.settings.doubt("feed_forward_proj", f"but the file has {'one map' if gated else 'two maps'} into it")
    return gated, "gelu_tanh" if said == "gated-gelu" else activation(words[-1])


def _word(model: Model) -> str:
    said = str(model.setting("feed_forward_proj"))
    return "gelu_new" if said == "gated-gelu" else said.rpartition("-")[2]


_L = "block.{b}.layer."
T5 = Family(
    "t5",
    ("t5",),
    {
        "shared.weight": "embedding",
        "embed_tokens.weight": "embedding",
        _L + "0.layer_norm.weight": "norm_attention.gain",
        _L + "0.SelfAttention.q.weight": "W_Q.T",
        _L + "0.SelfAttention.k.weight": "W_K.T",
        _L + "0.SelfAttention.v.weight": "W_V.T",
        _L + "0.SelfAttention.o.weight": "W_O.T",
        "block.0.layer.0.SelfAttention.relative_attention_bias.weight": "score_offsets",
        _L + "1.layer_norm.weight": "norm_ffn.gain",
        _L + "1.DenseReluDense.wi.weight": "W_1.T",
        _L + "1.DenseReluDense.wi_0.weight": "W_1.T",
        _L + "1.DenseReluDense.wi_1.weight": "W_3.T",
        _L + "1.DenseReluDense.wo.weight": "W_2.T",
        "final_layer_norm.weight": "norm_final.gain",
        "classifier.weight": "readout.T",
        "classifier.bias": "b_readout",
    },
    _architecture,
    prefixes=("transformer.encoder.", "transformer.", "encoder."),
    fields={
        "layer_norm_epsilon": used("epsilon of every normalisation", 1e-6),
        "num_heads": used("attention heads"),
        "feed_forward_proj": used("whether the feed-forward part is gated, and its activation", "relu"),
        "n_positions": used("T, unless it is given", None),
        "tie_word_embeddings": TIED,
        "is_encoder_decoder": only("only the encoder alone is known: the decoder attends to another sequence", False),
        "is_decoder": only("only the encoder is known", False),
        **renamed(BLOCKS, hidden_size="d_model", num_hidden_layers="num_layers", intermediate_size="d_ff"),
        **sizes(d_kv=head_width, relative_attention_num_buckets=role_rows("score_offsets")),
        "dense_act_fn": agrees("the second word of feed_forward_proj, as the library reads it", _word),
        "is_gated_act": agrees("whether the file has two maps into the gated part", lambda model: model.has("W_3", 0)),
        "num_decoder_layers": neutral("there is no decoder"),
        "scale_decoder_outputs": neutral("there is no decoder"),
        "relative_attention_max_distance": neutral("which number a pair of positions has: as fixed as a mask (L14)"),
        **every("dropout_rate classifier_dropout", DROPOUT),
        "output_past": neutral("what else is returned beside the logits"),
    },
    aliases={
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "head_dim": "d_kv",
    },
    heads="num_heads",
    classes={
        "EncoderModel": ("!classifier.weight",),
        "ForTokenClassification": ("classifier.weight",),
    },
    gives_way={"embed_tokens.weight": "not read: the same table as shared.weight"},
)
