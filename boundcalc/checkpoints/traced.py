"""A module's forward pass, followed: operations on parameters in order, and of every tensor which maps made it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.config import ACTIVATIONS
from boundcalc.checkpoints.modules import as_arrays, bare, double_precision_copy, ready
from boundcalc.checkpoints.recorded_pass import Call, some_inputs

_PRODUCTS = ("matmul", "rmatmul", "bmm", "einsum", "baddbmm")
_SUMS = ("add", "radd", "iadd")
_NONE = frozenset[int]()


@dataclass(eq=False)
class Step:
    """An operation with parameters, or an attention.

    Attributes:
        kind: table, segments (a table whose first row is read), map, patches, norm, attention, added, put (rows before
            others).
        weight: the parameter, by its names.
        offset: what is added after it, likewise.
        turned: whether the module multiplies by its transpose, as torch.nn.Linear does.
        parts: of an attention the steps that made queries, keys and values; of a map or a normalisation what it
            reads.
        scale: of a map what its outputs are multiplied by, one by one.
        width: of what it makes.
        centred: of a normalisation, whether it is known to take away the mean.
        heads: of an attention.
        eps: of a normalisation, where the module says it.
        tokens: of a table, whether it reads the module's own input.
    """

    kind: str
    weight: tuple[str, ...] = ()
    offset: tuple[str, ...] = ()
    turned: bool = False
    parts: tuple[Step | None, ...] = ()
    heads: int = 1
    eps: float | None = None
    tokens: bool = False
    scale: tuple[str, ...] = ()
    width: int = 0
    centred: bool = False


@dataclass
class Trace:
    """What was noted of one forward pass, and of every tensor by its identity what made it.

    Attributes:
        x: what the module reads.
        steps: in their order.
        active: activations, by the step they were applied to.
        linked: names of the parameter that a tensor is a view of, and whether it is turned.
        made_by: steps that a tensor comes from, each the last with a weight on its way.
        scores: steps that made the two factors of scores.
        heads: how many heads the weights of an attention have.
        kept: every tensor, so that none takes another's identity.
    """

    x: Any
    steps: list[Step] = field(default_factory=list[Step])
    active: dict[int, str] = field(default_factory=dict[int, str])
    linked: dict[int, tuple[tuple[str, ...], bool]] = field(default_factory=dict[int, Any])
    made_by: dict[int, frozenset[int]] = field(default_factory=dict[int, Any])
    scores: dict[int, tuple[frozenset[int], ...]] = field(default_factory=dict[int, Any])
    heads: dict[int, int] = field(default_factory=dict[int, int])
    kept: list[Any] = field(default_factory=list[Any])

    def names(self, tensor: Any) -> tuple[str, ...]:
        """Of the parameter that a tensor is a view of."""
        return self.linked.get(id(tensor), ((), False))[0]

    def only_step(self, tensor: Any) -> Step | None:
        """The one step that a tensor comes from."""
        return self._only(self.made_by.get(id(tensor), _NONE))

    def _only(self, origins: frozenset[int]) -> Step | None:
        return self.steps[min(origins)] if len(origins) == 1 else None

    def note(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> None:
        """One call of a torch function."""
        tensors, outs = _tensors([*args, *kwargs.values()]), _tensors([out])
        self.kept += [*tensors, *outs]
        weights = [tensor for tensor in tensors if id(tensor) in self.linked]
        if outs and weights and len(weights) == len(tensors):
            self._view(name, weights, outs)
        if not outs or len(weights) == len(tensors):
            return
        step = self._step(name, args, kwargs, tensors, weights, outs[0])
        if step is not None:
            step.width = outs[0].shape[-1]
            self.steps.append(step)
            self.made_by |= {id(tensor): frozenset([len(self.steps) - 1]) for tensor in outs}
            return
        origins = _NONE.union(*(self.made_by.get(id(tensor), _NONE) for tensor in tensors))
        scores = next((self.scores[id(tensor)] for tensor in tensors if id(tensor) in self.scores), None)
        heads = next((self.heads[id(tensor)] for tensor in tensors if id(tensor) in self.heads), None)
        if name in _PRODUCTS and scores is None and len(tensors) == 2:
            scores = tuple(self.made_by.get(id(tensor), _NONE) for tensor in tensors)
        if name == "softmax" and scores is not None:
            heads = outs[0].shape[1] if outs[0].ndim == 4 else 1
        for tensor in outs:
            self.made_by[id(tensor)] = origins
            if scores is not None:
                self.scores[id(tensor)] = scores
            if heads is not None:
                self.heads[id(tensor)] = heads
        if name in ACTIVATIONS and len(origins) == 1:
            kind = "gelu_tanh" if kwargs.get("approximate") == "tanh" else ACTIVATIONS[name]
            self.active.setdefault(min(origins), kind)

    def _view(self, name: str, weights: Sequence[Any], outs: Sequence[Any]) -> None:
        """Part of a parameter, or the parameter turned."""
        names, turned = self.linked[id(weights[0])]
        if any(self.names(tensor) != names for tensor in weights):
            raise CheckpointError(f"{name} joins {names[0]} with another parameter before any row meets them")
        back, there = outs[0].stride()[::-1], weights[0].stride()
        turns = outs[0].ndim == 2 and back == there != there[::-1] and outs[0].shape[::-1] == weights[0].shape
        self.linked |= {id(tensor): (names, turned != turns) for tensor in outs}

    def _step(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], tensors: Any, weights: Any, out: Any
    ) -> Step | None:
        """The step that a call is; None where no parameter enters it."""
        first, source = tensors[0], (self.only_step(tensors[0]),)
        if name == "normalize":
            raise CheckpointError("it divides rows by their norm, and x / |x| has no Lipschitz constant near 0")
        if name == "multi_head_attention_forward":
            return self._torch_attention(args)
        if name == "scaled_dot_product_attention":
            parts = tuple(map(self.only_step, tensors[:3]))
            return Step("attention", parts=parts, heads=first.shape[1] if first.ndim == 4 else 1)
        if name in _PRODUCTS and id(first) in self.heads and not weights and len(tensors) == 2:
            origins = (*self.scores[id(first)], self.made_by.get(id(tensors[1]), _NONE))
            return Step("attention", parts=tuple(map(self._only, origins)), heads=self.heads[id(first)])
        if name in ("layer_norm", "rms_norm"):
            gain, offset = (*map(self.names, weights), (), ())[:2]
            eps = kwargs.get("eps", args[-1] if isinstance(args[-1], float) else None)
            return Step("norm", gain, offset, parts=source, eps=eps, centred=name == "layer_norm")
        if not weights:
            return None
        names, turned = self.linked[id(weights[0])]
        shape = tuple(weights[0].shape)
        wide = bool(shape) and math.prod(shape) == shape[-1] > 1
        if name == "embedding" or (name == "getitem" and len(tensors) > len(weights)):
            index = next(tensor for tensor in tensors if not tensor.is_floating_point())
            tokens = index.shape == self.x.shape and bool((index == self.x).all())
            return Step("table" if tokens or bool(index.any()) else "segments", names, tokens=tokens)
        if name == "linear" or (name == "conv2d" and len(shape) == 4):
            offset = self.names(weights[1]) if len(weights) > 1 else ()
            return Step("map" if name == "linear" else "patches", names, offset, not turned, source)
        if name in ("matmul", "rmatmul", "addmm") and len(weights[-1].shape) == 2:
            names, turned = self.linked[id(weights[-1])]
            return Step("map", names, self.names(weights[0]) if len(weights) > 1 else (), turned)
        last = self.steps[-1] if self.steps else None
        before = next((step for tensor in tensors if (step := self.only_step(tensor)) is not None), None)
        if name in ("mul", "rmul") and wide:
            if last is None or last.kind != "map" or before is not last or shape[-1] < last.width:
                return Step("norm", names, parts=(before,))
            if shape[-1] == last.width and not last.scale:
                last.scale = names
                return None
        latest = max(max(self.made_by.get(id(tensor), (-1,)), default=-1) for tensor in tensors)
        if name in _SUMS and wide and last is not None and latest == len(self.steps) - 1 and not last.offset:
            last.offset = names
            return None
        if (name in _SUMS and len(shape) > 1) or name in ("cat", "concat"):
            return Step("added" if name in _SUMS else "put", names)
        raise CheckpointError(f"{names[0]} enters {name}: no layer here does that with a weight")

    def _torch_attention(self, args: Sequence[Any]) -> Step:
        """torch.nn.MultiheadAttention: its fused map, the attention, and W_O as the last step."""
        heads, fused, offset, out, its = (args[at] for at in (4, 5, 6, 11, 12))
        if not self.names(fused) or args[7] is not None:
            raise CheckpointError("its attention has keys of another width, or rows of keys that are trained")
        step = Step("map", self.names(fused), self.names(offset), turned=True)
        self.steps += [step, Step("attention", parts=(step,) * 3, heads=heads)]
        return Step("map", self.names(out), self.names(its), turned=True)


def _tensors(values: Sequence[Any]) -> list[Any]:
    import torch

    flat = [item for value in values for item in (value if isinstance(value, tuple | list) else (value,))]
    return [item for item in flat if isinstance(item, torch.Tensor)]


def trace_of(module: Any, inputs: Any, call: Call | None = None) -> Trace:
    """The steps of a forward pass."""
    copy, why = double_precision_copy(bare(module)), ": no table or map shows its inputs; give some (--data, inputs=)"
    for batch in some_inputs(copy) if inputs is None else [inputs]:
        try:
            return _followed(copy, as_arrays(batch), call)
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
            why = f": {' '.join(str(error).split())[:200]}"
    raise CheckpointError(f"its forward pass was not followed{why}")


def _followed(module: Any, x: Any, call: Call | None) -> Trace:
    from torch.overrides import TorchFunctionMode

    trace = Trace(x)
    for name, value in module.named_parameters(remove_duplicate=False):
        trace.linked[id(value)] = (*trace.names(value), name), False
        trace.kept.append(value)

    class Note(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            trace.note(getattr(func, "__name__", "").strip("_"), args, kwargs or {}, out)
            return out

    with ready(), Note():
        _ = module(x) if call is None else call(module, x)
    return trace
