"""boundcalc's own models: tensors are called as in norms files ("W_V[0]"), the architecture travels with them.

A tensor of heads has a first dimension for them; maps are stored as x -> x W. Files may write ":" for "." in names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture, Attention, Embedding, GatedFeedForward, Layer, LayerNorm, Linear, Residual


def _architecture(model: Model) -> Architecture:
    given = model.setting("architecture", default=None)
    if given is None:
        raise CheckpointError(
            f"{model.checkpoint.where} has tensors named as in norms files but no architecture: "
            "save it as JSON under the safetensors metadata key 'architecture', or in config.json"
        )
    return Architecture.from_json(given)


def roles(stages: Sequence[Layer]) -> Iterator[tuple[str, int | None]]:
    """Kinds and blocks of the tensors some layers may have."""
    for stage in stages:
        if isinstance(stage, Residual):
            yield from roles(stage.branch)
        elif isinstance(stage, Linear):
            yield stage.kind, stage.block
            if stage.bias:
                yield stage.bias, stage.block
        elif isinstance(stage, LayerNorm):
            yield f"{stage.kind}.gain", stage.block
            yield f"{stage.kind}.offset", stage.block
        elif isinstance(stage, Attention):
            for kind in ("W_QK", "W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"):
                yield kind, stage.block
        elif isinstance(stage, GatedFeedForward):
            for kind in ("W_1", "W_2", "W_3"):
                yield kind, stage.block
        elif isinstance(stage, Embedding):
            yield from ((kind, None) for kind in ("embedding", "positions", "segments"))


def family_of(architecture: Architecture) -> Family:
    """The table of one architecture: every name is its own role."""
    tensors: dict[str, str] = {}
    for kind, block in roles(architecture.stages):
        for name in {kind, kind.replace(".", ":")}:
            tensors[name if block is None else f"{name}[{{b}}]"] = kind
    ignored = {"encoding.signs": "how bits become rows is fixed before any data"}
    if _fixed(architecture.stages):
        ignored["positions"] = "fixed positions are not trained"
    for name in ignored:
        tensors.pop(name, None)
    return Family("boundcalc", ("boundcalc",), tensors, lambda _: architecture, ignored)


def _fixed(stages: Sequence[Layer]) -> bool:
    return any(isinstance(stage, Embedding) and stage.positions == "fixed" for stage in stages)


NATIVE = Family("boundcalc", ("boundcalc",), {}, _architecture)
