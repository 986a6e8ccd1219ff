"""A module's forward pass in double precision, followed: operations on parameters, what enters and leaves them.

And of every tensor which maps made it; and the inputs that a module is tried on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boundcalc.base.validate import size
from boundcalc.checkpoints.errors import CheckpointError, NotRun
from boundcalc.checkpoints.families.config import ACTIVATIONS
from boundcalc.checkpoints.families.table import TOKENS, Model
from boundcalc.checkpoints.forward import Rows
from boundcalc.checkpoints.modules import answer, as_arrays, double_precision_copy, ready
from boundcalc.layers.attention import Attention
from boundcalc.layers.base import of_class
from boundcalc.layers.embedding import token_tables

_PRODUCTS = ("matmul", "rmatmul", "bmm", "einsum", "baddbmm")
_SUMS = ("add", "radd", "iadd")
NARROW = ("torch.float32", "torch.float16", "torch.bfloat16", "torch.complex64")
"""Types below double precision."""


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
        centred: of a normalisation, whether it is known to take away the mean.
        heads: of an attention.
        eps: of a normalisation, where the module says it.
        tokens: of a table, whether it reads the module's own input.
        active: of a map the activation that its outputs pass.
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
    active: str = ""
    scale: tuple[str, ...] = ()
    centred: bool = False
    reads: Any = field(default=None, repr=False)
    makes: Any = field(default=None, repr=False)


@dataclass
class _Origin:
    """Where a tensor comes from.

    Attributes:
        names: of the parameter that it is a view of.
        turned: whether as its transpose.
        steps: the last steps with a weight on its way, by their numbers.
        scores: of scores, and of what is made of them, the steps that made their two factors.
        heads: how many heads there are, of the weights of an attention.
        rows: rows that it is, each less or times a number of its own, as in LayerNorm.
    """

    names: tuple[str, ...] = ()
    turned: bool = False
    steps: frozenset[int] = frozenset()
    scores: tuple[frozenset[int], ...] = ()
    heads: int = 0
    rows: Any = None


@dataclass
class Trace:
    """A forward pass of a module: what it reads and answers, and what was noted on the way.

    Attributes:
        module: as it was handed over.
        inputs: what it reads.
        x: the same, as its copy in double precision reads it.
        outputs: what it answers; None where that is not compared.
        single: whether a step was below double precision.
        steps: in their order.
        origins: of every tensor, by its identity.
        kept: every tensor, so that none takes another's identity.
        refusal: the first operation on a parameter that no layer here does.
    """

    module: Any
    inputs: Rows
    x: Any
    outputs: Rows | None = None
    single: bool = False
    steps: list[Step] = field(default_factory=list[Step])
    origins: dict[int, _Origin] = field(default_factory=dict[int, _Origin])
    kept: list[Any] = field(default_factory=list[Any])
    refusal: str = ""

    def named(self, names: set[str], kinds: tuple[str, ...]) -> list[Step]:
        """The steps of these kinds with a parameter of one of these names."""
        return [step for step in self.steps if step.kind in kinds and names & {*step.weight}]

    def of(self, tensor: Any) -> _Origin:
        """Where a tensor comes from."""
        return self.origins.get(id(tensor), _Origin())

    def only_step(self, origins: frozenset[int]) -> Step | None:
        """The one step that a tensor comes from."""
        return self.steps[min(origins)] if len(origins) == 1 else None

    def note(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> None:
        """One call of a torch function."""
        tensors, outs = _tensors([*args, *kwargs.values()]), _tensors([out])
        self.kept += [*tensors, *outs]
        if not tensors or not outs:
            return
        weights = [tensor for tensor in tensors if self.of(tensor).names]
        if len(weights) == len(tensors):
            origin = self._view(name, weights, outs)
        elif (step := self._step(name, args, kwargs, tensors, weights, outs[0])) is not None:
            step.makes = outs[0].clone()
            self.steps.append(step)
            origin = _Origin(steps=frozenset([len(self.steps) - 1]))
        else:
            origin = self._joined(name, tensors, outs[0])
            if name in ACTIVATIONS and (step := self.only_step(origin.steps)) is not None and not step.active:
                step.active = "gelu_tanh" if kwargs.get("approximate") == "tanh" else ACTIVATIONS[name]
        self.origins |= {id(tensor): origin for tensor in outs}

    def _view(self, name: str, weights: Sequence[Any], outs: Sequence[Any]) -> _Origin:
        """Part of a parameter, or the parameter turned."""
        first = self.of(weights[0])
        if any(self.of(tensor).names != first.names for tensor in weights):
            raise CheckpointError(f"{name} joins {first.names[0]} with another parameter before any row meets them")
        back, there = outs[0].stride()[::-1], weights[0].stride()
        turns = outs[0].ndim == 2 and back == there != there[::-1] and outs[0].shape[::-1] == weights[0].shape
        return _Origin(first.names, first.turned != turns)

    def _joined(self, name: str, tensors: Sequence[Any], out: Any) -> _Origin:
        """Where the result of an operation without a weight comes from."""
        before = [self.of(tensor) for tensor in tensors]
        origin = _Origin(
            steps=frozenset[int]().union(*(part.steps for part in before)),
            scores=next((part.scores for part in before if part.scores), ()),
            heads=max(part.heads for part in before),
            rows=before[0].rows if out is tensors[0] else None,
        )
        ends = [tensor.shape[-1] if tensor.ndim > 1 else 0 for tensor in tensors]
        if name in ("mul", "rmul", "sub", "div", "truediv") and len(ends) == 2 and 1 in ends:
            rows = tensors[ends[0] == 1]
            origin.rows = rows.clone() if self.of(rows).rows is None else self.of(rows).rows
        if name in _PRODUCTS and not origin.scores and len(tensors) == 2:
            origin.scores = tuple(part.steps for part in before)
        if name == "softmax" and origin.scores:
            origin.heads = out.shape[1] if out.ndim == 4 else 1
        return origin

    def _step(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], tensors: Any, weights: Any, out: Any
    ) -> Step | None:
        """The step that a call is; None where no parameter enters it."""
        before = [self.of(tensor) for tensor in tensors]
        parts = tuple(self.only_step(origin.steps) for origin in before)
        first, heads = tensors[0], before[0].heads
        if name == "normalize":
            raise CheckpointError("it divides rows by their norm, and x / |x| has no Lipschitz constant near 0")
        if name == "multi_head_attention_forward":
            return self._torch_attention(args)
        if name == "scaled_dot_product_attention":
            return Step("attention", parts=parts[:3], heads=first.shape[1] if first.ndim == 4 else 1)
        if name in _PRODUCTS and heads and not weights and len(tensors) == 2:
            made_of = tuple(map(self.only_step, before[0].scores))
            return Step("attention", parts=(*made_of, parts[1]), heads=heads)
        names = [self.of(weight).names for weight in weights]
        if name in ("layer_norm", "rms_norm"):
            gain, offset = (*names, (), ())[:2]
            eps = kwargs.get("eps", args[-1] if isinstance(args[-1], float) else None)
            reads, centred = first.clone(), name == "layer_norm"
            return Step("norm", gain, offset, parts=parts[:1], eps=eps, centred=centred, reads=reads)
        if not weights:
            return None
        shape = tuple(weights[0].shape)
        wide = bool(shape) and math.prod(shape) == shape[-1] > 1
        rows = next(tensor for tensor in tensors if not self.of(tensor).names)
        if name == "embedding" or (name == "getitem" and len(tensors) > len(weights)):
            index = next(tensor for tensor in tensors if not tensor.is_floating_point())
            tokens = index.shape == self.x.shape and bool((index == self.x).all())
            return Step("table" if tokens or bool(index.any()) else "segments", names[0], tokens=tokens)
        if name == "linear" or (name == "conv2d" and len(shape) == 4):
            kind, turned = "map" if name == "linear" else "patches", not self.of(weights[0]).turned
            return Step(kind, names[0], names[1] if len(names) > 1 else (), turned, parts[:1], reads=first.clone())
        if name in ("matmul", "rmatmul", "addmm") and len(weights[-1].shape) == 2:
            offset = names[0] if len(names) > 1 else ()
            return Step("map", names[-1], offset, self.of(weights[-1]).turned, reads=rows.clone())
        last = self.steps[-1] if self.steps else None
        if name in ("mul", "rmul") and wide:
            direct = last is not None and last.kind == "map" and rows.shape == last.makes.shape
            if last is None or not direct or shape[-1] < last.makes.shape[-1] or not bool((rows == last.makes).all()):
                source = next((part for part in parts if part is not None), None)
                return Step("norm", names[0], parts=(source,), reads=self.of(rows).rows)
            if not last.scale:
                last.scale = names[0]
                return None
        latest = max(max(origin.steps, default=-1) for origin in before)
        if name in _SUMS and wide and last is not None and latest == len(self.steps) - 1 and not last.offset:
            last.offset, last.makes = names[0], out.clone()
            return None
        if (name in _SUMS and len(shape) > 1) or name in ("cat", "concat"):
            return Step("added" if name in _SUMS else "put", names[0])
        raise CheckpointError(f"{names[0][0]} enters {name}: no layer here does that with a weight")

    def _torch_attention(self, args: Sequence[Any]) -> Step:
        """torch.nn.MultiheadAttention: its fused map, the attention, and W_O as the last step."""
        fused, offset, out, its = (self.of(args[at]).names for at in (5, 6, 11, 12))
        if not fused or args[7] is not None:
            raise CheckpointError("its attention has keys of another width, or rows of keys that are trained")
        step = Step("map", fused, offset, turned=True)
        self.steps += [step, Step("attention", parts=(step,) * 3, heads=args[4])]
        return Step("map", out, its, turned=True)


def _tensors(values: Sequence[Any]) -> list[Any]:
    import torch

    flat = [item for value in values for item in (value if isinstance(value, tuple | list) else (value,))]
    return [item for item in flat if isinstance(item, torch.Tensor)]


def record(module: Any, batches: Sequence[Any]) -> Trace:
    """A module's forward pass in double precision, on the first of some batches that it takes."""
    copy, why = double_precision_copy(module), "no table or map shows its inputs"
    for batch in map(np.asarray, batches):
        trace = Trace(module, batch, as_arrays(batch))
        try:
            trace.outputs = _followed(copy, trace)
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
            text = " ".join(str(error).split())[:200]
            why = f"the module does not take inputs of shape {batch.shape} ({batch.dtype}): {text}"
        else:
            return trace
    raise NotRun(f"{why}; give some of its own (--data, inputs=)")


