"""What the fields of a config.json mean: the few that a family reads, and those that change no bounded function.

A forward check decides whether a description is the model. Without one, a field that a family neither reads nor knows
is a
doubt: `norms` prints it, `certify` refuses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boundcalc.base.validate import positive, size
from boundcalc.checkpoints.errors import CheckpointError

NEUTRAL = re.compile(
    r"model_type|transformers_version|_?name_or_path|(torch_)?dtype|use_bfloat16|return_dict"
    r"|output_(attentions|hidden_states|past)"
    r"|torchscript|use_cache|cache_implementation|_?attn_implementation\w*|chunk_size_feed_forward|pretraining_tp"
    r"|gradient_checkpointing|initializer_\w+|init_std|id2label|label2id|_?num_labels|problem_type|finetuning_task"
    r"|\w+_token_id"
    r"|tokenizer_class|prefix|task_specific_params|max_sequence_length|model_max_length|\w*(dropout|pdrop)\w*|layerdrop"
    r"|summary_\w+"
    r"|rope_theta|rotary_\w+|rope_interleaved|(use_)?sliding_window|max_window_layers|use_bidirectional_attention"
    r"|unsloth_version|pooler_(fc_size|num_attention_heads|num_fc_layers|size_per_head|type)|directionality"
    # sizes, which the tensors say
    r"|num_hidden_layers|n_layers?|num_layers|num_attention_heads|n_heads?|num_heads|head_dim|d_kv|num_key_value_heads"
    r"|hidden_size"
    r"|n_embe?d|d_model|dim|intermediate_size|n_inner|d_ff|hidden_dim|ffn_dim|ffn_hidden_size|attention_bias"
    r"|qkv_bias|mlp_bias"
    r"|enable_bias|bias|norm_bias|num_ln_in_parallel_attn|vocab_size|embedding_size"
    r"|word_embed_proj_dim|max_position_embeddings|n_positions|n_ctx|type_vocab_size|relative_attention_num_buckets"
    r"|num_channels"
    r"|patch_size|image_size|architectures"
    # how text is drawn from logits
    r"|max_length|min_length|do_sample|early_stopping|num_beam\w*|diversity_penalty|temperature|top_[kp]|typical_p"
    r"|\w+_penalty"
    r"|(encoder_)?no_repeat_ngram_size|bad_words_ids|num_return_sequences|output_scores|return_dict_in_generate"
    r"|remove_invalid_values|(begin_)?suppress_tokens|tf_legacy_loss"
)
"""Fields that change no bounded function: training, storage, text, other outputs. Masks (L7) and angles (S4) cost
nothing."""

ONLY: Mapping[str, tuple[Any, ...]] = {
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (),
    "tie_encoder_decoder": (False,),
    "pruned_heads": ({},),
    "auto_map": (),
    "use_mrope": (False,),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "partial_rotary_factor": (1, 1.0),
}
"""Fields of any family, and the values that leave the function as it is described."""

_ATTENTION = {"full_attention", "sliding_attention"}
ACTIVATIONS: Mapping[str, str] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "silu": "silu",
    "swish": "silu",
    "mish": "mish",
    "tanh": "tanh",
    "linear": "identity",
    "gated-gelu": "gelu_tanh",  # T5's words for gated parts
    "gated-relu": "relu",
    "gated-silu": "silu",
}
"""Names of activations in config.json, and ours."""


def activation(name: object) -> str:
    """Our name of an activation."""
    if name == "relu2":
        raise CheckpointError("activation 'relu2' is not Lipschitz: the slope of relu(x)^2 grows with the radius")
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise CheckpointError(
            f"activation {name!r:.60} has no Lipschitz constant here; known: {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


@dataclass(frozen=True)
class Options:
    """What the user says of the model beyond its files.

    Attributes:
        seq_len: T; unset, the longest sequence that its positions allow.
        input_radius: largest l2 norm of an input row, for vector inputs.
        heads: attention heads, where no config says so.
        classes: logits of a read-out that is not in the checkpoint.
        settings: further settings, as config.json would have them.
    """

    seq_len: int | None = None
    input_radius: float | None = None
    heads: int | None = None
    classes: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for name, value in (("T", self.seq_len), ("heads", self.heads), ("classes", self.classes)):
            if value is not None:
                size(name, value)
        if self.input_radius is not None:
            positive("input radius", self.input_radius)


@dataclass(frozen=True)
class Settings:
    """The fields of one model: said by the user, else by its config.json, else the library's default.

    Attributes:
        where: what the user pointed at.
        said: by the user, before all else; null stands for the library's default.
        config: config.json.
        read: names of the fields that the description was built from.
        assumed: fields that no file gives, and their defaults.
        lasting: doubts that a forward check does not settle.
    """

    where: str
    said: Mapping[str, Any]
    config: Mapping[str, Any]
    read: set[str] = field(default_factory=set[str])
    assumed: dict[str, Any] = field(default_factory=dict[str, Any])
    doubts: list[str] = field(default_factory=list[str])
    lasting: list[str] = field(default_factory=list[str])

    def get(self, name: str, default: Any = None, *, null: bool = False) -> Any:
        """A field's value; `null`: whether null in config.json is a value, not silence."""
        self.read.add(name)
        if self.said.get(name) is not None:
            return self.said[name]
        if name not in self.said and name in self.config and (null or self.config[name] is not None):
            return self.config[name]
        if default is not None:
            self.assumed[name] = default
        return default

    def doubted(self, only: Mapping[str, tuple[Any, ...]], neutral: str) -> list[str]:
        """Fields because of which the model may not be the one that is described.

        `only` are further fields of the family, with the values that leave the description as it is; `neutral` is a
        pattern of further fields that change no bounded function.
        """
        found = list(self.doubts)
        for name, value in {**self.config, **self.said}.items():
            if value is None or name in self.read or NEUTRAL.fullmatch(name) or re.fullmatch(neutral, name):
                continue
            if name == "layer_types" and isinstance(value, list) and set(map(str, value)) <= _ATTENTION:
                continue  # masks may be any (L7)
            known = {**ONLY, **only}.get(name)
            if known is None:
                found.append(
                    f"{_shown(name, value)} is not known; if the model does not read it, say --set {name}=null"
                )
            elif not any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in known):
                words = " or ".join(repr(each) for each in known) or "nothing else than null"
                found.append(f"{_shown(name, value)}, but the description has {words}")
        return found


