"""Cases of the families of checkpoints: small models with maps put together by hand, and tables that read them wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.cases import Cases
from boundcalc.checkpoints.families import FAMILIES, Family
from boundcalc.checkpoints.families.native import family_of
from boundcalc.laws.brought.models import MODELS, SmallModel, Tensors
from boundcalc.laws.families import FamilyExample
from boundcalc.setting import Architecture

_Floats = NDArray[np.float64]
_Maps = dict[str, _Floats]


@dataclass(frozen=True)
class _Stored:
    """Tensors of a model by name, "^" for the prefix of its names; `linear` is the map x -> x W of a stored transpose."""

    tensors: Tensors
    prefix: str

    def __getitem__(self, name: str) -> _Floats:
        return self.tensors[name.replace("^", self.prefix)].astype(np.float64)

    def linear(self, name: str) -> _Floats:
        return self[f"{name}.weight"].T

    def joint(self, queries: str, keys: str, head: slice) -> _Floats:
        """W_Q W_K^T of a head, with the offset of its queries as one more row."""
        with_offset = np.vstack([self.linear(queries), self[f"{queries}.bias"]])
        return with_offset[:, head] @ self.linear(keys)[:, head].T


def _encoder(t: _Stored) -> _Maps:
    attention = "^encoder.layer.1.attention.self."
    return {
        "W_QK[1,2]": t.joint(f"{attention}query", f"{attention}key", slice(4, 6)),
        "W_V[1,1]": t.linear(f"{attention}value")[:, 2:4],
        "W_1[0]": t.linear("^encoder.layer.0.intermediate.dense"),
        "norm_ffn.gain[1]": t["^encoder.layer.1.output.LayerNorm.weight"],
        "embedding": t["^embeddings.word_embeddings.weight"],
    }


def _bert(t: _Stored) -> _Maps:
    return _encoder(t) | {
        "W_pool": t.linear("^pooler.dense"),
        "segments": t["^embeddings.token_type_embeddings.weight"],
    }


def _roberta(t: _Stored) -> _Maps:
    """Rows of positions that padding has are never read."""
    return _encoder(t) | {
        "W_pool": t.linear("classifier.dense"),
        "positions": t["^embeddings.position_embeddings.weight"][2:],
    }


def _distilbert(t: _Stored) -> _Maps:
    attention = "^transformer.layer.1.attention."
    return {
        "W_QK[1,2]": t.joint(f"{attention}q_lin", f"{attention}k_lin", slice(4, 6)),
        "W_V[1,1]": t.linear(f"{attention}v_lin")[:, 2:4],
        "W_1[0]": t.linear("^transformer.layer.0.ffn.lin1"),
        "W_pool": t.linear("pre_classifier"),
    }


def _electra(t: _Stored) -> _Maps:
    return _encoder(t) | {"W_in": t.linear("^embeddings_project"), "readout": t.linear("classifier.out_proj")}


def _albert(t: _Stored) -> _Maps:
    """Of five blocks the first three read the first group."""
    groups = [f"^encoder.albert_layer_groups.{group}.albert_layers.0." for group in (0, 1)]
    return {
        "W_V[2,1]": t.linear(f"{groups[0]}attention.value")[:, 2:4],
        "W_1[2]": t.linear(f"{groups[0]}ffn"),
        "W_1[3]": t.linear(f"{groups[1]}ffn"),
        "W_O[4]": t.linear(f"{groups[1]}attention.dense"),
        "W_in": t.linear("^encoder.embedding_hidden_mapping_in"),
    }


def _modernbert(t: _Stored) -> _Maps:
    fused, gated = t.linear("^layers.1.attn.Wqkv"), t.linear("^layers.0.mlp.Wi")
    return {
        "W_Q[1,3]": fused[:, 6:8],
        "W_K[1,0]": fused[:, 8:10],
        "W_V[1,1]": fused[:, 18:20],
        "W_1[0]": gated[:, :12],
        "W_3[0]": gated[:, 12:],
        "W_transform": t.linear("head.dense"),
    }


def _t5(t: _Stored) -> _Maps:
    attention = "^encoder.block.1.layer.0.SelfAttention."
    queries, keys = t.linear(f"{attention}q"), t.linear(f"{attention}k")
    return {
        "W_QK[1,2]": queries[:, 6:9] @ keys[:, 6:9].T,
        "W_V[1,1]": t.linear(f"{attention}v")[:, 3:6],
        "W_1[0]": t.linear("^encoder.block.0.layer.1.DenseReluDense.wi_0"),
        "W_3[0]": t.linear("^encoder.block.0.layer.1.DenseReluDense.wi_1"),
    }


def _gpt2(t: _Stored) -> _Maps:
    """Stored as they multiply rows; the read-out is the table of words."""
    fused, offset = t["^h.1.attn.c_attn.weight"], t["^h.1.attn.c_attn.bias"]
    return {
        "W_QK[1,2]": np.vstack([fused, offset])[:, 4:6] @ fused[:, 12:14].T,
        "W_V[1,3]": fused[:, 22:24],
        "b_V[1,3]": offset[22:24],
        "W_1[0]": t["^h.0.mlp.c_fc.weight"],
        "readout": t["^wte.weight"].T,
    }


def _gptj(t: _Stored) -> _Maps:
    return {
        "W_Q[1,2]": t.linear("^h.1.attn.q_proj")[:, 4:6],
        "W_V[1,1]": t.linear("^h.1.attn.v_proj")[:, 2:4],
        "W_1[0]": t.linear("^h.0.mlp.fc_in"),
        "b_readout": t["lm_head.bias"],
    }


def _opt(t: _Stored) -> _Maps:
    """Two rows of positions are never read."""
    attention = "^layers.1.self_attn."
    return {
        "W_QK[1,2]": t.joint(f"{attention}q_proj", f"{attention}k_proj", slice(4, 6)),
        "W_V[1,1]": t.linear(f"{attention}v_proj")[:, 2:4],
        "W_1[0]": t.linear("^layers.0.fc1"),
        "W_in": t.linear("^project_in"),
        "positions": t["^embed_positions.weight"][2:],
        "readout": t["^embed_tokens.weight"].T,
    }


def _bloom(t: _Stored) -> _Maps:
    """Every head has its query, its key and its value side by side."""
    fused, offset = t.linear("^h.1.self_attention.query_key_value"), t["^h.1.self_attention.query_key_value.bias"]
    return {
        "W_QK[1,2]": np.vstack([fused, offset])[:, 12:14] @ fused[:, 14:16].T,
        "W_V[1,1]": fused[:, 10:12],
        "b_V[1,3]": offset[22:24],
        "W_1[0]": t.linear("^h.0.mlp.dense_h_to_4h"),
    }


def _gpt_neox(t: _Stored) -> _Maps:
    """As Bloom's, with rotations between query and key."""
    fused = t.linear("^layers.1.attention.query_key_value")
    return {
        "W_Q[1,2]": fused[:, 12:14],
        "W_K[1,2]": fused[:, 14:16],
        "W_V[1,1]": fused[:, 10:12],
        "W_1[0]": t.linear("^layers.0.mlp.dense_h_to_4h"),
        "readout": t.linear("embed_out"),
    }


