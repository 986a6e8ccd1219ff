"""What the fields of a config.json mean to a bound, as data: nothing in a config.json is ignored.

A field is *used* (the architecture is built from it), *agrees* with the tensors (they say the same, else one is
wrong), has *only* the values the family can express, or is *neutral* for a written reason. A field in no table is
doubted. `norms` warns of a doubt, `certify` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from boundcalc.checkpoints.errors import CheckpointError

NEEDED: Any = object()
"""A field without a default: nobody knows the number of heads unless it is said."""


@dataclass(frozen=True)
class ConfigField:
    """One field of a config.json.

    Attributes:
        use: what becomes of it.
        text: what it is read for, or why no other value is sound, or why it means nothing.
        default: its value in the library's config class, where a file does not say it.
        allowed: further values that mean the same function.
        permitted: whether a value does, where they cannot be listed.
        find: what the tensors say (None where they say nothing).
    """

    use: Literal["used", "agrees", "only", "neutral"]
    text: str
    default: Any = None
    allowed: tuple[Any, ...] = ()
    find: Callable[[Any], Any] | None = None
    permitted: Callable[[Any], bool] | None = None

    def permits(self, value: object) -> bool:
        """Whether a value is one of those that "only" lists; 1 is not true, 0 not false."""
        if self.permitted is not None and value is not None:
            return self.permitted(value)
        known = (self.default, *self.allowed)
        return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in known)


def used(text: str, default: Any = NEEDED) -> ConfigField:
    """The adapter reads it."""
    return ConfigField("used", text, default)


def agrees(text: str, find: Callable[[Any], Any]) -> ConfigField:
    """The tensors say it too: `find` of the model is the same."""
    return ConfigField("agrees", text, None, (), find)


def only(why: str, default: Any, *allowed: Any) -> ConfigField:
    """Any other value is another function: `why` says which."""
    return ConfigField("only", why, default, allowed)


def neutral(why: str) -> ConfigField:
    """It changes no value that is bounded."""
    return ConfigField("neutral", why)


Fields = dict[str, ConfigField]


def every(names: str, entry: ConfigField) -> dict[str, ConfigField]:
    """The same entry for several names."""
    return dict.fromkeys(names.split(), entry)


DROPOUT = neutral("dropout acts in training only; the trained model is bounded")
START = neutral("where weights started from; where they ended is read from the file")

COMMON: Fields = {
    "model_type": used("which family it is", None),
    "architectures": used("which read-out the class of the model has", None),
    **every("transformers_version", neutral("which release wrote the file")),
    **every("_name_or_path name_or_path", neutral("where the model came from")),
    **every("torch_dtype dtype use_bfloat16", neutral("how numbers are stored; the tensors say it themselves")),
    **every(
        "return_dict output_attentions output_hidden_states torchscript output_past",
        neutral("what else is returned beside the logits"),
    ),
    **every("use_cache", neutral("keys and values kept from earlier tokens are those computed again")),
    **every(
        "_attn_implementation _attn_implementation_autoset attn_implementation _attn_implementation_internal",
        neutral("which kernel computes the same sums"),
    ),
    **every("chunk_size_feed_forward pretraining_tp", neutral("the same sums, computed in parts")),
    **every("gradient_checkpointing", neutral("memory of training")),
    **every("initializer_range initializer_factor init_std", START),
    **every("id2label label2id num_labels _num_labels", neutral("names of labels; the read-out says how many")),
    **every("problem_type finetuning_task", neutral("the loss of training; the bound is for margins")),
    **every(
        "bos_token_id eos_token_id sep_token_id cls_token_id mask_token_id unk_token_id decoder_start_token_id "
        "forced_bos_token_id forced_eos_token_id tokenizer_class prefix task_specific_params max_sequence_length "
        "model_max_length",
        neutral("how text becomes tokens; the bound is for any tokens"),
    ),
    **every("pad_token_id", neutral("which rows are padding: masks may be any (L7)")),
    **every(
        "max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k "
        "top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size "
        "bad_words_ids num_return_sequences output_scores return_dict_in_generate remove_invalid_values "
        "exponential_decay_length_penalty suppress_tokens begin_suppress_tokens tf_legacy_loss",
        neutral("how text is drawn from logits; the logits are bounded"),
    ),
    "is_encoder_decoder": only("the calculus has no attention to another sequence", False, None),
    "add_cross_attention": only("the calculus has no attention to another sequence", False, None),
    "cross_attention_hidden_size": only("the calculus has no attention to another sequence", None),
    "tie_encoder_decoder": only("the calculus has no attention to another sequence", False, None),
    "pruned_heads": only("blocks with fewer heads than the others are not read", None, {}),
    "quantization_config": only("stored numbers are codes, not the weights that the model multiplies by", None),
    "auto_map": only("the model is the code of its repository, not that of the library", None),
}
"""Fields of every config.json of the transformers library."""


def sizes(**finds: Callable[[Any], Any]) -> dict[str, ConfigField]:
    """Fields that say how large tensors are."""
    return {name: agrees("a size, which the tensors have too", find) for name, find in finds.items()}


def role_rows(role: str) -> Callable[[Any], Any]:
    """Rows of a table, None where there is none."""
    return lambda model: model.shape(role)[0] if model.has(role) else None


def width(role: str, side: int, block: int | None = 0) -> Callable[[Any], Any]:
    """A side of x -> x W."""
    return lambda model: model.shape(role, block)[side] if model.has(role, block) else None


def depth(model: Any) -> int:
    """Number of blocks in the file."""
    return model.depth


def head_width(model: Any) -> int:
    """Width of a head."""
    return model.head_width(model.shape("W_Q", 0)[1])


def key_heads(model: Any) -> int:
    """Key heads, from how many outputs all keys have."""
    return model.shape("W_K", 0)[1] // head_width(model)


def there(role: str, block: int | None = 0) -> Callable[[Any], bool]:
    """Whether the file has such a tensor."""
    return lambda model: model.has(role, block)


TIED = used("whether the read-out is the embedding table", True)
UNTIED = used("whether the read-out is the embedding table", False)

ROTATED: Fields = {
    "rope_parameters": used("the factor of its rotations; angles cost nothing", None),
    "rope_scaling": used("the older name of rope_parameters", None),
    "original_max_position_embeddings": used("the factor of YaRN's and LongRoPE's rotations", None),
    **every("rope_theta partial_rotary_factor", neutral("angles of rotations, which keep norms (S4)")),
}
"""Rotary positions of families that are read without a factor of them."""

MULTIPLE_CHOICE: Fields = every(
    "summary_type summary_use_proj summary_activation summary_proj_to_labels summary_first_dropout",
    neutral("the head of multiple choice, whose tensors are unexpected"),
)

OLD_CONVERTER = neutral("written by an old converter; no model of the library reads it")

STACK: Fields = sizes(
    hidden_size=width("embedding", 1, None),
    num_hidden_layers=depth,
    intermediate_size=width("W_1", 1),
    vocab_size=role_rows("embedding"),
)
"""Sizes of a stack of blocks, whose rows are as wide as the embedding."""

BLOCKS: Fields = {**STACK, "hidden_size": sizes(hidden_size=width("W_Q", 0))["hidden_size"]}
"""The same of blocks that say themselves how wide a row is."""


def renamed(fields: Fields, **names: str) -> Fields:
    """The same fields under names of a family's own."""
    return {names.get(name, name): entry for name, entry in fields.items()}


