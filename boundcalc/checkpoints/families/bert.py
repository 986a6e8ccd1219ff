"""BERT, RoBERTa, DistilBERT, ELECTRA and ALBERT: normalisation after each sublayer, learned positions, an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, tables
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    ENCODER,
    START,
    depth,
    every,
    neutral,
    only,
    role_rows,
    sizes,
    used,
    width,
)
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture, Layer, Linear

_IGNORED = {
    "*position_ids": "a buffer that numbers the positions",
    "*token_type_ids": "a buffer of zeros",
    "cls.seq_relationship.*": "the next-sentence head, which is not the read-out that is bounded",
}


def encoder(
    model: Model, act: str, eps: float, *, causal: bool, pooler: str, transform: str, depth: int | None = None
) -> Architecture:
    """Normalisation after each sublayer; perhaps narrower tables, mapped to the width of a row (ELECTRA, ALBERT)."""
    d = model.shape("W_Q", 0)[0]
    narrow = model.shape("embedding")[1]
    shape = Shape(
        d=d,
        heads=model.heads,
        d_head=model.head_width(model.shape("W_Q", 0)[1]),
        d_ff=model.shape("W_1", 0)[1],
        activation=act,
        eps=eps,
        causal=causal,
    )
    front, seq_len = tables(model, narrow)
    layers: list[Layer] = [front, normalisation(model, "norm_embedding", replace(shape, d=narrow))]
    if model.has("W_in"):
        bias = "b_in" if model.has("b_in") else None
        layers.append(Linear("W_in", *model.shape("W_in"), bias=bias))
    for index in range(depth or model.depth):
        layers += block(model, shape, index)
    tail, classes = read_out(model, d, pooler, transform, eps)
    return assemble(layers + tail, seq_len, classes)


def _bert(model: Model) -> Architecture:
    act = activation(model.setting("hidden_act"))
    eps, causal = model.number("layer_norm_eps"), model.flag("is_decoder")
    return encoder(model, act, eps, causal=causal, pooler="tanh", transform=act)


def _roberta(model: Model) -> Architecture:
    """Its masked-LM head has GELU, whatever the blocks have."""
    act = activation(model.setting("hidden_act"))
    eps, causal = model.number("layer_norm_eps"), model.flag("is_decoder")
    return encoder(model, act, eps, causal=causal, pooler="tanh", transform="gelu")


def _padding_offset(model: Model) -> int:
    """Rows of RoBERTa's position table that no token reads: they are numbered from padding_idx + 1 on."""
    return model.whole("pad_token_id", least=0) + 1


def _distilbert(model: Model) -> Architecture:
    """Its eps is written in its code."""
    act = activation(model.setting("activation"))
    return encoder(model, act, 1e-12, causal=False, pooler="relu", transform=act)


def _electra(model: Model) -> Architecture:
    """Its heads have GELU, whatever the blocks have."""
    act = activation(model.setting("hidden_act"))
    eps, causal = model.number("layer_norm_eps"), model.flag("is_decoder")
    return encoder(model, act, eps, causal=causal, pooler="gelu", transform="gelu")


def _albert(model: Model) -> Architecture:
    """One block, or a few, read again and again: bounded as if each time were free of the others."""
    act = activation(model.setting("hidden_act"))
    depth, groups = model.whole("num_hidden_layers"), model.whole("num_hidden_groups")
    if groups != model.depth:
        raise CheckpointError(f"{model.checkpoint.where}: num_hidden_groups is {groups}, the file has {model.depth}")
    return encoder(model, act, model.number("layer_norm_eps"), causal=False, pooler="tanh", transform=act, depth=depth)


def _albert_block(model: Model, index: int) -> int:
    """Which group of weights a block of ALBERT reads."""
    depth, groups = model.whole("num_hidden_layers"), model.whole("num_hidden_groups")
    return int(index / (depth / groups))


def _heads(language: str, classifier: str, pooler: str) -> Mapping[str, tuple[str, ...]]:
    """Classes of models, by the tensors their heads have."""
    return {
        "Model": (f"!{language}", f"!{classifier}"),
        **dict.fromkeys(("ForMaskedLM", "ForPreTraining", "LMHeadModel", "ForCausalLM"), (language, f"!{classifier}")),
        "ForSequenceClassification": (classifier, pooler, f"!{language}"),
        "ForTokenClassification": (classifier, f"!{pooler}", f"!{language}"),
    }


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
    _bert,
    _IGNORED,
    prefixes=("bert.",),
    fields=ENCODER
    | every(
        "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type",
        neutral("written by an old converter; no model of the library reads it"),
    ),
    classes=_heads("cls.predictions.transform.dense.weight", "classifier.weight", "pooler.dense.weight"),
    gives_way={"cls.predictions.bias": "not read: the head adds decoder.bias"},
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
    fields=ENCODER | {"pad_token_id": used("the rows of the position table that are read come after it", 1)},
    classes=_heads("lm_head.dense.weight", "classifier.out_proj.weight", "classifier.dense.weight"),
    gives_way={"lm_head.bias": "not read: the head adds decoder.bias"},
    first_position=_padding_offset,
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
    fields={
        "activation": used("activation of the feed-forward part", "gelu"),
        "n_heads": used("attention heads"),
        "tie_word_embeddings": used("whether the read-out is the embedding table", True),
        **sizes(
            dim=width("W_Q", 0),
            n_layers=depth,
            hidden_dim=width("W_1", 1),
            vocab_size=role_rows("embedding"),
            max_position_embeddings=role_rows("positions"),
        ),
        **every("dropout attention_dropout qa_dropout seq_classif_dropout", DROPOUT),
        "sinusoidal_pos_embds": START,
        "tie_weights_": neutral("an old name that no model of the library reads"),
        "is_decoder": only("the library's DistilBERT has no causal mask", False, None),
    },
    aliases={"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"},
    heads="n_heads",
    classes=_heads("vocab_transform.weight", "classifier.weight", "pre_classifier.weight"),
)

