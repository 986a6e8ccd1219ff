"""A module's forward pass in double precision, followed: operations on parameters, what enters and leaves them.

And of every tensor which maps made it; and the inputs that a module is tried on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boundcalc.checkpoints.errors import CheckpointError, NotRun
from boundcalc.checkpoints.families.config import ACTIVATIONS
from boundcalc.checkpoints.families.table import TOKENS, Model
from boundcalc.checkpoints.forward import Rows
from boundcalc.checkpoints.modules import answer, as_arrays, double_precision_copy, ready
from boundcalc.layers.attention import attentions
from boundcalc.layers.embedding import token_tables
from boundcalc.setting import Architecture

Call = Callable[[Any, Any], Any]

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
        reads: the rows that enter it; None where the weight is applied to what was made of them.
        makes: the rows that leave it, its offset added.
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
    reads: Any = field(default=None, repr=False)
    makes: Any = field(default=None, repr=False)


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
        divided: rows that a tensor is, each less or times a number of its own, as in LayerNorm.
        kept: every tensor, so that none takes another's identity.
        refusal: the first operation on a parameter that no layer here does.
    """

    x: Any
    steps: list[Step] = field(default_factory=list[Step])
    active: dict[int, str] = field(default_factory=dict[int, str])
    linked: dict[int, tuple[tuple[str, ...], bool]] = field(default_factory=dict[int, Any])
    made_by: dict[int, frozenset[int]] = field(default_factory=dict[int, Any])
    scores: dict[int, tuple[frozenset[int], ...]] = field(default_factory=dict[int, Any])
    heads: dict[int, int] = field(default_factory=dict[int, int])
    divided: dict[int, Any] = field(default_factory=dict[int, Any])
    kept: list[Any] = field(default_factory=list[Any])
    refusal: str = ""

    def named(self, names: set[str], kinds: tuple[str, ...]) -> list[Step]:
        """The steps of these kinds with a parameter of one of these names."""
        return [step for step in self.steps if step.kind in kinds and names & {*step.weight}]

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
            step.width, step.makes = outs[0].shape[-1], outs[0].clone()
            self.steps.append(step)
            self.made_by |= {id(tensor): frozenset([len(self.steps) - 1]) for tensor in outs}
            return
        origins = _NONE.union(*(self.made_by.get(id(tensor), _NONE) for tensor in tensors))
        scores = next((self.scores[id(tensor)] for tensor in tensors if id(tensor) in self.scores), None)
        heads = next((self.heads[id(tensor)] for tensor in tensors if id(tensor) in self.heads), None)
        ends = [tensor.shape[-1] if tensor.ndim > 1 else 0 for tensor in tensors]
        if name in ("mul", "rmul", "sub", "div", "truediv") and len(ends) == 2 and 1 in ends:
            rows = tensors[ends[0] == 1]
            self.divided[id(outs[0])] = self.divided[id(rows)] if id(rows) in self.divided else rows.clone()
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
            return Step("norm", gain, offset, parts=source, eps=eps, centred=name == "layer_norm", reads=first.clone())
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
            kind = "map" if name == "linear" else "patches"
            return Step(kind, names, offset, not turned, source, reads=first.clone())
        if name in ("matmul", "rmatmul", "addmm") and len(weights[-1].shape) == 2:
            names, turned = self.linked[id(weights[-1])]
            read = next((tensor for tensor in tensors if id(tensor) not in self.linked), first).clone()
            return Step("map", names, self.names(weights[0]) if len(weights) > 1 else (), turned, reads=read)
        last = self.steps[-1] if self.steps else None
        before = next((step for tensor in tensors if (step := self.only_step(tensor)) is not None), None)
        if name in ("mul", "rmul") and wide:
            rows = next((tensor for tensor in tensors if id(tensor) not in self.linked), first)
            direct = last is not None and last.kind == "map" and rows.shape == last.makes.shape
            if last is None or not direct or shape[-1] < last.width or not bool((rows == last.makes).all()):
                return Step("norm", names, parts=(before,), reads=self.divided.get(id(rows)))
            if shape[-1] == last.width and not last.scale:
                last.scale = names
                return None
        latest = max(max(self.made_by.get(id(tensor), (-1,)), default=-1) for tensor in tensors)
        if name in _SUMS and wide and last is not None and latest == len(self.steps) - 1 and not last.offset:
            last.offset, last.makes = names, out.clone()
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


@dataclass(frozen=True)
class Recorded:
    """A forward pass of a module: inputs, outputs, what was noted, whether a step was below double precision."""

    module: Any
    x: Rows
    outputs: Rows | None
    trace: Trace
    single: bool


def record(
    module: Any, model: Model, architecture: Architecture | None, inputs: Any = None, *, call: Call | None = None
) -> Recorded:
    """A module's forward pass in double precision; without inputs on some that the architecture reads."""
    x = np.asarray(inputs) if architecture is None or inputs is not None else example_inputs(model, architecture)
    try:
        return _followed(module, x, call)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise NotRun(
            f"the module does not take inputs of shape {x.shape} ({x.dtype}): {' '.join(str(error).split())[:200]}; "
            "give some of its own (--data, inputs=), or call=lambda module, x: ..."
        ) from error


