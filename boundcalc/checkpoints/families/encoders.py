"""Encoders: BERT, RoBERTa, DistilBERT, ELECTRA, ModernBERT, and the encoder of T5."""

from __future__ import annotations

from collections.abc import Mapping

from boundcalc.checkpoints.families.blocks import stack
from boundcalc.checkpoints.families.names import with_offsets
from boundcalc.checkpoints.families.table import Family

_OTHER_HEAD = "a head that is not the read-out that is bounded"
_IGNORED = {"*position_ids": "a buffer", "*token_type_ids": "a buffer", "cls.seq_relationship.*": _OTHER_HEAD}


def _heads(language: str, classifier: str, pooler: str) -> Mapping[str, tuple[str, ...]]:
    """Classes of models, by the tensors their heads have."""
    return {
        "Model": (f"!{language}", f"!{classifier}"),
        **dict.fromkeys(("ForMaskedLM", "ForPreTraining", "LMHeadModel", "ForCausalLM"), (language, f"!{classifier}")),
        "ForSequenceClassification": (classifier, pooler, f"!{language}"),
        "ForTokenClassification": (classifier, f"!{pooler}", f"!{language}"),
    }


_LAYER = "encoder.layer.{b}."
_BODY = {
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
        }
    ),
}
_READS = {
    "activation": ("hidden_act", "gelu"),
    "eps": ("layer_norm_eps", 1e-12),
    "heads": ("num_attention_heads", None),
    "tied": ("tie_word_embeddings", True),
    "causal": ("is_decoder", False),
}

BERT = Family(
    "bert",
    ("bert",),
    _BODY
    | {"cls.predictions.bias": "b_readout"}
    | with_offsets(
        {
            "pooler.dense": "W_pool.T",
            "classifier": "readout.T",
            "cls.predictions.transform.dense": "W_transform.T",
            "cls.predictions.transform.LayerNorm": "norm_transform.gain",
            "cls.predictions.decoder": "readout.T",
        }
    ),
    stack,
    _IGNORED,
    prefixes=("bert.",),
    reads=_READS,
    classes=_heads("cls.predictions.transform.dense.weight", "classifier.weight", "pooler.dense.weight"),
    gives_way={"cls.predictions.bias": "not read: the head adds decoder.bias"},
)

ROBERTA = Family(
    "roberta",
    ("roberta", "xlm-roberta", "camembert"),
    _BODY
    | {"lm_head.bias": "b_readout"}
    | with_offsets(
        {
            "pooler.dense": "W_pool.T",
            "classifier.dense": "W_pool.T",
            "classifier.out_proj": "readout.T",
            "lm_head.dense": "W_transform.T",
            "lm_head.layer_norm": "norm_transform.gain",
            "lm_head.decoder": "readout.T",
        }
    ),
    stack,
    _IGNORED,
    prefixes=("roberta.",),
    reads=_READS | {"padding": ("pad_token_id", 1)},
    fixed={"transform": "gelu"},
    classes=_heads("lm_head.dense.weight", "classifier.out_proj.weight", "classifier.dense.weight"),
    gives_way={"lm_head.bias": "not read: the head adds decoder.bias"},
)

