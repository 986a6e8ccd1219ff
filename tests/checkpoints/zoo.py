"""Small models of every family of the library, with what holds their forward pass against ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.checkpoints.forward import Network, Rotate
from tests.checkpoints.live import DISTIL, GPT2, GROUPED, SMALL, VIT, hf, seeded, torch

TOKENS = (15, 27, 19, 13, 20, 11, 24, 16)
NARROW = SMALL | {"embedding_size": 8}
OPT: dict[str, Any] = {
    **{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 24, "vocab_size": 31},
    **{"max_position_embeddings": 12, "word_embed_proj_dim": 16, "pad_token_id": 1},
}
HALF = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
GRANITE: dict[str, Any] = {
    **{"embedding_multiplier": 3.0, "residual_multiplier": 0.3, "logits_scaling": 2.5, "attention_multiplier": 0.7}
}

T5: dict[str, Any] = {
    **{"d_model": 16, "d_kv": 6, "d_ff": 24, "num_layers": 2, "num_heads": 4, "vocab_size": 31, "n_positions": 12},
    **{"relative_attention_num_buckets": 6, "relative_attention_max_distance": 8},
    **{"is_encoder_decoder": False, "use_cache": False},
}
BLOOM: dict[str, Any] = {"hidden_size": 16, "n_layer": 2, "n_head": 4, "vocab_size": 31, "seq_length": 12}
FALCON: dict[str, Any] = {
    **{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_hidden_size": 24, "vocab_size": 31},
    **{"max_position_embeddings": 12},
}
GEMMA2: dict[str, Any] = {
    **{"head_dim": 6, "query_pre_attn_scalar": 3, "attn_logit_softcapping": 0.4, "final_logit_softcapping": 0.3},
    **{"sliding_window": 3},
}
MODERN = SMALL | {"num_hidden_layers": 3, "local_attention": 4, "pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2}


@dataclass(frozen=True)
class Kind:
    """A class of the library and a small config of it; `last`: the row that is read is the last one."""

    cls: str
    config: str
    values: dict[str, Any]
    last: bool = False

    def make(self, **changes: Any) -> Any:
        """A model in float64, without fused attention."""
        return self.of(getattr(hf, self.config)(**(self.values | changes)))

    def of(self, config: Any) -> Any:
        """The model of a config."""
        # with ALiBi, Falcon's plain kernel adds its numbers twice
        config._attn_implementation = "sdpa" if getattr(config, "alibi", False) else "eager"
        return seeded(lambda: getattr(hf, self.cls)(config)).double()


ZOO: dict[str, Kind] = {
    "bert": Kind("BertForSequenceClassification", "BertConfig", SMALL | {"num_labels": 3}),
    "bert mlm": Kind("BertForMaskedLM", "BertConfig", SMALL),
    "bert decoder": Kind("BertLMHeadModel", "BertConfig", SMALL | {"is_decoder": True}, last=True),
    "bert untied": Kind("BertForMaskedLM", "BertConfig", SMALL | {"tie_word_embeddings": False}),
    "roberta": Kind("RobertaForSequenceClassification", "RobertaConfig", SMALL | {"num_labels": 3}),
    "roberta mlm": Kind("RobertaForMaskedLM", "RobertaConfig", SMALL | {"hidden_act": "relu"}),
    "distilbert": Kind("DistilBertForSequenceClassification", "DistilBertConfig", DISTIL),
    "distilbert mlm": Kind("DistilBertForMaskedLM", "DistilBertConfig", DISTIL),
    "electra": Kind("ElectraForSequenceClassification", "ElectraConfig", NARROW | {"num_labels": 3}),
    "electra mlm": Kind("ElectraForMaskedLM", "ElectraConfig", NARROW | {"hidden_act": "relu"}),
    "albert": Kind(
        "AlbertForSequenceClassification", "AlbertConfig", NARROW | {"num_hidden_layers": 5, "num_hidden_groups": 2}
    ),
    "albert mlm": Kind("AlbertForMaskedLM", "AlbertConfig", NARROW),
    "gpt2": Kind("GPT2LMHeadModel", "GPT2Config", GPT2, last=True),
    "gpt2 by layer": Kind("GPT2LMHeadModel", "GPT2Config", GPT2 | {"scale_attn_by_inverse_layer_idx": True}, last=True),
    "opt": Kind("OPTForCausalLM", "OPTConfig", OPT, last=True),
    "opt narrow": Kind(
        "OPTForCausalLM", "OPTConfig", OPT | {"word_embed_proj_dim": 8, "do_layer_norm_before": False}, last=True
    ),
    "gpt_neox": Kind(
        "GPTNeoXForCausalLM",
        "GPTNeoXConfig",
        SMALL | {"use_parallel_residual": False, "rope_parameters": HALF},
        last=True,
    ),
    "gpt_neox parallel": Kind("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL | {"rope_parameters": HALF}, last=True),
    "gptj": Kind("GPTJForCausalLM", "GPTJConfig", GPT2 | {"rotary_dim": 2}, last=True),
    "gptj whole": Kind(
        "GPTJForCausalLM", "GPTJConfig", GPT2 | {"rotary_dim": 4, "n_inner": 24, "tie_word_embeddings": True}, last=True
    ),
    "phi": Kind("PhiForCausalLM", "PhiConfig", GROUPED | {"rope_parameters": HALF}, last=True),
    "bloom": Kind("BloomForCausalLM", "BloomConfig", BLOOM, last=True),
    "bloom old": Kind(
        "BloomForCausalLM", "BloomConfig", BLOOM | {"apply_residual_connection_post_layernorm": True}, last=True
    ),
    "falcon": Kind("FalconForCausalLM", "FalconConfig", FALCON, last=True),
    "falcon groups": Kind(
        "FalconForCausalLM", "FalconConfig", FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2}, last=True
    ),
    "falcon alibi": Kind(
        "FalconForCausalLM",
        "FalconConfig",
        FALCON | {"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True},
        last=True,
    ),
    "gemma": Kind("GemmaForCausalLM", "GemmaConfig", GROUPED | {"head_dim": 6}, last=True),
    "gemma2": Kind("Gemma2ForCausalLM", "Gemma2Config", GROUPED | GEMMA2, last=True),
    "gemma2 without caps": Kind(
        "Gemma2ForCausalLM",
        "Gemma2Config",
        GROUPED | GEMMA2 | {"attn_logit_softcapping": None, "final_logit_softcapping": None},
        last=True,
    ),
    "modernbert": Kind(
        "ModernBertForSequenceClassification",
        "ModernBertConfig",
        MODERN | {"classifier_pooling": "mean", "num_labels": 3},
    ),
    "modernbert mlm": Kind(
        "ModernBertForMaskedLM",
        "ModernBertConfig",
        MODERN | {"mlp_bias": True, "norm_bias": True, "attention_bias": True},
    ),
    "llama": Kind("LlamaForCausalLM", "LlamaConfig", GROUPED, last=True),
    "mistral": Kind("MistralForCausalLM", "MistralConfig", GROUPED, last=True),
    "qwen2": Kind("Qwen2ForCausalLM", "Qwen2Config", GROUPED, last=True),
    "qwen3": Kind("Qwen3ForCausalLM", "Qwen3Config", GROUPED | {"head_dim": 6}, last=True),
    "olmo2": Kind("Olmo2ForCausalLM", "Olmo2Config", GROUPED | {"pad_token_id": 0}, last=True),
    "t5": Kind("T5ForTokenClassification", "T5Config", T5 | {"num_labels": 3}),
    "t5 gated": Kind("T5ForTokenClassification", "T5Config", T5 | {"num_labels": 3, "feed_forward_proj": "gated-gelu"}),
    "granite": Kind("GraniteForCausalLM", "GraniteConfig", GROUPED | GRANITE, last=True),
    "vit": Kind("ViTForImageClassification", "ViTConfig", VIT | {"num_labels": 5}),
    "deit": Kind("DeiTForImageClassification", "DeiTConfig", VIT | {"num_labels": 5}),
}


def logits(kind: Kind, model: Any) -> NDArray[np.float64]:
    """What the library computes for one input, at the row that is read."""
    if kind.values.get("image_size"):
        return model(pixel_values=picture(kind)).logits[0].detach().numpy()
    out = model(torch.tensor([TOKENS])).logits.detach().numpy()[0]
    return out if out.ndim == 1 else out[-1 if kind.last else 0]


def picture(kind: Kind) -> Any:
    """Pixels in [-1, 1]."""
    torch.manual_seed(3)
    side = kind.values["image_size"]
    return torch.rand(1, 3, side, side, dtype=torch.float64) * 2 - 1


def ours(kind: Kind, source: object, model: Any) -> NDArray[np.float64]:
    """What the architecture computes with the tensors; `model` says the angles of its rotations, and no more."""
    network = Network(source, row=-1 if kind.last else 0, rotate=_rotation(model), **_options(kind, model))
    if not kind.values.get("image_size"):
        return network(TOKENS)
    patch = kind.values["patch_size"]
    patches = picture(kind)[0].unfold(1, patch, patch).unfold(2, patch, patch).permute(1, 2, 0, 3, 4)
    rows = patches.reshape(-1, 3 * patch * patch).numpy()
    before = 2 if "Deit" in kind.cls or "DeiT" in kind.cls else 1
    return network(np.vstack([np.zeros((before, rows.shape[1])), rows]))


def _options(kind: Kind, model: Any) -> dict[str, Any]:
    """What is fixed in advance and no weight: numbers that positions add to scores, and windows."""
    config, found = model.config, dict[str, Any]()
    if kind.config == "BloomConfig" or getattr(config, "alibi", False):
        found["added"] = lambda count: _alibi(model, count)
    if kind.config == "T5Config":
        found["bucket"] = lambda count: _buckets(model, count)
    types = getattr(config, "layer_types", None)
    if types and config.sliding_window is not None:
        causal = kind.config != "ModernBertConfig"

        def window(block: int, count: int) -> NDArray[np.bool_]:
            apart = np.arange(count)[:, None] - np.arange(count)
            near = apart < config.sliding_window if causal else abs(apart) <= config.sliding_window
            return near if types[block] == "sliding_attention" else np.ones_like(near)

        found["window"] = window
    return found


def _buckets(model: Any, count: int) -> NDArray[np.int64]:
    """T5's numbers of pairs of positions, as the library has them."""
    place = torch.arange(count)
    attention = next(module for module in model.modules() if hasattr(module, "_relative_position_bucket"))
    far = model.config.relative_attention_max_distance
    many = model.config.relative_attention_num_buckets
    return attention._relative_position_bucket(place[None] - place[:, None], num_buckets=many, max_distance=far).numpy()


