"""A model that is given: read, described, compared with its module, measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.checkpoints.audit import measured
from boundcalc.checkpoints.errors import CheckpointError, NoReadOut, NotRun
from boundcalc.checkpoints.families import Family, Model, Options, family_for
from boundcalc.checkpoints.families.names import stripped
from boundcalc.checkpoints.modules import FoundModule, bare, called, find_module
from boundcalc.checkpoints.parity import Parity, compare
from boundcalc.checkpoints.readers import open_checkpoint
from boundcalc.checkpoints.tensors import Checkpoint
from boundcalc.lab._outputs import Outputs

_COMPARE = (
    "run its module (--compare module.py:make) or the library's (--compare transformers), or take the description of "
    "its family as it stands (--compare none)"
)


def read_model(
    source: Any,
    module: Any = None,
    *,
    family: str | Family | None = None,
    options: Options,
    inputs: Any = None,
    described_only: bool = True,
    whole: bool = True,
    bits: int | None = None,
    say: Callable[[str], None] = lambda _: None,
    **measuring: Any,
) -> Outputs:
    """The tensors, the module where there is one, how the model is described, and its norms.

    Args:
        source: a path of weights, or a module.
        module: with a path, the module of these weights (see `checkpoints.modules`).
        family: of the model, or None to recognise it.
        options: what the user says beyond the files.
        inputs: a batch of the model's own inputs, for the forward check.
        described_only: whether a model that is not described is refused; else its module answers all the same.
        whole: whether a model is refused that is not, or not surely, the one that would be bounded.
        bits: of every stored weight, fixed before the data (G13).
        say: receives a message when a forward pass begins.
        measuring: what is measured and how (see `checkpoints.audit.measured`).
    """
    checkpoint, hand = opened(source, module)
    live = hand.module
    try:
        chosen, parity = _described(checkpoint, live, family, options, inputs)
        described, why_not = Model(checkpoint, chosen, options if parity is None else replace(options, heads=None)), ""
        if parity is None:
            parity, live, why_not = held_against(described, hand, inputs, say=say)
        if parity is None and not (chosen.described or hand.requested):
            why = f" ({why_not})" if why_not else ""
            described.doubts.insert(0, f"no forward pass was compared with its description{why}: {_COMPARE}")
        audited = measured(described, whole=whole, parity=parity, why_not=why_not, **measuring)
        return Outputs(checkpoint, live, described, audited if bits is None else audited.with_bits(bits))
    except BoundcalcError as error:
        if described_only or isinstance(error, NoReadOut | NotRun):
            raise
        live = _module_of(hand) if live is None else live
        if live is None:
            raise
        return Outputs(checkpoint, live, why_not=str(error))


def opened(model: Any, module: Any) -> tuple[Checkpoint, FoundModule]:
    """The tensors, and the module where there is one."""
    if not isinstance(model, str | Path):
        if module is not None:
            raise InvalidSetting("the model is a module already: leave out module")
        inner = bare(model)
        return open_checkpoint(inner), FoundModule(inner, name=called(inner), requested=True)
    checkpoint = open_checkpoint(model)
    hand = find_module(model, checkpoint, module)
    return with_buffers(checkpoint, hand.module), hand


def _module_of(hand: FoundModule) -> Any:
    return hand.load() if hand.load is not None else hand.module


def with_buffers(checkpoint: Checkpoint, module: Any) -> Checkpoint:
    """The checkpoint with the names that its module registers as buffers."""
    if module is None:
        return checkpoint
    own = {name for name, _ in module.named_buffers()}
    short = stripped(list(checkpoint.tensors))
    return replace(checkpoint, buffers=frozenset(name for name in short if own & {name, short[name]}))


def _described(
    checkpoint: Checkpoint, live: Any, chosen: str | Family | None, options: Options, inputs: Any
) -> tuple[Family, Parity | None]:
    """The family; of a module of none a description that agrees with it, and the forward check that found it."""
    if isinstance(chosen, Family):
        return chosen, None
    try:
        family = family_for(checkpoint, chosen)
        if chosen is not None or live is None or not Model(checkpoint, family, options).unknown:
            return family, None
    except CheckpointError:
        if live is None or chosen is not None or checkpoint.config.get("model_type"):
            raise
    from boundcalc.checkpoints.describe import describe
    from boundcalc.checkpoints.families.read import read_mapping

    mapping, parity = describe(live, checkpoint, inputs=inputs, heads=options.heads)
    return read_mapping(mapping), parity


def held_against(
    model: Model, hand: FoundModule, inputs: Any = None, *, say: Callable[[str], None] = lambda _: None
) -> tuple[Parity | None, Any, str]:
    """The forward check, the module that answers, and why there is none; refused where the two differ."""
    if hand.module is None and hand.load is None:
        return None, None, hand.why
    if not hand.requested and model.unknown:
        return None, None, f"{model.unknown[0]} is not known"
    say(f"a forward pass of {hand.name}")
    try:
        live = _module_of(hand)
        return compare(live, model, inputs), live, ""
    except NotRun as error:
        if hand.requested:
            raise
        return None, None, str(error)
