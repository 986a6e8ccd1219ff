"""Which models are known: one adapter per family."""

from __future__ import annotations

from collections.abc import Mapping

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.bert import ALBERT, BERT, DISTILBERT, ELECTRA, ROBERTA
from boundcalc.checkpoints.families.bloom import BLOOM
from boundcalc.checkpoints.families.falcon import FALCON
from boundcalc.checkpoints.families.gemma import GEMMA, GEMMA2
from boundcalc.checkpoints.families.gpt2 import GPT2
from boundcalc.checkpoints.families.gpt_neox import GPT_NEOX
from boundcalc.checkpoints.families.llama import GRANITE, LLAMA
from boundcalc.checkpoints.families.modernbert import MODERNBERT
from boundcalc.checkpoints.families.native import NATIVE, family_of
from boundcalc.checkpoints.families.opt import OPT
from boundcalc.checkpoints.families.parallel import GPTJ, PHI
from boundcalc.checkpoints.families.table import Family as Family
from boundcalc.checkpoints.families.table import Model as Model
from boundcalc.checkpoints.families.table import Options as Options
from boundcalc.checkpoints.families.torch_encoder import TORCH_ENCODER
from boundcalc.checkpoints.families.vit import DEIT, VIT
from boundcalc.checkpoints.readers import Checkpoint
from boundcalc.setting import Architecture
from boundcalc.setting.validate import choice

_ALL = (
    *(BERT, ROBERTA, DISTILBERT, ELECTRA, ALBERT, MODERNBERT, GPT2, GPTJ, OPT, BLOOM),
    *(GPT_NEOX, PHI, FALCON, LLAMA, GRANITE, GEMMA, GEMMA2, VIT, DEIT),
    *(TORCH_ENCODER, NATIVE),
)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""Every adapter by name; to add one, add it here."""

_NORMALISED = "it normalises queries and keys, so that their lengths do not bound the scores: needs a layer for that"
_EXPERTS = "it routes tokens to experts: the choice is not continuous, so that no Lipschitz factor exists"
NOT_YET: Mapping[str, str] = {
    "qwen3": _NORMALISED,
    "olmo2": _NORMALISED + "; and it normalises what a sublayer adds, before it is added",
    "gemma3_text": _NORMALISED + "",
    "cohere": "its logits have a factor of their own and its normalisations no offsets: nobody has written its table yet",
    "mpt": "there are layers for it (L11), but no table of its tensors and fields yet",
    "t5": "it adds learned numbers to the scores, and has attention to another sequence: needs layers for that",
    "deberta": "it adds learned products with relative positions to the scores: needs a layer for that",
    "deberta-v2": "it adds learned products with relative positions to the scores: needs a layer for that",
    "nemotron": "relu(x)^2 is not Lipschitz: its slope grows with the radius, on which a cover of it would have to stay",
    "mixtral": _EXPERTS,
    "qwen2_moe": _EXPERTS,
    "qwen3_moe": _EXPERTS,
    "mamba": "it has no attention: a recurrence over all rows, whose Lipschitz factor grows with T",
}
"""Known types that the calculus has no layer for, and why."""


def family_for(checkpoint: Checkpoint, name: str | None = None) -> Family:
    """The family named, or the one config.json names, or the one that the tensors' names give away."""
    found = FAMILIES[choice("family", name, FAMILIES)] if name is not None else _recognise(checkpoint)
    refuse_another_type(checkpoint, found)
    architecture = checkpoint.config.get("architecture")
    if found is NATIVE and architecture is not None:
        return family_of(Architecture.from_json(architecture))
    return found


def refuse_another_type(checkpoint: Checkpoint, family: Family) -> None:
    """A table for other models would find its tensors here, and say something else of them."""
    kind = checkpoint.config.get("model_type")
    if kind is None or kind in family.model_types or family.fields is None or "architecture" in checkpoint.config:
        return
    owner = next((other.name for other in FAMILIES.values() if kind in other.model_types), None)
    why = f" ({NOT_YET[kind]})" if isinstance(kind, str) and kind in NOT_YET else ""
    instead = f"say --family {owner}" if owner else "describe what the model computes with --mapping (docs/weights.md)"
    raise CheckpointError(
        f"the config.json of {checkpoint.where} says model_type {kind!r}{why}, and family {family.name!r} reads only "
        f"{', '.join(family.model_types)}: {instead}; if that config.json belongs to other weights, move it away"
    )


def _recognise(checkpoint: Checkpoint) -> Family:
    if "architecture" in checkpoint.config:
        return NATIVE
    kind = checkpoint.config.get("model_type")
    for family in FAMILIES.values():
        if kind is not None and kind in family.model_types:
            return family
    for family in FAMILIES.values() if kind is None else ():
        if any(prefix + mark in checkpoint.tensors for mark in family.marks for prefix in ("", *family.prefixes)):
            return family
    types = ", ".join(sorted(kind for family in FAMILIES.values() for kind in family.model_types))
    if isinstance(kind, str) and kind in NOT_YET:
        raise CheckpointError(
            f"{checkpoint.where} is a model of type {kind!r}, which has no bound here: {NOT_YET[kind]}; with --mapping "
            "a model is what the mapping says (docs/weights.md)"
        )
    if kind is not None:
        raise CheckpointError(
            f"{checkpoint.where} is a model of type {kind!r}; known: {types}. "
            "Describe it with --mapping (docs/weights.md)"
        )
    raise CheckpointError(
        f"{checkpoint.where} comes without a config.json that names its type: put it beside the weights, say --family "
        f"({', '.join(FAMILIES)}), or describe the model with --mapping"
    )
