"""A module of no known family described by itself: what its forward pass shows, decided by the forward check.

Roles come from what is done with every parameter. What no operation says (the mask, epsilons, factors of tables,
rotations) is tried; what agrees with the module in double precision, layer by layer, is it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints._trace_roles import mappings
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.names import stripped
from boundcalc.checkpoints.families.read import read_mapping
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.modules import bare
from boundcalc.checkpoints.parity import Parity, pass_apart
from boundcalc.checkpoints.tensors import Checkpoint
from boundcalc.checkpoints.traced import Trace, patch_map, record, rows_read, some_inputs

_Change = Mapping[str, Mapping[str, Any]]
"""Fields of parts of a mapping; a field that is None is left out."""


def describe(
    module: Any, checkpoint: Checkpoint, *, inputs: Any = None, heads: int | None = None
) -> tuple[dict[str, Any], Parity]:
    """A mapping of the module that agrees with it, and how closely; refuses where none does."""
    trace = record(module, some_inputs(bare(module)) if inputs is None else [inputs])
    if trace.refusal:
        raise CheckpointError(trace.refusal)
    reasons: list[str] = []
    for mapping in mappings(trace, checkpoint):
        try:
            return _agreeing(trace, checkpoint, mapping, heads)
        except CheckpointError as error:
            reasons.append(str(error))
    raise CheckpointError(reasons[0])


def _agreeing(
    trace: Trace, checkpoint: Checkpoint, mapping: dict[str, Any], heads: int | None
) -> tuple[dict[str, Any], Parity]:
    """The mapping with what no operation says, as it agrees with the module."""
    choices = _choices(bare(trace.module), checkpoint, mapping, heads)
    mapping = _changed(mapping, [options[0] for options in choices.values()])
    model, said = _model(checkpoint, mapping), mapping["architecture"]
    rows = rows_read(model, trace)
    if patch_map(model) and rows.shape[1:] != trace.inputs.shape[1:]:  # pixels in [-1, 1]
        said["input_radius"] = math.nextafter(math.sqrt(rows.shape[2]), math.inf)
        said |= {"longest": rows.shape[1]} if "longest" in said else {}
    best = _best_description(trace, checkpoint, mapping, choices)
    try:
        return best, pass_apart(trace, _model(checkpoint, best)).agreed()
    except CheckpointError as error:
        raise CheckpointError(f"no description that was tried agrees with the module. The nearest: {error}") from None


def _best_description(
    trace: Trace, checkpoint: Checkpoint, mapping: dict[str, Any], choices: Mapping[str, Sequence[_Change]]
) -> dict[str, Any]:
    """The description that agrees furthest with the recorded pass: single changes, then early ones together."""
    alone = [[name] for name in choices]
    early = [name for name in ("scales", "style", "attention") if name in choices]
    best, score = mapping, _score(trace, checkpoint, mapping)
    for group in (*alone, *alone, early, *alone):
        if score == math.inf:
            break
        for changes in itertools.product(*(choices[name] for name in group)):
            tried = _changed(best, changes)
            reached = _score(trace, checkpoint, tried)
            if reached > score:
                best, score = tried, reached
    return best


def _score(trace: Trace, checkpoint: Checkpoint, mapping: Mapping[str, Any]) -> float:
    """How many places agree before the first that does not; -1 where the description does not fit."""
    try:
        place = pass_apart(trace, _model(checkpoint, mapping)).first_difference
    except (BoundcalcError, ValueError, KeyError):
        return -1
    return math.inf if place is None else place


def _model(checkpoint: Checkpoint, mapping: Mapping[str, Any]) -> Model:
    return Model(checkpoint, read_mapping(mapping))


def _changed(mapping: Mapping[str, Any], changes: Sequence[_Change]) -> dict[str, Any]:
    """A mapping with some of its fields changed; a part without fields is left out."""
    changed = dict(mapping)
    for part, fields in (item for change in changes for item in change.items()):
        merged = {**changed.get(part, {}), **fields}
        changed[part] = {name: value for name, value in merged.items() if value is not None}
    return {part: fields for part, fields in changed.items() if fields}


def _choices(
    module: Any, checkpoint: Checkpoint, mapping: Mapping[str, Any], heads: int | None
) -> dict[str, list[_Change]]:
    """For each thing that no tensor says, the values it may have; the likeliest first."""
    said, roles = mapping["architecture"], {re.sub(r"\[.*?\]", "", role) for role in mapping["tensors"].values()}

    def options_of(field: str, *values: Any) -> list[_Change]:
        return [{"architecture": {field: value}} for value in dict.fromkeys(values)]

    choices: dict[str, list[_Change]] = {}
    tables = [name for name, role in mapping["tensors"].items() if role in ("embedding", "positions")]
    if tables:
        named = {short: name for name, short in stripped(list(checkpoint.tensors)).items()}
        d = checkpoint.tensors[named[tables[0]]].shape[-1]
        choices["scales"] = [{}]
        if "positions" in roles:
            choices["scales"] += [{"scales": {"positions": scale}} for scale in (None, d**-0.5)]
        if "embedding" in roles:
            choices["scales"] += [{"scales": {"embedding": d**0.5}}]
    values = [getattr(part, name, None) for part in module.modules() for name in ("eps", "variance_epsilon", "epsilon")]
    epsilons = [value for value in values if isinstance(value, float) and value > 0]
    if "normalisation" in said:
        kinds = dict.fromkeys((said["normalisation"], "layernorm", "rmsnorm"))
        sizes = dict.fromkeys(epsilons or (said["eps"], 1e-5, 1e-6, 1e-12, 1e-8))
        choices["norms"] = [{"architecture": {"normalisation": kind, "eps": eps}} for kind in kinds for eps in sizes]
        choices["plain"] = options_of("plain", None, True)
        choices["style"] = options_of("style", said["style"], "pre", "post")
    layouts = (None, True) if {"W_QKV", "W_QKV.T"} & roles else (None,)
    choices["attention"] = [
        {
            "architecture": {"heads": heads or said["heads"], "causal": mask, "by_group": layout},
            "rotary": turn or {"theta": None, "pairs": None},
        }
        for turn in _rotary_choices(module, roles)
        for mask in ((True, None) if said.get("causal") else (None, True))
        for layout in layouts
    ]
    choices["activation"] = options_of(
        "activation", said["activation"], "gelu", "gelu_tanh", "relu", "silu", "quick_gelu"
    )
    if "qk_eps" in said:
        choices["queries"] = options_of("qk_eps", said["qk_eps"], *epsilons, 1e-5, 1e-6)
    choices["readout"] = options_of("readout", None, "mean")
    return choices


def _rotary_choices(module: Any, roles: set[str]) -> list[dict[str, Any] | None]:
    """Rotary positions to try where there is no table of positions: rotations of halves, or of pairs."""
    if "positions" in roles or "embedding" not in roles:
        return [None]
    names = ("rope_theta", "theta", "rotary_base", "base")
    said: list[Any] = [getattr(part, name, None) for part in module.modules() for name in names]
    bases = dict.fromkeys([*(float(value) for value in said if type(value) in (int, float) and value > 1), 10000.0])
    return [None, *({"theta": theta, "pairs": paired} for theta in bases for paired in (False, True))]