_NARROW = {name: role for name, role in _ENCODER.items() if not name.startswith(("classifier", "pooler"))}
ELECTRA = Family(
    "electra",
    ("electra",),
    _NARROW
    | {
        "embeddings_project.weight": "W_in.T",
        "embeddings_project.bias": "b_in",
        "classifier.dense.weight": "W_pool.T",
        "classifier.dense.bias": "b_pool",
        "classifier.out_proj.weight": "readout.T",
        "classifier.out_proj.bias": "b_readout",
        "classifier.weight": "readout.T",
        "classifier.bias": "b_readout",
        "generator_predictions.dense.weight": "W_transform.T",
        "generator_predictions.dense.bias": "b_transform",
        "generator_predictions.LayerNorm.weight": "norm_transform.gain",
        "generator_predictions.LayerNorm.bias": "norm_transform.offset",
        "generator_lm_head.weight": "readout.T",
        "generator_lm_head.bias": "b_readout",
    },
    _electra,
    _IGNORED | {"discriminator_predictions.*": "the head that finds replaced tokens, not the read-out that is bounded"},
    prefixes=("electra.",),
    fields=ENCODER
    | sizes(embedding_size=width("embedding", 1, None))
    | every(
        "summary_type summary_use_proj summary_activation summary_last_dropout summary_first_dropout "
        "summary_proj_to_labels",
        neutral("the head of multiple choice, whose tensors are unexpected"),
    ),
    classes={
        "Model": ("!generator_predictions.dense.weight", "!classifier.out_proj.weight", "!classifier.weight"),
        "ForPreTraining": ("discriminator_predictions.dense.weight", "!generator_predictions.dense.weight"),
        **dict.fromkeys(("ForMaskedLM", "ForCausalLM"), ("generator_predictions.dense.weight",)),
        "ForSequenceClassification": ("classifier.out_proj.weight",),
        "ForTokenClassification": ("classifier.weight",),
    },
)

_GROUP = "encoder.albert_layer_groups.{b}.albert_layers.0."
ALBERT = Family(
    "albert",
    ("albert",),
    {name: role for name, role in _NARROW.items() if not name.startswith("encoder")}
    | {
        "encoder.embedding_hidden_mapping_in.weight": "W_in.T",
        "encoder.embedding_hidden_mapping_in.bias": "b_in",
        _GROUP + "attention.query.weight": "W_Q.T",
        _GROUP + "attention.query.bias": "b_Q",
        _GROUP + "attention.key.weight": "W_K.T",
        _GROUP + "attention.key.bias": "b_K",
        _GROUP + "attention.value.weight": "W_V.T",
        _GROUP + "attention.value.bias": "b_V",
        _GROUP + "attention.dense.weight": "W_O.T",
        _GROUP + "attention.dense.bias": "b_O",
        _GROUP + "attention.LayerNorm.weight": "norm_attention.gain",
        _GROUP + "attention.LayerNorm.bias": "norm_attention.offset",
        _GROUP + "ffn.weight": "W_1.T",
        _GROUP + "ffn.bias": "b_1",
        _GROUP + "ffn_output.weight": "W_2.T",
        _GROUP + "ffn_output.bias": "b_2",
        _GROUP + "full_layer_layer_norm.weight": "norm_ffn.gain",
        _GROUP + "full_layer_layer_norm.bias": "norm_ffn.offset",
        "pooler.weight": "W_pool.T",
        "pooler.bias": "b_pool",
        "classifier.weight": "readout.T",
        "classifier.bias": "b_readout",
        "predictions.dense.weight": "W_transform.T",
        "predictions.dense.bias": "b_transform",
        "predictions.LayerNorm.weight": "norm_transform.gain",
        "predictions.LayerNorm.bias": "norm_transform.offset",
        "predictions.decoder.weight": "readout.T",
        "predictions.bias": "b_readout",
        "predictions.decoder.bias": "b_readout",
    },
    _albert,
    _IGNORED | {"sop_classifier.*": "the head that orders sentences, not the read-out that is bounded"},
    prefixes=("albert.",),
    fields={name: entry for name, entry in ENCODER.items() if name not in ("is_decoder", "num_hidden_layers")}
    | {
        "hidden_act": used("activation of the feed-forward part", "gelu_new"),
        "num_hidden_layers": used("how often the blocks are read"),
        "num_hidden_groups": used("how many blocks there are", 1),
        "inner_group_num": only("groups of several blocks are not read", 1, None),
        "is_decoder": only("the library's ALBERT has no causal mask", False, None),
        **sizes(embedding_size=width("embedding", 1, None)),
        **every(
            "down_scale_factor gap_size net_structure_type num_memory_blocks",
            neutral("written by an old converter; no model of the library reads it"),
        ),
    },
    classes=_heads("predictions.dense.weight", "classifier.weight", "pooler.weight"),
    gives_way={"predictions.bias": "not read: the head adds decoder.bias"},
    stored_block=_albert_block,
)