def _alibi(model: Any, count: int) -> NDArray[np.float64]:
    """ALiBi's numbers, as the library has them."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor as bloom
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor as falcon

    config, rows = model.config, torch.ones(1, count, dtype=torch.long)
    make, scale = (bloom, 1.0) if config.model_type == "bloom" else (falcon, (config.head_dim) ** -0.5)
    table = make(rows, config.num_attention_heads, torch.float64).numpy().reshape(-1, 1, count)
    return np.broadcast_to(table * scale, (len(table), count, count))


def _rotation(model: Any) -> Rotate | None:
    """Turns rows by the model's own angles, without any factor."""
    found = [module for name, module in model.named_modules() if name.endswith("rotary_emb")]
    tables = [buffer for name, buffer in model.named_buffers() if name.endswith("embed_positions")]
    if tables:
        return _in_pairs(*np.split(tables[0].detach().double().numpy(), 2, axis=1))
    if not found or getattr(model.config, "alibi", False):
        return None

    def rotate(x: NDArray[np.float64], block: int | None) -> NDArray[np.float64]:
        name = "inv_freq" if hasattr(found[0], "inv_freq") else f"{model.config.layer_types[block]}_inv_freq"
        speeds = getattr(found[0], name).detach().double().numpy()
        angles = np.arange(x.shape[1])[:, None] * speeds
        a, b = np.split(x[..., : 2 * len(speeds)], 2, axis=-1)
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * len(speeds) :]], axis=-1)

    return rotate


def _in_pairs(sin: NDArray[np.float64], cos: NDArray[np.float64]) -> Rotate:
    """Turns entries 1 and 2, 3 and 4, ... of every row together, as GPT-J does."""

    def rotate(x: NDArray[np.float64], _: int | None) -> NDArray[np.float64]:
        rows, width = x.shape[1], 2 * sin.shape[1]
        a, b = x[..., 0:width:2], x[..., 1:width:2]
        turned = np.stack([a * cos[:rows] - b * sin[:rows], b * cos[:rows] + a * sin[:rows]], axis=-1)
        return np.concatenate([turned.reshape(*a.shape[:-1], width), x[..., width:]], axis=-1)

    return rotate