_D = "transformer.layer.{b}."
DISTILBERT = Family(
    "distilbert",
    ("distilbert",),
    {name: role for name, role in _BODY.items() if name.startswith("emb") and role != "segments"}
    | with_offsets(
        {
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
    stack,
    _IGNORED,
    prefixes=("distilbert.",),
    reads={
        "activation": ("activation", "gelu"),
        "heads": ("n_heads", None),
        "tied": ("tie_word_embeddings", True),
    },
    fixed={"eps": 1e-12, "pooler": "relu"},
    only={"sinusoidal_pos_embds": (False, True), "tie_weights_": (False, True)},  # where weights started from
    classes=_heads("vocab_transform.weight", "classifier.weight", "pre_classifier.weight"),
)

ELECTRA = Family(
    "electra",
    ("electra",),
    _BODY
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
    stack,
    _IGNORED | {"discriminator_predictions.*": _OTHER_HEAD},
    prefixes=("electra.",),
    reads=_READS,
    fixed={"pooler": "gelu", "transform": "gelu"},
    classes={
        "Model": ("!generator_predictions.dense.weight", "!classifier.out_proj.weight", "!classifier.weight"),
        "ForPreTraining": ("discriminator_predictions.dense.weight", "!generator_predictions.dense.weight"),
        **dict.fromkeys(("ForMaskedLM", "ForCausalLM"), ("generator_predictions.dense.weight",)),
        "ForSequenceClassification": ("classifier.out_proj.weight",),
        "ForTokenClassification": ("classifier.weight",),
    },
)

_L = "layers.{b}."
MODERNBERT = Family(
    "modernbert",
    ("modernbert",),
    {"embeddings.tok_embeddings.weight": "embedding"}
    | with_offsets(
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
    stack,
    prefixes=("model.",),
    reads={
        "activation": ("hidden_activation", "gelu"),
        "transform": ("classifier_activation", "gelu"),
        "pooling": ("classifier_pooling", "cls"),
        "eps": ("norm_eps", 1e-5),
        "heads": ("num_attention_heads", None),
        "longest": ("max_position_embeddings", 8192),
        "tied": ("tie_word_embeddings", True),
    },
    fixed={"first": True, "bare": True, "rope": True},
    neutral="(global|local)_rope_theta|local_attention|global_attn_every_n_layers|(decoder|classifier)_bias|sparse_pred\\w+"
    "|deterministic_flash_attn|reference_compile|repad_logits_with_grad|position_embedding_type|layer_norm_eps",
    classes={
        "Model": ("!decoder.bias", "!classifier.weight"),
        "ForMaskedLM": ("head.dense.weight", "!classifier.weight"),
        "ForSequenceClassification": ("classifier.weight", "head.dense.weight"),
        "ForTokenClassification": ("classifier.weight", "head.dense.weight"),
    },
    halves={"W_13": ("W_1", "W_3"), "b_13": ("b_1", "b_3")},
)

_B = "block.{b}.layer."
T5 = Family(
    "t5",
    ("t5",),
    {
        "shared.weight": "embedding",
        "embed_tokens.weight": "embedding",
        _B + "0.layer_norm.weight": "norm_attention.gain",
        _B + "0.SelfAttention.q.weight": "W_Q.T",
        _B + "0.SelfAttention.k.weight": "W_K.T",
        _B + "0.SelfAttention.v.weight": "W_V.T",
        _B + "0.SelfAttention.o.weight": "W_O.T",
        "block.0.layer.0.SelfAttention.relative_attention_bias.weight": "score_offsets",
        _B + "1.layer_norm.weight": "norm_ffn.gain",
        _B + "1.DenseReluDense.wi.weight": "W_1.T",
        _B + "1.DenseReluDense.wi_0.weight": "W_1.T",
        _B + "1.DenseReluDense.wi_1.weight": "W_3.T",
        _B + "1.DenseReluDense.wo.weight": "W_2.T",
        "final_layer_norm.weight": "norm_final.gain",
        "classifier.weight": "readout.T",
        "classifier.bias": "b_readout",
    },
    stack,
    prefixes=("transformer.encoder.", "transformer.", "encoder."),
    reads={
        "activation": ("feed_forward_proj", "relu"),
        "eps": ("layer_norm_epsilon", 1e-6),
        "heads": ("num_heads", None),
        "longest": ("n_positions", None),
        "tied": ("tie_word_embeddings", True),
    },
    fixed={"first": True, "norm": "rmsnorm", "score_scale": 1.0, "buckets": True, "gated_by_name": True},
    neutral="num_decoder_layers|scale_decoder_outputs|relative_attention_max_distance",
    classes={"EncoderModel": ("!classifier.weight",), "ForTokenClassification": ("classifier.weight",)},
    gives_way={"embed_tokens.weight": "not read: the same table as shared.weight"},
)
