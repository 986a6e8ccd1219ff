"""BERT, RoBERTa and DistilBERT: normalisation after each sublayer, learned positions, an encoder."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, tables
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture, Layer

_IGNORED = {
    "*position_ids": "a buffer that numbers the positions",
    "*token_type_ids": "a buffer of zeros",
    "cls.seq_relationship.*": "the next-sentence head, which is not the read-out that is bounded",
}


def _architecture(model: Model, offset: int = 0, pooler: str = "tanh") -> Architecture:
    d = model.shape("embedding")[1]
    heads = model.heads
    shape = Shape(
        d=d,
        heads=heads,
        d_head=model.head_width(model.shape("W_Q", 0)[1]),
        d_ff=model.shape("W_1", 0)[1],
        activation=activation(model.setting("hidden_act", "activation")),
        eps=model.number("layer_norm_eps", default=1e-12),
        causal=bool(model.setting("is_decoder", default=False)),
    )
    front, seq_len = tables(model, d, model.whole("max_position_embeddings"), offset)
    layers: list[Layer] = [front, normalisation(model, "norm_embedding", shape)]
    for index in range(model.depth):
        layers += block(model, shape, index)
    tail, classes = read_out(model, d, pooler)
    return assemble(layers + tail, seq_len, classes)


def _roberta(model: Model) -> Architecture:
    """Positions are numbered from padding_idx + 1 on: the rows before are never read."""
    return _architecture(model, offset=roberta_offset(model))


def roberta_offset(model: Model) -> int:
    """Rows of RoBERTa's position table that no token reads."""
    return model.whole("pad_token_id", default=1, least=0) + 1


def _distilbert(model: Model) -> Architecture:
    return _architecture(model, pooler="relu")


_LAYER = "encoder.layer.{b}."
_ENCODER = {
    "embeddings.word_embeddings.weight": "embedding",
    "embeddings.position_embeddings.weight": "positions",
    "embeddings.token_type_embeddings.weight": "segments",
    "embeddings.LayerNorm.weight": "norm_embedding.gain",
    "embeddings.LayerNorm.bias": "norm_embedding.offset",
    _LAYER + "attention.self.query.weight": "W_Q.T",
    _LAYER + "attention.self.query.bias": "b_Q",
    _LAYER + "attention.self.key.weight": "W_K.T",
    _LAYER + "attention.self.key.bias": "b_K",
    _LAYER + "attention.self.value.weight": "W_V.T",
    _LAYER + "attention.self.value.bias": "b_V",
    _LAYER + "attention.output.dense.weight": "W_O.T",
    _LAYER + "attention.output.dense.bias": "b_O",
    _LAYER + "attention.output.LayerNorm.weight": "norm_attention.gain",
    _LAYER + "attention.output.LayerNorm.bias": "norm_attention.offset",
    _LAYER + "intermediate.dense.weight": "W_1.T",
    _LAYER + "intermediate.dense.bias": "b_1",
    _LAYER + "output.dense.weight": "W_2.T",
    _LAYER + "output.dense.bias": "b_2",
    _LAYER + "output.LayerNorm.weight": "norm_ffn.gain",
    _LAYER + "output.LayerNorm.bias": "norm_ffn.offset",
    "pooler.dense.weight": "W_pool.T",
    "pooler.dense.bias": "b_pool",
    "classifier.weight": "readout.T",
    "classifier.bias": "b_readout",
}

BERT = Family(
    "bert",
    ("bert",),
    _ENCODER
    | {
        "cls.predictions.transform.dense.weight": "W_transform.T",
        "cls.predictions.transform.dense.bias": "b_transform",
        "cls.predictions.transform.LayerNorm.weight": "norm_transform.gain",
        "cls.predictions.transform.LayerNorm.bias": "norm_transform.offset",
        "cls.predictions.decoder.weight": "readout.T",
        "cls.predictions.bias": "b_readout",
        "cls.predictions.decoder.bias": "b_readout",
    },
    _architecture,
    _IGNORED,
    prefixes=("bert.",),
)

ROBERTA = Family(
    "roberta",
    ("roberta", "xlm-roberta", "camembert"),
    {name: role for name, role in _ENCODER.items() if not name.startswith("classifier")}
    | {
        "classifier.dense.weight": "W_pool.T",
        "classifier.dense.bias": "b_pool",
        "classifier.out_proj.weight": "readout.T",
        "classifier.out_proj.bias": "b_readout",
        "lm_head.dense.weight": "W_transform.T",
        "lm_head.dense.bias": "b_transform",
        "lm_head.layer_norm.weight": "norm_transform.gain",
        "lm_head.layer_norm.bias": "norm_transform.offset",
        "lm_head.decoder.weight": "readout.T",
        "lm_head.bias": "b_readout",
        "lm_head.decoder.bias": "b_readout",
    },
    _roberta,
    _IGNORED,
    prefixes=("roberta.",),
)

_D = "transformer.layer.{b}."
DISTILBERT = Family(
    "distilbert",
    ("distilbert",),
    {
        "embeddings.word_embeddings.weight": "embedding",
        "embeddings.position_embeddings.weight": "positions",
        "embeddings.LayerNorm.weight": "norm_embedding.gain",
        "embeddings.LayerNorm.bias": "norm_embedding.offset",
        _D + "attention.q_lin.weight": "W_Q.T",
        _D + "attention.q_lin.bias": "b_Q",
        _D + "attention.k_lin.weight": "W_K.T",
        _D + "attention.k_lin.bias": "b_K",
        _D + "attention.v_lin.weight": "W_V.T",
        _D + "attention.v_lin.bias": "b_V",
        _D + "attention.out_lin.weight": "W_O.T",
        _D + "attention.out_lin.bias": "b_O",
        _D + "sa_layer_norm.weight": "norm_attention.gain",
        _D + "sa_layer_norm.bias": "norm_attention.offset",
        _D + "ffn.lin1.weight": "W_1.T",
        _D + "ffn.lin1.bias": "b_1",
        _D + "ffn.lin2.weight": "W_2.T",
        _D + "ffn.lin2.bias": "b_2",
        _D + "output_layer_norm.weight": "norm_ffn.gain",
        _D + "output_layer_norm.bias": "norm_ffn.offset",
        "pre_classifier.weight": "W_pool.T",
        "pre_classifier.bias": "b_pool",
        "classifier.weight": "readout.T",
        "classifier.bias": "b_readout",
        "vocab_transform.weight": "W_transform.T",
        "vocab_transform.bias": "b_transform",
        "vocab_layer_norm.weight": "norm_transform.gain",
        "vocab_layer_norm.bias": "norm_transform.offset",
        "vocab_projector.weight": "readout.T",
        "vocab_projector.bias": "b_readout",
    },
    _distilbert,
    _IGNORED,
    prefixes=("distilbert.",),
)
