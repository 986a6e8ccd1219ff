"""Small models of every family of the library, with what holds their forward pass against ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.checkpoints.audit import open_model
from boundcalc.checkpoints.forward import Network, fixed_beside
from boundcalc.checkpoints.traced import rows_of_images
from tests.checkpoints.live import DISTIL, GPT2, GROUPED, SMALL, VIT, hf, seeded, torch

TOKENS = (15, 27, 19, 13, 20, 11, 24, 16)
NARROW = SMALL | {"embedding_size": 8}
OPT: dict[str, Any] = {
    **{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 24, "vocab_size": 31},
    **{"max_position_embeddings": 12, "word_embed_proj_dim": 16, "pad_token_id": 1},
}
HALF = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 4}
LONG |= {"short_factor": [1.0, 1.5], "long_factor": [2.0, 3.0]}
"""Sequences of the forward check are longer than 4 rows."""
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 1.5, "original_max_position_embeddings": 4}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
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
    """A class of the library and a small config of it."""

    cls: str
    values: dict[str, Any]

    @property
    def last(self) -> bool:
        """Whether the row that is read is the last one."""
        return self.cls.endswith(("ForCausalLM", "LMHeadModel")) or "TextModel" in self.cls

    def make(self, **changes: Any) -> Any:
        """A model in float64, without fused attention."""
        return self.of(self.config(**(self.values | changes)))

    @property
    def config(self) -> Any:
        """The class of its config."""
        return getattr(hf, self.cls).config_class

    def of(self, config: Any) -> Any:
        """The model of a config."""
        config._attn_implementation = "eager"
        return seeded(lambda: getattr(hf, self.cls)(config)).double()


_UNCAPPED = {"attn_logit_softcapping": None, "final_logit_softcapping": None}
_OFFSETS = {"mlp_bias": True, "norm_bias": True, "attention_bias": True}
_CLIP = {"projection_dim": 6, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": TOKENS[-1]}
ZOO: dict[str, Kind] = {
    "bert": Kind("BertForSequenceClassification", SMALL | {"num_labels": 3}),
    "bert mlm": Kind("BertForMaskedLM", SMALL),
    "bert decoder": Kind("BertLMHeadModel", SMALL | {"is_decoder": True}),
    "roberta": Kind("RobertaForSequenceClassification", SMALL | {"num_labels": 3}),
    "roberta mlm": Kind("RobertaForMaskedLM", SMALL | {"hidden_act": "relu"}),
    "distilbert": Kind("DistilBertForSequenceClassification", DISTIL),
    "distilbert mlm": Kind("DistilBertForMaskedLM", DISTIL),
    "electra": Kind("ElectraForSequenceClassification", NARROW | {"num_labels": 3}),
    "electra mlm": Kind("ElectraForMaskedLM", NARROW | {"hidden_act": "relu"}),
    "gpt2": Kind("GPT2LMHeadModel", GPT2),
    "opt": Kind("OPTForCausalLM", OPT),
    "gpt_neox": Kind("GPTNeoXForCausalLM", SMALL | {"use_parallel_residual": False, "rope_parameters": HALF}),
    "gpt_neox parallel": Kind("GPTNeoXForCausalLM", SMALL | {"rope_parameters": HALF}),
    "gptj": Kind("GPTJForCausalLM", GPT2 | {"rotary_dim": 2}),
    "gptj whole": Kind("GPTJForCausalLM", GPT2 | {"rotary_dim": 4, "n_inner": 24, "tie_word_embeddings": True}),
    "phi": Kind("PhiForCausalLM", GROUPED | {"rope_parameters": HALF}),
    "bloom": Kind("BloomForCausalLM", BLOOM),
    "falcon": Kind("FalconForCausalLM", FALCON),
    "falcon groups": Kind("FalconForCausalLM", FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "gemma": Kind("GemmaForCausalLM", GROUPED | {"head_dim": 6}),
    "gemma2": Kind("Gemma2ForCausalLM", GROUPED | GEMMA2),
    "gemma2 without caps": Kind("Gemma2ForCausalLM", GROUPED | GEMMA2 | _UNCAPPED),
    "modernbert": Kind("ModernBertForSequenceClassification", MODERN | {"classifier_pooling": "mean", "num_labels": 3}),
    "modernbert mlm": Kind("ModernBertForMaskedLM", MODERN | _OFFSETS),
    "llama": Kind("LlamaForCausalLM", GROUPED),
    "mistral": Kind("MistralForCausalLM", GROUPED | {"sliding_window": 3}),
    "llama longrope": Kind("LlamaForCausalLM", GROUPED | {"rope_parameters": LONG}),
    "llama yarn": Kind("LlamaForCausalLM", GROUPED | {"rope_parameters": YARN}),
    "llama dynamic": Kind("LlamaForCausalLM", GROUPED | {"rope_parameters": DYNAMIC}),
    "bert quick_gelu": Kind("BertForMaskedLM", SMALL | {"hidden_act": "quick_gelu"}),
    "bert gelu_accurate": Kind("BertForMaskedLM", SMALL | {"hidden_act": "gelu_accurate"}),
    "qwen2": Kind("Qwen2ForCausalLM", GROUPED),
    "qwen3": Kind("Qwen3ForCausalLM", GROUPED | {"head_dim": 6}),
    "olmo2": Kind("Olmo2ForCausalLM", GROUPED | {"pad_token_id": 0}),
    "t5": Kind("T5ForTokenClassification", T5 | {"num_labels": 3}),
    "t5 gated": Kind("T5ForTokenClassification", T5 | {"num_labels": 3, "feed_forward_proj": "gated-gelu"}),
    "granite": Kind("GraniteForCausalLM", GROUPED | GRANITE),
    "phi3": Kind("Phi3ForCausalLM", GROUPED | {"pad_token_id": 0}),
    "smollm3": Kind("SmolLM3ForCausalLM", GROUPED | {"no_rope_layers": [1, 0], "pad_token_id": 0}),
    "gemma3": Kind("Gemma3ForCausalLM", GROUPED | {"head_dim": 6, "query_pre_attn_scalar": 3, "sliding_window": 3}),
    "mpnet": Kind("MPNetForSequenceClassification", SMALL | {"num_labels": 3}),
    "mpnet mlm": Kind("MPNetForMaskedLM", SMALL),
    "clip vision": Kind("CLIPVisionModelWithProjection", VIT | {"projection_dim": 6}),
    "clip text": Kind("CLIPTextModelWithProjection", SMALL | _CLIP),
    "siglip text": Kind("SiglipTextModel", SMALL | {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}),
    "siglip vision": Kind("SiglipVisionModel", VIT),
    "dinov2": Kind("Dinov2Model", VIT | {"mlp_ratio": 2}),
    "vit": Kind("ViTForImageClassification", VIT | {"num_labels": 5}),
    "deit": Kind("DeiTForImageClassification", VIT | {"num_labels": 5}),
}


def logits(kind: Kind, model: Any) -> NDArray[np.float64]:
    """What the library computes for one input, at the row that is read."""
    if kind.values.get("image_size"):
        out = model(pixel_values=picture(kind))
        return (out.image_embeds if hasattr(out, "image_embeds") else out.logits)[0].detach().numpy()
    out = model(torch.tensor([TOKENS]))
    names = ("logits", "text_embeds", "pooler_output")
    out = next(getattr(out, name) for name in names if hasattr(out, name)).detach().numpy()[0]
    return out if out.ndim == 1 else out[-1 if kind.last else 0]


def picture(kind: Kind) -> Any:
    """Pixels in [-1, 1]."""
    torch.manual_seed(3)
    side = kind.values["image_size"]
    return torch.rand(1, 3, side, side, dtype=torch.float64) * 2 - 1


def ours(kind: Kind, source: object, model: Any) -> NDArray[np.float64]:
    """What the architecture computes with the tensors; `model` says the angles of its rotations, and no more."""
    seen = open_model(source)
    network = Network(seen, replace(fixed_beside(model, seen), row=-1 if kind.last else 0))
    if not kind.values.get("image_size"):
        return network([TOKENS])[0]
    return network(rows_of_images(seen, picture(kind).numpy()))[0]
