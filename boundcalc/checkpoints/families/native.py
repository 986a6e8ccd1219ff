"""boundcalc's own models: tensors are called as in norms files ("W_V[0]"), the architecture travels with them.

A tensor of heads has a first dimension for them; maps are stored as x -> x W. Files may write ":" for "." in names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.layers.base import flat, weights_of
from boundcalc.setting import Architecture, Layer


def _architecture(model: Model) -> Architecture:
    architecture = model.checkpoint.config.get("architecture")
    if architecture is None:
        raise CheckpointError(
            f"{model.checkpoint.where} has tensors named as in norms files but no architecture: "
            "save it as JSON under the safetensors metadata key 'architecture', or in config.json"
        )
    return said_otherwise(model, Architecture.from_json(architecture))


def said_otherwise(model: Model, architecture: Architecture) -> Architecture:
    """An architecture that is known, with the T and the input radius that the user says."""
    seq_len, radius = model.option("seq_len"), model.option("input_radius")
    if seq_len is not None:
        architecture = replace(architecture, seq_len=seq_len)
    return architecture if radius is None else replace(architecture, input_radius=radius)


def family_of(architecture: Architecture) -> Family:
    """The table of one architecture: every name is its own role."""
    tensors: dict[str, str] = {}
    for weight in weights_of(architecture.stages, architecture.seq_len):
        kinds = {part.kind for part in weight.all}
        for kind in kinds | ({"b_K"} if "b_Q" in kinds else set()):  # trained, though softmax may forget it
            for name in {kind, kind.replace(".", ":")}:
                tensors[name if weight.block is None else f"{name}[{{b}}]"] = kind
    ignored = {"positions": "fixed positions are not trained"} if _fixed(architecture.stages) else {}
    return Family(
        "boundcalc",
        ("boundcalc",),
        tensors,
        lambda model: said_otherwise(model, architecture),
        ignored,
        described=True,
    )


def _fixed(stages: Sequence[Layer]) -> bool:
    return any(layer.fixed(1) for layer in flat(stages))


NATIVE = Family("boundcalc", ("boundcalc",), {}, _architecture, described=True)
