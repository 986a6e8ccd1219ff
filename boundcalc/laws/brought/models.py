"""A small model of every family as its library saves it: its tensors in short, its config.json, and random numbers for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.setting import Architecture

Tensors = dict[str, NDArray[Any]]

_SIZES = {"d": 8, "f": 12, "k": 4, "V": 11, "T": 6, "C": 3}
"""Widths of rows, of hidden rows, and of all keys; words, positions, logits."""
_SPREAD = 0.3


@dataclass(frozen=True)
class SmallModel:
    """A model in short.

    Attributes:
        config: its config.json, with all its sizes.
        tensors: one module or tensor per line. "x : d -> f" is a linear map with an offset, stored as its transpose
            (torch.nn.Linear); "x : d => f" is stored as it is (GPT-2's Conv1D); "x : d" is a normalisation; each without
            its offset where the line ends with "bare"; "x = V d" is a tensor of this name and shape. "{a,b}" stands for
            either, "{#}" for the number of every block, "^" for `prefix`.
        prefix: what most names begin with.
        sizes: other values than those of letters in general.
        blocks: how many are stored.
    """

    config: Mapping[str, Any]
    tensors: str
    prefix: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    blocks: int = 2

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all tensors, by name."""
        found: dict[str, tuple[int, ...]] = {}
        for words in filter(None, map(str.split, self.tensors.splitlines())):
            for name in self._names(words[0]):
                found |= self._stored(name, words[1:])
        return found

    def _names(self, written: str) -> Iterator[str]:
        """All names that a short one stands for."""
        choice = re.search(r"\{([^}]*)\}", written)
        if choice is None:
            yield written.replace("^", self.prefix)
            return
        each = map(str, range(self.blocks)) if choice[1] == "#" else choice[1].split(",")
        for part in each:
            yield from self._names(written.replace(choice[0], part, 1))

    def _stored(self, name: str, words: list[str]) -> dict[str, tuple[int, ...]]:
        kind, *rest = words
        bare = rest[-1] == "bare"
        sides = tuple(self._size(word) for word in rest if word[-1] != ">" and word != "bare")
        if kind == "=":
            return {name: sides}
        weight = sides[::-1] if "->" in rest else sides
        return {f"{name}.weight": weight} | ({} if bare else {f"{name}.bias": sides[-1:]})

    def _size(self, word: str) -> int:
        """A number, a letter with a number before it (times) or after it (plus)."""
        times, letter, plus = re.fullmatch(r"(\d*)([a-zA-Z]?)\+?(\d*)", word).groups()  # type: ignore[union-attr]
        return int(times or 1) * ({**_SIZES, **self.sizes}[letter] if letter else 1) + int(plus or 0)

    def drawn(self, seed: int = 0) -> Tensors:
        """Random numbers as after training; gains are around 1."""
        rng = np.random.default_rng(seed)
        around = {name: float(len(shape) == 1 and name.endswith("weight")) for name, shape in self.shapes.items()}
        return {
            name: (around[name] + _SPREAD * rng.standard_normal(shape)).astype(np.float32)
            for name, shape in self.shapes.items()
        }


def _config(kind: str, cls: str, *parts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"model_type": kind, "architectures": [cls]}
    for part in (*parts, more):
        found |= part
    return found


_HEADS = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": 8}
_ENCODER = _HEADS | {"intermediate_size": 12, "vocab_size": 11, "max_position_embeddings": 6}
_DECODER = _ENCODER | {"num_key_value_heads": 2, "tie_word_embeddings": False}
_GPT = {"n_embd": 8, "n_head": 4, "n_layer": 2, "n_positions": 6, "vocab_size": 11}
_BLOOM = {"n_head": 4, "n_layer": 2, "hidden_size": 8, "vocab_size": 11, "seq_length": 6}
_LABELS = {"num_labels": 3}

_TABLES = """
^embeddings.word_embeddings.weight = V d
^embeddings.position_embeddings.weight = T d
^embeddings.token_type_embeddings.weight = 2 d
^embeddings.LayerNorm : d
"""
_NARROW = _TABLES.replace(" d", " e")
_POST = """
^encoder.layer.{#}.attention.self.{query,key,value} : d -> d
^encoder.layer.{#}.attention.output.dense : d -> d
^encoder.layer.{#}.{attention.,}output.LayerNorm : d
^encoder.layer.{#}.intermediate.dense : d -> f
^encoder.layer.{#}.output.dense : f -> d
"""
_CLASSIFIER = """
classifier.dense : d -> d
classifier.out_proj : d -> C
"""
_PATCHES = """
^embeddings.cls_token = 1 1 d
^embeddings.patch_embeddings.projection.weight = d 3 2 2
^embeddings.patch_embeddings.projection.bias = d
^encoder.layer.{#}.attention.attention.{query,key,value} : d -> d
^encoder.layer.{#}.attention.output.dense : d -> d
^encoder.layer.{#}.layernorm_{before,after} : d
^encoder.layer.{#}.intermediate.dense : d -> f
^encoder.layer.{#}.output.dense : f -> d
^layernorm : d
classifier : d -> C
"""
_IMAGES = _HEADS | {"intermediate_size": 12, "image_size": 4, "patch_size": 2, "num_channels": 3} | _LABELS
_GATED = """
^embed_tokens.weight = V d
^layers.{#}.self_attn.q_proj : d -> q bare
^layers.{#}.self_attn.{k,v}_proj : d -> k bare
^layers.{#}.self_attn.o_proj : q -> d bare
^layers.{#}.mlp.{gate,up}_proj : d -> f bare
^layers.{#}.mlp.down_proj : f -> d bare
^layers.{#}.post_attention_layernorm : d bare
^norm : d bare
"""
_BEFORE = "^layers.{#}.input_layernorm : d bare\n"
_UNTIED = "lm_head : d -> V bare\n"
_AS_WIDE, _WIDER = {"q": 8}, {"q": 12, "k": 6}
"""All queries as wide as a row, or heads of width 3."""


def _gated(
    kind: str, cls: str, more: str = _BEFORE + _UNTIED, wide: Mapping[str, int] = _AS_WIDE, **config: Any
) -> Any:
    return SmallModel(_config(kind, f"{cls}ForCausalLM", _DECODER, config), _GATED + more, "model.", wide)


MODELS: Mapping[str, SmallModel] = {
    "bert": SmallModel(
        _config("bert", "BertForSequenceClassification", _ENCODER, _LABELS),
        _TABLES + _POST + "^pooler.dense : d -> d\nclassifier : d -> C",
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
        ^embeddings.word_embeddings.weight = V d
        ^embeddings.position_embeddings.weight = T d
        ^embeddings.LayerNorm : d
        ^transformer.layer.{#}.attention.{q,k,v,out}_lin : d -> d
        ^transformer.layer.{#}.{sa,output}_layer_norm : d
        ^transformer.layer.{#}.ffn.lin1 : d -> f
        ^transformer.layer.{#}.ffn.lin2 : f -> d
        pre_classifier : d -> d
        classifier : d -> C
        """,
        "distilbert.",
    ),
    "electra": SmallModel(
        _config("electra", "ElectraForSequenceClassification", _ENCODER, _LABELS, embedding_size=5),
        _NARROW + "^embeddings_project : e -> d" + _POST + _CLASSIFIER,
        "electra.",
        {"e": 5},
    ),
    "albert": SmallModel(
        _config(
            "albert",
            "AlbertForSequenceClassification",
            _ENCODER,
            _LABELS,
            {"num_hidden_layers": 5, "num_hidden_groups": 2, "embedding_size": 5},
        ),
        _NARROW
        + """
        ^encoder.embedding_hidden_mapping_in : e -> d
        ^encoder.albert_layer_groups.{#}.albert_layers.0.attention.{query,key,value,dense} : d -> d
        ^encoder.albert_layer_groups.{#}.albert_layers.0.{attention.LayerNorm,full_layer_layer_norm} : d
        ^encoder.albert_layer_groups.{#}.albert_layers.0.ffn : d -> f
        ^encoder.albert_layer_groups.{#}.albert_layers.0.ffn_output : f -> d
        ^pooler : d -> d
        classifier : d -> C
        """,
        "albert.",
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
        ^embeddings.tok_embeddings.weight = V d
        ^embeddings.norm : d bare
        ^layers.1.attn_norm : d bare
        ^layers.{#}.attn.Wqkv : d -> 3d bare
        ^layers.{#}.attn.Wo : d -> d bare
        ^layers.{#}.mlp_norm : d bare
        ^layers.{#}.mlp.Wi : d -> 2f bare
        ^layers.{#}.mlp.Wo : f -> d bare
        ^final_norm : d bare
        head.dense : d -> d bare
        head.norm : d bare
        classifier : d -> C
        """,
        "model.",
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
        ^shared.weight = V d
        ^encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight = 6 4
        ^encoder.block.{#}.layer.0.SelfAttention.{q,k,v} : d -> q bare
        ^encoder.block.{#}.layer.0.SelfAttention.o : q -> d bare
        ^encoder.block.{#}.layer.{0,1}.layer_norm : d bare
        ^encoder.block.{#}.layer.1.DenseReluDense.wi_{0,1} : d -> f bare
        ^encoder.block.{#}.layer.1.DenseReluDense.wo : f -> d bare
        ^encoder.final_layer_norm : d bare
        classifier : d -> C
        """,
        "transformer.",
        {"q": 12},
    ),
    "gpt2": SmallModel(
        _config("gpt2", "GPT2LMHeadModel", _GPT, n_inner=12),
        """
        ^wte.weight = V d
        ^wpe.weight = T d
        ^h.{#}.attn.c_attn : d => 3d
        ^h.{#}.attn.c_proj : d => d
        ^h.{#}.mlp.c_fc : d => f
        ^h.{#}.mlp.c_proj : f => d
        ^h.{#}.ln_{1,2} : d
        ^ln_f : d
        """,
        "transformer.",
    ),
    "gptj": SmallModel(
        _config("gptj", "GPTJForCausalLM", _GPT, n_inner=12, rotary_dim=2, tie_word_embeddings=False),
        """
        ^wte.weight = V d
        ^h.{#}.attn.{q,k,v,out}_proj : d -> d bare
        ^h.{#}.mlp.fc_in : d -> f
        ^h.{#}.mlp.fc_out : f -> d
        ^h.{#}.ln_1 : d
        ^ln_f : d
        lm_head : d -> V
        """,
        "transformer.",
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
        ^embed_tokens.weight = V e
        ^embed_positions.weight = T+2 d
        ^project_in : e -> d bare
        ^project_out : d -> e bare
        ^layers.{#}.self_attn.{q,k,v,out}_proj : d -> d
        ^layers.{#}.{self_attn,final}_layer_norm : d
        ^layers.{#}.fc1 : d -> f
        ^layers.{#}.fc2 : f -> d
        """,
        "model.decoder.",
        {"e": 5},
    ),
    "bloom": SmallModel(
        _config("bloom", "BloomForCausalLM", _BLOOM),
        """
        ^word_embeddings.weight = V d
        ^word_embeddings_layernorm : d
        ^h.{#}.{input,post_attention}_layernorm : d
        ^h.{#}.self_attention.query_key_value : d -> 3d
        ^h.{#}.self_attention.dense : d -> d
        ^h.{#}.mlp.dense_h_to_4h : d -> 4d
        ^h.{#}.mlp.dense_4h_to_h : 4d -> d
        ^ln_f : d
        """,
        "transformer.",
    ),
    "gpt_neox": SmallModel(
        _config(
            "gpt_neox",
            "GPTNeoXForCausalLM",
            _ENCODER,
            {"rotary_pct": 1.0, "tie_word_embeddings": False},
        ),
        """
        ^embed_in.weight = V d
        ^layers.{#}.{input,post_attention}_layernorm : d
        ^layers.{#}.attention.query_key_value : d -> 3d
        ^layers.{#}.attention.dense : d -> d
        ^layers.{#}.mlp.dense_h_to_4h : d -> f
        ^layers.{#}.mlp.dense_4h_to_h : f -> d
        ^final_layer_norm : d
        embed_out : d -> V bare
        """,
        "gpt_neox.",
    ),
    "phi": SmallModel(
        _config("phi", "PhiForCausalLM", _DECODER, partial_rotary_factor=1.0),
        """
        ^embed_tokens.weight = V d
        ^layers.{#}.input_layernorm : d
        ^layers.{#}.self_attn.{q_proj,dense} : d -> d
        ^layers.{#}.self_attn.{k,v}_proj : d -> k
        ^layers.{#}.mlp.fc1 : d -> f
        ^layers.{#}.mlp.fc2 : f -> d
        ^final_layernorm : d
        lm_head : d -> V
        """,
        "model.",
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
        ^word_embeddings.weight = V d
        ^h.{#}.ln_{attn,mlp} : d
        ^h.{#}.self_attention.query_key_value : d -> 2d bare
        ^h.{#}.self_attention.dense : d -> d bare
        ^h.{#}.mlp.dense_h_to_4h : d -> f bare
        ^h.{#}.mlp.dense_4h_to_h : f -> d bare
        ^ln_f : d
        """,
        "transformer.",
    ),
    "llama": _gated(
        "qwen2",
        "Qwen2",
        _BEFORE + _UNTIED + "^layers.{#}.self_attn.q_proj.bias = q\n^layers.{#}.self_attn.{k,v}_proj.bias = k",
    ),
    "qwen3": _gated(
        "qwen3", "Qwen3", _BEFORE + _UNTIED + "^layers.{#}.self_attn.{q,k}_norm : 3 bare", _WIDER, head_dim=3
    ),
    "olmo2": _gated(
        "olmo2",
        "Olmo2",
        _UNTIED
        + """
        ^layers.{#}.post_feedforward_layernorm : d bare
        ^layers.{#}.self_attn.q_norm : d bare
        ^layers.{#}.self_attn.k_norm : k bare
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
    "gemma": _gated("gemma", "Gemma", _BEFORE, _WIDER, head_dim=3, tie_word_embeddings=True),
    "gemma2": _gated(
        "gemma2",
        "Gemma2",
        _BEFORE + "^layers.{#}.{pre,post}_feedforward_layernorm : d bare",
        _WIDER,
        head_dim=3,
        tie_word_embeddings=True,
        query_pre_attn_scalar=3,
    ),
    "vit": SmallModel(
        _config("vit", "ViTForImageClassification", _IMAGES),
        _PATCHES + "^embeddings.position_embeddings = 1 5 d",
        "vit.",
    ),
    "deit": SmallModel(
        _config("deit", "DeiTForImageClassification", _IMAGES),
        _PATCHES + "^embeddings.position_embeddings = 1 6 d\n^embeddings.distillation_token = 1 1 d",
        "deit.",
    ),
    "torch-encoder": SmallModel(
        {"model_type": "torch-encoder", "heads": 4, "d_model": 8, "dim_feedforward": 12, "num_layers": 2},
        """
        layers.{#}.self_attn.in_proj_weight = 3d d
        layers.{#}.self_attn.in_proj_bias = 3d
        layers.{#}.self_attn.out_proj : d -> d
        layers.{#}.linear1 : d -> f
        layers.{#}.linear2 : f -> d
        layers.{#}.norm{1,2} : d
        readout : d -> C
        """,
    ),
    "boundcalc": SmallModel(
        {
            "architecture": Architecture(
                depth=2, d=6, heads=2, seq_len=5, d_head=3, vocabulary=4, positions="fixed", position_radius=1
            ).to_json()
        },
        """
        embedding = 4 6
        positions = 5 6
        W_{Q,K}[{#}] = 2 6 3
        W_V[{#}] = 2 6 6
        W_1[{#}] = 6 6
        readout = 6 1
        """,
    ),
}
"""By the name of their family."""
