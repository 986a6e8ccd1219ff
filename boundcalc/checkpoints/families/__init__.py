"""Which models are known: one adapter per family."""

from __future__ import annotations

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.bert import BERT, DISTILBERT, ROBERTA
from boundcalc.checkpoints.families.gpt2 import GPT2
from boundcalc.checkpoints.families.llama import LLAMA
from boundcalc.checkpoints.families.native import NATIVE, family_of
from boundcalc.checkpoints.families.table import Family as Family
from boundcalc.checkpoints.families.table import Model as Model
from boundcalc.checkpoints.families.table import Options as Options
from boundcalc.checkpoints.families.torch_encoder import TORCH_ENCODER
from boundcalc.checkpoints.families.vit import VIT
from boundcalc.checkpoints.readers import Checkpoint
from boundcalc.setting import Architecture
from boundcalc.setting.validate import choice

FAMILIES: dict[str, Family] = {
    family.name: family for family in (BERT, ROBERTA, DISTILBERT, GPT2, LLAMA, VIT, TORCH_ENCODER, NATIVE)
}
"""Every adapter by name; to add one, add it here."""


NOT_YET = {
    "qwen3": "it normalises queries and keys (q_norm, k_norm)",
    "gpt_neox": "its attention and feed-forward parts read the same rows",
    "gemma2": "it bounds scores by tanh",
    "mixtral": "it routes tokens to experts",
}
"""Known types that the calculus has no layer for, and why: a mapping would not help."""


def family_for(checkpoint: Checkpoint, name: str | None = None) -> Family:
    """The family named, or the one config.json names, or the one that the tensors' names give away."""
    found = FAMILIES[choice("family", name, FAMILIES)] if name is not None else _recognise(checkpoint)
    architecture = checkpoint.config.get("architecture")
    if found is NATIVE and architecture is not None:
        return family_of(Architecture.from_json(architecture))
    return found


def _recognise(checkpoint: Checkpoint) -> Family:
    if "architecture" in checkpoint.config:
        return NATIVE
    kind = checkpoint.config.get("model_type")
    for family in FAMILIES.values():
        if kind is not None and kind in family.model_types:
            return family
    for family in FAMILIES.values():
        if any(prefix + mark in checkpoint.tensors for mark in family.marks for prefix in ("", *family.prefixes)):
            return family
    types = ", ".join(sorted(kind for family in FAMILIES.values() for kind in family.model_types))
    if isinstance(kind, str) and kind in NOT_YET:
        raise CheckpointError(
            f"{checkpoint.where} is a model of type {kind!r}, which has no bound here: {NOT_YET[kind]} (docs/weights.md)"
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