def _phi(t: _Stored) -> _Maps:
    return {
        "W_Q[1,2]": t.linear("^layers.1.self_attn.q_proj")[:, 4:6],
        "W_V[1,1]": t.linear("^layers.1.self_attn.v_proj")[:, 2:4],
        "b_K[1,0]": t["^layers.1.self_attn.k_proj.bias"][:2],
        "W_1[0]": t.linear("^layers.0.mlp.fc1"),
        "W_O[1]": t.linear("^layers.1.self_attn.dense"),
    }


def _falcon(t: _Stored) -> _Maps:
    """Every group has two queries, their key and their value side by side."""
    fused = t.linear("^h.1.self_attention.query_key_value")
    return {
        "W_Q[1,3]": fused[:, 10:12],
        "W_K[1,1]": fused[:, 12:14],
        "W_V[1,0]": fused[:, 6:8],
        "W_1[0]": t.linear("^h.0.mlp.dense_h_to_4h"),
        "norm_ffn.gain[0]": t["^h.0.ln_mlp.weight"],
    }


def _decoder(t: _Stored, width: int = 2) -> _Maps:
    return {
        "W_Q[1,3]": t.linear("^layers.1.self_attn.q_proj")[:, 3 * width :],
        "W_V[1,1]": t.linear("^layers.1.self_attn.v_proj")[:, width:],
        "W_1[0]": t.linear("^layers.0.mlp.gate_proj"),
        "W_3[0]": t.linear("^layers.0.mlp.up_proj"),
        "W_2[1]": t.linear("^layers.1.mlp.down_proj"),
    }