def _followed(module: Any, trace: Trace) -> Rows:
    """The outputs of a forward pass, which is noted."""
    from torch.overrides import TorchFunctionMode

    for name, value in module.named_parameters(remove_duplicate=False):
        trace.origins[id(value)] = _Origin((*trace.of(value).names, name))
        trace.kept.append(value)

    class Note(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            trace.single |= any(str(value.dtype) in NARROW for value in _tensors([out]))
            try:
                trace.note(getattr(func, "__name__", "").strip("_"), args, kwargs or {}, out)
            except Exception as error:  # what cannot be noted is not compared
                trace.refusal = trace.refusal or str(error)
            return out

    with ready(), Note():
        return answer(module, trace.x)


def example_inputs(model: Model, n: int = 4, longest: int = 32) -> Rows:
    """Inputs as the architecture reads them, drawn from a fixed seed."""
    rng, architecture = np.random.default_rng(0), model.architecture
    length = min(architecture.seq_len, longest)
    tables = token_tables(architecture.stages)
    if tables:
        drawn = rng.integers(0, tables[0].vocabulary, (n, length))
        padding = model.checkpoint.config.get("pad_token_id")  # some models number positions by what is no padding
        drawn = np.where(drawn == padding, (drawn + 1) % tables[0].vocabulary, drawn)
        end = end_token(model, tables[0].vocabulary)
        if end is not None:
            drawn[drawn == end] = (end + 1) % tables[0].vocabulary
            drawn[:, -1] = end
        return drawn
    shape = model.place("W_patch").shape if model.has("W_patch") else ()
    if len(shape) == 4:
        patches = architecture.seq_len - tokens_before(model)
        side = math.isqrt(patches)
        if side * side == patches:
            return rng.uniform(-1, 1, (n, shape[1], side * shape[2], side * shape[3]))
    width = architecture.stages[0].widths()[0] or next(of_class(architecture.stages, Attention)).d
    x = rng.standard_normal((n, length, width))
    return x / np.sqrt((x**2).sum(-1, keepdims=True)) * architecture.input_radius


def end_token(model: Model, vocabulary: int) -> int | None:
    """The token whose row is read; sequences end with it, as what follows changes nothing where attention is causal.

    Of an `eos_token_id` of 2 CLIP's code reads the row of the largest token instead, which it takes for the end.
    """
    end = model.setting_of("end")
    if end is not None and size("eos_token_id", end, least=0) >= vocabulary:
        raise CheckpointError(f"{model.checkpoint.where}: eos_token_id {end} is none of the {vocabulary} tokens")
    return vocabulary - 1 if end == 2 else end


def some_inputs(module: Any) -> list[Any]:
    """Batches that a module may take: tokens that its tables have; else images of as many patches as rows, or rows."""
    rng, sizes = np.random.default_rng(0), [p.num_embeddings for p in module.modules() if hasattr(p, "num_embeddings")]
    if sizes:
        return [rng.integers(0, top, (4, rows)) for top in (max(sizes), min(sizes)) for rows in (32, 8, 4)]
    first = next((part for part in module.modules() if hasattr(part, "weight")), None)
    shape = () if first is None else tuple(first.weight.shape)
    if len(shape) == 4:
        d, channels, tall, wide = shape
        tables = [value.shape[-2] for value in module.parameters() if value.ndim > 1 and value.shape[-1] == d]
        sides = sorted({math.isqrt(rows) for rows in tables} - {1})
        return [rng.uniform(-1, 1, (4, channels, side * tall, side * wide)) for side in sides]
    return [rng.standard_normal((4, 8, shape[1])) / math.sqrt(shape[1])] if len(shape) == 2 else []


def patch_map(model: Model) -> str | None:
    """The map of patches that a module cuts itself, where it is a matrix and no convolution."""
    if not model.has("W_patch") or len(model.place("W_patch").shape) != 2:
        return None
    return model.place("W_patch").name


def rows_read(model: Model, trace: Trace) -> Rows:
    """What the description reads where the module read its inputs: of images rows, as they enter the map of patches."""
    x = trace.inputs
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
    shape = model.place("W_patch").shape if model.has("W_patch") else ()
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