def trace_of(module: Any, inputs: Any, call: Call | None = None) -> Trace:
    """The steps of a forward pass; refused where a parameter does what no layer here does."""
    why = ": no table or map shows its inputs; give some (--data, inputs=)"
    for batch in _some_inputs(module) if inputs is None else [inputs]:
        try:
            trace = _followed(module, batch, call).trace
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
            why = f": {' '.join(str(error).split())[:200]}"
            continue
        if trace.refusal:
            raise CheckpointError(trace.refusal)
        return trace
    raise CheckpointError(f"its forward pass was not followed{why}")


def _followed(module: Any, inputs: Any, call: Call | None) -> Recorded:
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    copy, x, narrow = double_precision_copy(module), as_arrays(inputs), list[str]()
    trace = Trace(x)
    for name, value in copy.named_parameters(remove_duplicate=False):
        trace.linked[id(value)] = (*trace.names(value), name), False
        trace.kept.append(value)

    class Note(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            try:
                trace.note(getattr(func, "__name__", "").strip("_"), args, kwargs or {}, out)
            except Exception as error:  # what cannot be noted is not compared
                trace.refusal = trace.refusal or str(error)
            return out

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            for value in out if isinstance(out, tuple | list) else (out,):
                if isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float16, torch.bfloat16):
                    narrow.append(str(func))
            return out

    with ready(), Watch(), Note():
        outputs = answer(copy, x, call)
    return Recorded(module, np.asarray(inputs), outputs, trace, bool(narrow))


def example_inputs(model: Model, architecture: Architecture, n: int = 4, longest: int = 32) -> Rows:
    """Inputs as the architecture reads them, drawn from a fixed seed."""
    rng = np.random.default_rng(0)
    length = min(architecture.seq_len, longest)
    tables = token_tables(architecture.stages)
    if tables:
        drawn = rng.integers(0, tables[0].vocabulary, (n, length))
        padding = model.checkpoint.config.get("pad_token_id")  # some models number positions by what is no padding
        drawn = np.where(drawn == padding, (drawn + 1) % tables[0].vocabulary, drawn)
        return drawn
    shape = model.place("W_patch").tensor.shape if model.has("W_patch") else ()
    if len(shape) == 4:
        patches = architecture.seq_len - tokens_before(model)
        side = math.isqrt(patches)
        if side * side == patches:
            return rng.uniform(-1, 1, (n, shape[1], side * shape[2], side * shape[3]))
    width = architecture.stages[0].widths()[0] or next(attentions(architecture.stages)).d
    x = rng.standard_normal((n, length, width))
    return x / np.sqrt((x**2).sum(-1, keepdims=True)) * architecture.input_radius


def _some_inputs(module: Any) -> list[Any]:
    """Tokens that every table of the module has; else images of as many patches as a table has rows, or rows."""
    sizes = [part.num_embeddings for part in module.modules() if hasattr(part, "num_embeddings")]
    if sizes:
        return [np.arange(8).reshape(2, 4) % min(sizes)]
    rng, first = np.random.default_rng(0), next((part for part in module.modules() if hasattr(part, "weight")), None)
    shape = () if first is None else tuple(first.weight.shape)
    if len(shape) == 4:
        d, (_, channels, tall, wide) = shape[0], shape
        tables = [value.shape[-2] for value in module.parameters() if value.ndim > 1 and value.shape[-1] == d]
        sides = sorted({math.isqrt(rows) for rows in tables} - {1})
        return [rng.uniform(-1, 1, (2, channels, side * tall, side * wide)) for side in sides]
    return [rng.standard_normal((2, 4, shape[1])) / math.sqrt(shape[1])] if len(shape) == 2 else []


def patch_map(model: Model) -> str | None:
    """The map of patches that a module cuts itself, where it is a matrix and no convolution."""
    if not model.has("W_patch") or len(model.place("W_patch").tensor.shape) != 2:
        return None
    return model.place("W_patch").tensor.name


def rows_read(model: Model, x: Rows, trace: Trace) -> Rows:
    """What the description reads, where the module was given x: rows as they enter the map of patches."""
    if x.ndim == 4 and patch_map(model) is None:
        return rows_of_images(model, x)
    steps = trace.named({patch_map(model) or ""}, ("map",))
    if len(steps) != 1 or steps[0].reads.ndim != 3:
        return x
    entered = steps[0].reads.detach().numpy()
    return np.concatenate([np.zeros((len(x), tokens_before(model), entered.shape[2])), entered], axis=1)


def tokens_before(model: Model) -> int:
    """Rows that the model puts before its input."""
    return sum(model.has(token) for token in TOKENS)


def rows_of_images(model: Model, images: Rows) -> Rows:
    """Images (n, channels, height, width) as patches (n, T, channels x side x side), class tokens as zeros."""
    shape = model.place("W_patch").tensor.shape if model.has("W_patch") else ()
    if len(shape) != 4 or images.ndim != 4 or images.shape[1] != shape[1]:
        raise CheckpointError(
            f"images need a patch map W_patch of shape (d, channels, side, side) and as many channels; got images of "
            f"{images.shape[1:]} and {shape or 'no map'}: give rows (n, T, d) instead"
        )
    n, channels, height, width = images.shape
    tall, wide = shape[2:]
    if height % tall or width % wide:
        raise CheckpointError(f"images of {height} x {width} are not made of patches of {tall} x {wide}")
    cut = images.reshape(n, channels, height // tall, tall, width // wide, wide).transpose(0, 2, 4, 1, 3, 5)
    rows = cut.reshape(n, -1, channels * tall * wide)
    return np.concatenate([np.zeros((n, tokens_before(model), rows.shape[2])), rows], axis=1)
