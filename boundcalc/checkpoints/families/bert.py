"""BERT, RoBERTa, DistilBERT, ELECTRA and ALBERT: normalisation after each sublayer, learned positions, an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, sizes_of, tables
from boundcalc.checkpoints.families.fields import (
    BLOCKS,
    DROPOUT,
    ENCODER,
    MULTIPLE_CHOICE,
    OLD_CONVERTER,
    START,
    TIED,
    activation,
    every,
    neutral,
    only,
    renamed,
    role_rows,
    sizes,
    used,
    width,
)
from boundcalc.checkpoints.families.names import with_offsets
from boundcalc.checkpoints.families.table import Family, Model
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
    shape = Shape(**sizes_of(model), activation=act, eps=eps, causal=causal)
    narrow = model.shape("embedding")[1]
    front, seq_len = tables(model, narrow)
    layers: list[Layer] = [front, normalisation(model, "norm_embedding", replace(shape, d=narrow))]
    if model.has("W_in"):
        bias = "b_in" if model.has("b_in") else None
        layers.append(Linear("W_in", *model.shape("W_in"), bias=bias))
    for index in range(depth or model.depth):
        layers += block(model, shape, index)
    tail, classes = read_out(model, shape.d, pooler, transform, eps)
    return assemble(layers + tail, seq_len, classes)


def _bert(model: Model, pooler: str = "tanh", transform: str | None = None) -> Architecture:
    act = activation(model.setting("hidden_act"))
    eps, causal = model.number("layer_norm_eps"), model.flag("is_decoder")
    return encoder(model, act, eps, causal=causal, pooler=pooler, transform=act if transform is None else transform)


def _roberta(model: Model) -> Architecture:
    """Its masked-LM head has GELU, whatever the blocks have."""
    return _bert(model, transform="gelu")


def _padding_offset(model: Model) -> int:
    """Rows of RoBERTa's position table that no token reads: they are numbered from padding_idx + 1 on."""
    return model.whole("pad_token_id", least=0) + 1


def _distilbert(model: Model) -> Architecture:
    """Its eps is written in its code."""
    act = activation(model.setting("activation"))
    return encoder(model, act, 1e-12, causal=False, pooler="relu", transform=act)


def _electra(model: Model) -> Architecture:
    """Its heads have GELU, whatever the blocks have."""
    return _bert(model, pooler="gelu", transform="gelu")


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
    **with_offsets(
        {
            "embeddings.LayerNorm": "norm_embedding.gain",
            _LAYER + "attention.self.query": "W_Q.T",
            _LAYER + "attention.self.key": "W_K.T",
            _LAYER + "attention.self.value": "W_V.T",
            _LAYER + "attention.output.dense": "W_O.T",
            _LAYER + "attention.output.LayerNorm": "norm_attention.gain",
            _LAYER + "intermediate.dense": "W_1.T",
            _LAYER + "output.dense": "W_2.T",
            _LAYER + "output.LayerNorm": "norm_ffn.gain",
            "pooler.dense": "W_pool.T",
            "classifier": "readout.T",
        }
    ),
}

BERT = Family(
    "bert",
    ("bert",),
    _ENCODER
    | {
        "cls.predictions.bias": "b_readout",
        **with_offsets(
            {
                "cls.predictions.transform.dense": "W_transform.T",
                "cls.predictions.transform.LayerNorm": "norm_transform.gain",
                "cls.predictions.decoder": "readout.T",
            }
        ),
    },
    _bert,
    _IGNORED,
    prefixes=("bert.",),
    fields=ENCODER
    | every(
        "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type",
        OLD_CONVERTER,
    ),
    classes=_heads("cls.predictions.transform.dense.weight", "classifier.weight", "pooler.dense.weight"),
    gives_way={"cls.predictions.bias": "not read: the head adds decoder.bias"},
)

ROBERTA = Family(
    "roberta",
    ("roberta", "xlm-roberta", "camembert"),
    {name: role for name, role in _ENCODER.items() if not name.startswith("classifier")}
    | {
        "lm_head.bias": "b_readout",
        **with_offsets(
            {
                "classifier.dense": "W_pool.T",
                "classifier.out_proj": "readout.T",
                "lm_head.dense": "W_transform.T",
                "lm_head.layer_norm": "norm_transform.gain",
                "lm_head.decoder": "readout.T",
            }
        ),
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
        **with_offsets(
            {
                "embeddings.LayerNorm": "norm_embedding.gain",
                _D + "attention.q_lin": "W_Q.T",
                _D + "attention.k_lin": "W_K.T",
                _D + "attention.v_lin": "W_V.T",
                _D + "attention.out_lin": "W_O.T",
                _D + "sa_layer_norm": "norm_attention.gain",
                _D + "ffn.lin1": "W_1.T",
                _D + "ffn.lin2": "W_2.T",
                _D + "output_layer_norm": "norm_ffn.gain",
                "pre_classifier": "W_pool.T",
                "classifier": "readout.T",
                "vocab_transform": "W_transform.T",
                "vocab_layer_norm": "norm_transform.gain",
                "vocab_projector": "readout.T",
            }
        ),
    },
    _distilbert,
    _IGNORED,
    prefixes=("distilbert.",),
    fields={
        "activation": used("activation of the feed-forward part", "gelu"),
        "n_heads": used("attention heads"),
        "tie_word_embeddings": TIED,
        **renamed(BLOCKS, hidden_size="dim", num_hidden_layers="n_layers", intermediate_size="hidden_dim"),
        **sizes(max_position_embeddings=role_rows("positions")),
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
    | with_offsets(
        {
            "embeddings_project": "W_in.T",
            "classifier.dense": "W_pool.T",
            "classifier.out_proj": "readout.T",
            "classifier": "readout.T",
            "generator_predictions.dense": "W_transform.T",
            "generator_predictions.LayerNorm": "norm_transform.gain",
            "generator_lm_head": "readout.T",
        }
    ),
    _electra,
    _IGNORED | {"discriminator_predictions.*": "the head that finds replaced tokens, not the read-out that is bounded"},
    prefixes=("electra.",),
    fields=ENCODER
    | sizes(embedding_size=width("embedding", 1, None))
    | MULTIPLE_CHOICE
    | {"summary_last_dropout": MULTIPLE_CHOICE["summary_first_dropout"]},
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
        "predictions.bias": "b_readout",
        **with_offsets(
            {
                "encoder.embedding_hidden_mapping_in": "W_in.T",
                _GROUP + "attention.query": "W_Q.T",
                _GROUP + "attention.key": "W_K.T",
                _GROUP + "attention.value": "W_V.T",
                _GROUP + "attention.dense": "W_O.T",
                _GROUP + "attention.LayerNorm": "norm_attention.gain",
                _GROUP + "ffn": "W_1.T",
                _GROUP + "ffn_output": "W_2.T",
                _GROUP + "full_layer_layer_norm": "norm_ffn.gain",
                "pooler": "W_pool.T",
                "classifier": "readout.T",
                "predictions.dense": "W_transform.T",
                "predictions.LayerNorm": "norm_transform.gain",
                "predictions.decoder": "readout.T",
            }
        ),
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
        **every("down_scale_factor gap_size net_structure_type num_memory_blocks", OLD_CONVERTER),
    },
    classes=_heads("predictions.dense.weight", "classifier.weight", "pooler.weight"),
    gives_way={"predictions.bias": "not read: the head adds decoder.bias"},
    stored_block=_albert_block,
)