def _shown(name: str, value: object) -> str:
    text = ascii(value)
    return f"{name} = {text if len(text) <= 60 else text[:60] + '...'}"


# -- rotary positions

_ANY = ("rope_type", "type", "rope_theta", "partial_rotary_factor")
_ROTATIONS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor", "original_max_position_embeddings"),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
    "yarn": (
        *("factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow"),
        *("mscale", "mscale_all_dim", "truncate"),
    ),
    "longrope": ("factor", "original_max_position_embeddings", "attention_factor", "short_factor", "long_factor"),
}
"""Types of rotary positions, and the fields of each."""


def rotation_factor(settings: Settings) -> float:
    """The factor of cos and sin of rotary positions, at least that of every release; scores grow by its square.

    YaRN (arXiv:2309.00071v3, section 3.4) and LongRoPE (arXiv:2402.13753v1) have one. Angles cost nothing (S4).
    """
    new, old = settings.get("rope_parameters"), settings.get("rope_scaling")
    longest, original = settings.get("max_position_embeddings"), settings.get("original_max_position_embeddings")
    if new and old and new != old:
        settings.doubts.append("rope_scaling differs from rope_parameters")
    given = old or new
    if not given:
        return 1.0
    tables = [given]
    if isinstance(given, Mapping) and given and all(isinstance(value, Mapping) for value in given.values()):
        tables = list(given.values())  # one table for each kind of attention
    return max(_factor(settings, table, longest, original) for table in tables)


def _factor(settings: Settings, given: Any, longest: Any, original: Any) -> float:
    def unknown(reason: str) -> float:
        settings.lasting.append(f"rope_parameters: {reason}")
        return 1.0

    if not isinstance(given, Mapping):
        return unknown("no table of rotary positions")
    kind = given.get("rope_type") or given.get("type") or "default"
    if given.get("type") not in (None, kind):
        return unknown("'type' and 'rope_type' of its rotary positions differ")
    if not isinstance(kind, str) or kind not in _ROTATIONS:
        return unknown(f"rotary positions of type {kind!r:.40} are not known: {', '.join(_ROTATIONS)} are")
    for key, value in given.items():
        if value is not None and key not in _ROTATIONS[kind] and key not in _ANY:
            return unknown(f"rotary positions of type {kind!r} have no {key!r:.40}")
    if kind not in ("yarn", "longrope"):
        return 1.0
    if given.get("partial_rotary_factor") not in (None, 1):
        return unknown("a factor of rotations of part of each head is not supported")
    try:
        factor = _stretched(kind, given, longest, original)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        return unknown(f"no factor of its rotations can be computed ({error})")
    return factor if 0 < factor < math.inf else unknown(f"its rotations have the factor {factor}")


def _stretched(kind: str, given: Mapping[str, Any], longest: Any, original: Any) -> float:
    """The largest factor that a release computes.

    Where the file says none, releases differ in what they take for the stretch: `factor`, or the ratio of the two
    lengths.
    """
    if given.get("attention_factor") is not None:
        return float(given["attention_factor"])
    inner = given.get("original_max_position_embeddings")
    lengths = [float(each) for each in (original, inner, longest) if each is not None]
    stretches = [float(longest) / length for length in lengths]
    if given.get("factor") is not None:
        stretches.append(float(given["factor"]))
    if kind == "longrope":
        stretch = max(stretches)
        return 1.0 if stretch <= 1 else max(math.sqrt(1 + math.log(stretch) / math.log(length)) for length in lengths)

    def grown(stretch: float, scale: float = 1.0) -> float:
        return 1.0 if stretch <= 1 else 0.1 * scale * math.log(stretch) + 1.0

    if given.get("mscale") and given.get("mscale_all_dim"):
        both = float(given["mscale"]), float(given["mscale_all_dim"])
        stretches_by_both = (grown(stretch, both[0]) / grown(stretch, both[1]) for stretch in stretches)
        return max(*stretches_by_both, *map(grown, stretches))  # older releases do not read them
    return max(map(grown, stretches))
