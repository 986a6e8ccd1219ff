"""Which models are known: one adapter per family."""

from __future__ import annotations

from boundcalc.base.registry import Registry
from boundcalc.base.validate import choice
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.config import NOT_YET as NOT_YET
from boundcalc.checkpoints.families.read import NATIVE, family_files, family_of
from boundcalc.checkpoints.families.table import Family as Family
from boundcalc.checkpoints.families.table import Model as Model
from boundcalc.checkpoints.families.table import Options as Options
from boundcalc.checkpoints.tensors import Checkpoint
from boundcalc.setting import Architecture

FAMILIES: Registry[Family] = Registry("family", (*family_files(), NATIVE))
"""Every family by name; `register` adds one."""


def family_for(checkpoint: Checkpoint, name: str | None = None) -> Family:
    """The family named, or the one config.json names, or the one that the tensors' names give away."""
    family = FAMILIES[choice("family", name, FAMILIES)] if name is not None else _recognise(checkpoint)
    refuse_another_type(checkpoint, family)
    architecture = checkpoint.config.get("architecture")
    if family is NATIVE and architecture is not None:
        return family_of(Architecture.from_json(architecture))
    return family


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