def _llama(t: _Stored) -> _Maps:
    return _decoder(t) | {"b_Q[1,2]": t["^layers.1.self_attn.q_proj.bias"][4:6], "readout": t.linear("lm_head")}


def _qwen3(t: _Stored) -> _Maps:
    return _decoder(t, 3) | {"norm_Q.gain[1]": t["^layers.1.self_attn.q_norm.weight"]}


def _olmo2(t: _Stored) -> _Maps:
    return _decoder(t) | {
        "norm_K.gain[1]": t["^layers.1.self_attn.k_norm.weight"],
        "norm_attention_out.gain[1]": t["^layers.1.post_attention_layernorm.weight"],
    }


def _granite(t: _Stored) -> _Maps:
    """The constants of its config.json go into the weights."""
    return {
        **{key: w for key, w in _decoder(t).items() if key != "W_2[1]"},
        "W_2[1]": 0.3 * t.linear("^layers.1.mlp.down_proj"),
        "W_O[0]": 0.3 * t.linear("^layers.0.self_attn.o_proj"),
        "embedding": 3 * t["^embed_tokens.weight"],
        "readout": t.linear("lm_head") / 2.5,
    }


def _gemma(t: _Stored) -> _Maps:
    """The table of words is read times the root of a row's width, and is the read-out as it stands."""
    words = t["^embed_tokens.weight"]
    return _decoder(t, 3) | {"embedding": float(np.float32(8**0.5)) * words, "readout": words.T}


def _gemma2(t: _Stored) -> _Maps:
    return _gemma(t) | {
        "norm_attention_out.gain[1]": t["^layers.1.post_attention_layernorm.weight"],
        "norm_ffn.gain[1]": t["^layers.1.pre_feedforward_layernorm.weight"],
    }


def _vit(t: _Stored) -> _Maps:
    """A class token is read as part of position 0, whose row of the input is zeros."""
    positions = t["^embeddings.position_embeddings"][0].copy()
    offset = t["^embeddings.patch_embeddings.projection.bias"]
    for row, token in enumerate(("cls", "distillation")):
        if f"{t.prefix}embeddings.{token}_token" in t.tensors:
            positions[row] += t[f"^embeddings.{token}_token"][0, 0] - offset
    attention = "^encoder.layer.1.attention.attention."
    return {
        "W_patch": t["^embeddings.patch_embeddings.projection.weight"].reshape(8, 12).T,
        "positions": positions,
        "W_QK[1,2]": t.joint(f"{attention}query", f"{attention}key", slice(4, 6)),
        "W_V[1,1]": t.linear(f"{attention}value")[:, 2:4],
        "W_1[0]": t.linear("^encoder.layer.0.intermediate.dense"),
    }


def _torch_encoder(t: _Stored) -> _Maps:
    fused = t["layers.1.self_attn.in_proj_weight"].T
    offset = t["layers.1.self_attn.in_proj_bias"]
    return {
        "W_QK[1,2]": np.vstack([fused, offset])[:, 4:6] @ fused[:, 12:14].T,
        "W_V[1,1]": fused[:, 18:20],
        "W_1[0]": t.linear("layers.0.linear1"),
    }


def _boundcalc(t: _Stored) -> _Maps:
    """Stored as they multiply rows, head by head."""
    queries, keys = t["W_Q[1]"], t["W_K[1]"]
    return {"W_QK[1,0]": queries[0] @ keys[0].T, "W_V[0,1]": t["W_V[0]"][1], "W_1[1]": t["W_1[1]"]}