ENCODER: Fields = {
    "hidden_act": used("activation of the feed-forward part", "gelu"),
    "layer_norm_eps": used("epsilon of every normalisation", 1e-12),
    "num_attention_heads": used("attention heads"),
    "tie_word_embeddings": TIED,
    "is_decoder": used("causal mask", False),
    "max_position_embeddings": agrees("rows of the position table", role_rows("positions")),
    **BLOCKS,
    **sizes(type_vocab_size=role_rows("segments")),
    **every("hidden_dropout_prob attention_probs_dropout_prob classifier_dropout classifier_dropout_prob", DROPOUT),
    "position_embedding_type": only("relative positions add to the scores what no layer here has", "absolute", None),
}
"""BERT and its kin."""

DECODER: Fields = {
    "hidden_act": used("activation of the gated part", "silu"),
    "rms_norm_eps": used("epsilon of every normalisation", 1e-6),
    "num_attention_heads": used("query heads"),
    "num_key_value_heads": agrees("key and value heads", key_heads),
    "max_position_embeddings": used("T, unless it is given; the factor of LongRoPE's rotations", None),
    "tie_word_embeddings": UNTIED,
    **ROTATED,
    "rope_parameters": used(
        "the factor of its rotations, squared, goes into the temperature; angles cost nothing", None
    ),
    "rope_interleaved": neutral("angles of rotations, which keep norms (S4)"),
    "partial_rotary_factor": only("these models rotate whole heads", None, 1.0, 1),
    "attention_bias": agrees("whether queries, keys and values have offsets", there("b_Q")),
    "mlp_bias": agrees("whether the gated part has offsets", there("b_1")),
    **BLOCKS,
    **sizes(head_dim=head_width),
    **every("attention_dropout hidden_dropout", DROPOUT),
}
"""Llama and its kin."""


def _windows(kinds: object) -> bool:
    return isinstance(kinds, list) and all(kind in ("full_attention", "sliding_attention") for kind in kinds)


WINDOW: Fields = {
    "layer_types": ConfigField(
        "only", "only softmax attention under some mask (full, sliding) is known", permitted=_windows
    ),
    **every(
        "sliding_window use_sliding_window max_window_layers",
        neutral("which keys a query sees is a mask fixed in advance: masks may be any (L7)"),
    ),
}
"""Windows of attention."""

_ACTIVATIONS: Mapping[str, str] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
    "mish": "mish",
    "tanh": "tanh",
    "linear": "identity",
}
"""Names of activations in config.json, and ours."""


def activation(name: object) -> str:
    """Our name of an activation."""
    if name == "relu2":
        raise CheckpointError("activation 'relu2' is not Lipschitz: the slope of relu(x)^2 grows with the radius")
    if not isinstance(name, str) or name not in _ACTIVATIONS:
        raise CheckpointError(f"activation {name!r} has no Lipschitz constant here; known: {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[str(name)]
