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
    """The family named, or the one that config.json names; a table for models of another type is refused."""
    kind, own = checkpoint.config.get("model_type"), checkpoint.config.get("architecture")
    family = NATIVE if own is not None else None
    if name is not None:
        family = FAMILIES[choice("family", name, FAMILIES)]
    elif kind is not None:
        family = next((other for other in FAMILIES.values() if kind in other.model_types), family)
    if family is NATIVE and own is not None:
        return family_of(Architecture.from_json(own))
    if family is not None and (kind is None or kind in family.model_types or family.described):
        return family
    if kind is None:
        raise CheckpointError(
            f"{checkpoint.where} comes without a config.json that names its type: give the module whose weights these "
            "are (--compare module.py:make, module=), describe the model with a mapping (--mapping, mapping=), "
            f"put config.json next to the weights, or say --family ({', '.join(FAMILIES)})"
        )
    types = sorted(kind for other in ([family] if family else FAMILIES.values()) for kind in other.model_types)
    why = f" ({NOT_YET[kind]})" if isinstance(kind, str) and kind in NOT_YET else ""
    what = f"family {family.name!r} reads" if family else "families read"
    raise CheckpointError(
        f"{checkpoint.where} is a model of model_type {kind!r}{why}, and {what} only {', '.join(types)}: describe what "
        "it computes with a mapping (--mapping, docs/weights.md)"
    )