_STRANGE = "no such thing"
_BROUGHT: Mapping[str, tuple[Callable[[_Stored], _Maps], Mapping[str, Any]]] = {
    "bert": (_bert, {"hidden_act": _STRANGE, "position_embedding_type": "relative_key"}),
    "roberta": (_roberta, {"hidden_act": _STRANGE, "pad_token_id": -1}),
    "distilbert": (_distilbert, {"activation": _STRANGE, "is_decoder": True}),
    "electra": (_electra, {"hidden_act": _STRANGE, "embedding_size": 8}),
    "albert": (_albert, {"hidden_act": _STRANGE, "inner_group_num": 2}),
    "modernbert": (_modernbert, {"hidden_activation": _STRANGE, "rope_parameters": {"rope_type": "yarn"}}),
    "t5": (_t5, {"feed_forward_proj": "relu", "is_decoder": True}),
    "gpt2": (_gpt2, {"activation_function": _STRANGE, "n_inner": 32}),
    "gptj": (_gptj, {"activation_function": _STRANGE, "scale_attn_weights": False}),
    "opt": (_opt, {"activation_function": _STRANGE, "enable_bias": False}),
    "bloom": (_bloom, {"layer_norm_epsilon": 0, "is_encoder_decoder": True}),
    "gpt_neox": (_gpt_neox, {"hidden_act": _STRANGE, "attention_bias": False}),
    "phi": (_phi, {"hidden_act": _STRANGE, "qk_layernorm": True}),
    "falcon": (_falcon, {"activation": _STRANGE, "num_ln_in_parallel_attn": 1}),
    "llama": (_llama, {"hidden_act": _STRANGE, "use_mrope": True}),
    "qwen3": (_qwen3, {"hidden_act": _STRANGE, "layer_types": ["linear_attention"]}),
    "olmo2": (_olmo2, {"hidden_act": _STRANGE, "partial_rotary_factor": 0.5}),
    "granite": (_granite, {"hidden_act": _STRANGE, "residual_multiplier": 0}),
    "gemma": (_gemma, {"hidden_act": _STRANGE, "hidden_activation": "relu"}),
    "gemma2": (_gemma2, {"hidden_activation": _STRANGE, "hidden_act": "relu"}),
    "vit": (_vit, {"hidden_act": _STRANGE, "image_size": 9}),
    "deit": (_vit, {"hidden_act": _STRANGE, "patch_size": 1}),
    "torch-encoder": (_torch_encoder, {"activation": _STRANGE, "norm_first": "perhaps"}),
    "boundcalc": (_boundcalc, {"architecture": None}),
}
"""Some maps of each model, and fields of its config.json with values that no bound here is for."""


def _renamed(family: Family, **roles: str) -> Family:
    """The table with other roles for some tensors."""
    tensors = {pattern: roles.get(role.partition(".")[0], role) for pattern, role in family.tensors.items()}
    return replace(family, tensors=tensors)


def _wrong(family: Family) -> Iterator[tuple[str, Family]]:
    """Tables that mistake how something is stored: whatever this family has of what can be mistaken."""
    roles = {role.partition(".")[0]: role for role in family.tensors.values() if "." not in role.removesuffix(".T")}
    for role in ("W_1", "W_13"):
        if role in roles:
            other = role if roles[role].endswith(".T") else f"{role}.T"
            yield "a stored transpose taken for the map, or the other way round", _renamed(family, **{role: other})
    if "W_Q" in roles:
        swapped = {"W_Q": roles["W_V"], "W_V": roles["W_Q"]}
        yield "queries taken for values", _renamed(family, **swapped)
    else:
        yield (
            "heads side by side taken for one after the other, or the other way round",
            replace(family, by_group=not family.by_group),
        )
    if "W_13" in roles:
        yield "halves swapped", replace(family, halves={**family.halves, "W_13": family.halves["W_13"][::-1]})
    if family.scales:
        yield "factors of weights forgotten", replace(family, scales={})
    if "positions" in roles and family.name in ("opt", "roberta"):
        yield "rows of positions that nobody reads", replace(family, first_position=lambda _: 0)
    if family.name == "albert":
        yield "every block with weights of its own", replace(family, stored_block=lambda _, block: block % 2)
    if "class_token" in roles:
        yield "a class token left out", replace(family, tokens=())


def _example(model: SmallModel, maps: Callable[[_Stored], _Maps]) -> FamilyExample:
    tensors = model.drawn()
    return FamilyExample(tensors, model.config, maps(_Stored(tensors, model.prefix)))


def cases(name: str) -> Cases[Family, FamilyExample]:
    """What the library's family of that name brings."""
    maps, refused = _BROUGHT[name]
    here = _example(MODELS[name], maps)
    family = FAMILIES[name]
    if name == "boundcalc":  # whose table is made of the architecture
        family = family_of(Architecture.from_json(here.config["architecture"]))
    refusals = [
        (here.but(**{field: value}), f"{re.escape(field)}|{re.escape(str(value))}") for field, value in refused.items()
    ]
    return Cases([here], refusals, dict(_wrong(family)))
