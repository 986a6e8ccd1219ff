"""Which models are known: one adapter per family."""

from __future__ import annotations

from collections.abc import Mapping

from boundcalc.base.registry import Registry
from boundcalc.base.validate import choice
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.native import NATIVE, family_of
from boundcalc.checkpoints.families.read import family_files
from boundcalc.checkpoints.families.table import Family as Family
from boundcalc.checkpoints.families.table import Model as Model
from boundcalc.checkpoints.families.table import Options as Options
from boundcalc.checkpoints.readers import Checkpoint
from boundcalc.setting import Architecture

FAMILIES: Registry[Family] = Registry("family", (*family_files(), NATIVE))
"""Every adapter by name; `register` adds one."""

_EXPERTS = (
    "it routes rows to some of its experts: where two entries of the gate cross another expert is chosen and the "
    "output jumps, so that no Lipschitz factor exists"
)
_RELATIVE = "it adds learned products with relative positions to the scores: needs a layer for that"
NOT_YET: Mapping[str, str] = {
    "deberta": _RELATIVE,
    "deberta-v2": _RELATIVE,
    "nemotron": "relu(x)^2 is not Lipschitz: its slope grows with the radius",
    "t5gemma": "its decoder attends to another sequence: needs a layer for that",
    **dict.fromkeys(
        ("clip", "siglip"),
        "it answers with the cosine of two towers, and x / |x| has no Lipschitz constant near 0; save one tower alone",
    ),
    "whisper": "its two convolutions over time are linear maps of three rows each, by at most sqrt(3) times their norm "
    "Lipschitz: needs a layer that cuts windows of rows",
    "mamba": "it has no attention: a recurrence over all rows, whose Lipschitz factor grows with T",
    **dict.fromkeys(
        ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "deepseek_v2", "deepseek_v3", "gpt_oss", "switch_transformers"),
        _EXPERTS,
    ),
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
    if kind is None or kind in family.model_types or family.described or "architecture" in checkpoint.config:
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
        f"{checkpoint.where} comes without a config.json that names its type: give the module whose weights these are "
        "(--compare module.py:make, module=), describe the model with a mapping (--mapping, mapping=), "
        "put config.json next to the weights, or say --family "
        f"({', '.join(FAMILIES)})"
    )
