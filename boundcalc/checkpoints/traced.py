"""A description from a module's own forward pass: a parameter's role is what is done to it.

Every operation on a parameter is noted in order, and of every tensor which maps made it. Queries and keys make scores,
values are what these weigh; then W_O, then the feed-forward part. The forward check decides (`describe`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boundcalc.checkpoints.decode import to_float
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.config import ACTIVATIONS
from boundcalc.checkpoints.families.mapping import shortened
from boundcalc.checkpoints.families.names import stripped
from boundcalc.checkpoints.modules import as_arrays, bare, of_double, ready
from boundcalc.checkpoints.readers import Checkpoint
from boundcalc.checkpoints.recorded_pass import Call, some_inputs

_PRODUCTS = ("matmul", "rmatmul", "bmm", "einsum", "baddbmm")
_SUMS = ("add", "radd", "iadd")
_MOST_MAPS = 2
"""Maps behind the last block: a read-out, and one before it."""
_NONE = frozenset[int]()


@dataclass(eq=False)
class Step:
    """An operation with parameters, or an attention.

    Attributes:
        kind: table, map, patches, norm, attention, added or put (rows before others).
        weight: the parameter, by its names.
        offset: what is added after it, likewise.
        turned: whether the module multiplies by its transpose, as torch.nn.Linear does.
        parts: of an attention the steps that made queries, keys and values.
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
        weights = [each for each in tensors if id(each) in self.linked]
        if outs and weights and len(weights) == len(tensors):
            self._view(name, weights, outs)
        if not outs or len(weights) == len(tensors):
            return
        step = self._step(name, args, kwargs, tensors, weights, outs[0])
        if step is not None:
            self.steps.append(step)
            self.made_by |= {id(each): frozenset([len(self.steps) - 1]) for each in outs}
            return
        origins = _NONE.union(*(self.made_by.get(id(each), _NONE) for each in tensors))
        scores = next((self.scores[id(each)] for each in tensors if id(each) in self.scores), None)
        heads = next((self.heads[id(each)] for each in tensors if id(each) in self.heads), None)
        if name in _PRODUCTS and scores is None and len(tensors) == 2:
            scores = tuple(self.made_by.get(id(each), _NONE) for each in tensors)
        if name == "softmax" and scores is not None:
            heads = outs[0].shape[1] if outs[0].ndim == 4 else 1
        for each in outs:
            self.made_by[id(each)] = origins
            if scores is not None:
                self.scores[id(each)] = scores
            if heads is not None:
                self.heads[id(each)] = heads
        if name in ACTIVATIONS and len(origins) == 1:
            kind = "gelu_tanh" if kwargs.get("approximate") == "tanh" else ACTIVATIONS[name]
            self.active.setdefault(min(origins), kind)

    def _view(self, name: str, weights: Sequence[Any], outs: Sequence[Any]) -> None:
        """Part of a parameter, or the parameter turned."""
        names, turned = self.linked[id(weights[0])]
        if any(self.names(each) != names for each in weights):
            raise CheckpointError(f"{name} joins {names[0]} with another parameter before any row meets them")
        back, there = outs[0].stride()[::-1], weights[0].stride()
        turns = outs[0].ndim == 2 and back == there != there[::-1] and outs[0].shape[::-1] == weights[0].shape
        self.linked |= {id(each): (names, turned != turns) for each in outs}

    def _step(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], tensors: Any, weights: Any, out: Any
    ) -> Step | None:
        """The step that a call is; None where no parameter enters it."""
        first = tensors[0]
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
            return Step("norm", gain, offset, eps=kwargs.get("eps", args[-1] if isinstance(args[-1], float) else None))
        if not weights:
            return None
        names, turned = self.linked[id(weights[0])]
        shape = tuple(weights[0].shape)
        wide = bool(shape) and math.prod(shape) == shape[-1] > 1
        if name == "embedding" or (name == "getitem" and len(tensors) > len(weights)):
            index = next(each for each in tensors if not each.is_floating_point())
            return Step("table", names, tokens=index.shape == self.x.shape and bool((index == self.x).all()))
        if name == "linear" or (name == "conv2d" and len(shape) == 4):
            offset = self.names(weights[1]) if len(weights) > 1 else ()
            return Step("map" if name == "linear" else "patches", names, offset, not turned)
        if name in ("matmul", "rmatmul", "addmm") and len(weights[-1].shape) == 2:
            names, turned = self.linked[id(weights[-1])]
            return Step("map", names, self.names(weights[0]) if len(weights) > 1 else (), turned)
        last = self.steps[-1] if self.steps else None
        scaled = last is not None and last.kind == "map" and any(self.only_step(each) is last for each in tensors)
        if name in ("mul", "rmul") and wide and not scaled:
            return Step("norm", names)
        latest = max(max(self.made_by.get(id(each), (-1,)), default=-1) for each in tensors)
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

    flat = [each for value in values for each in (value if isinstance(value, tuple | list) else (value,))]
    return [each for each in flat if isinstance(each, torch.Tensor)]


def trace_of(module: Any, inputs: Any, call: Call | None = None) -> Trace:
    """The steps of a forward pass."""
    copy, why = of_double(bare(module)), ": no table or map shows its inputs; give some (--data, inputs=)"
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


_LAYOUTS = {"pre": ("NANM{k}", "N?"), "post": ("ANM{k}N", ""), "none": ("AM{k}", "")}
"""Of a block: normalisations (N), attention with its W_O (A), maps (M); and what may follow the last block."""
_WORDS = {"N": "normalisation", "A": "attention", "M": "map"}


def mappings(trace: Trace, checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """The mappings that a trace may stand for; a refusal says why there is none."""
    front, body, blocks = _in_blocks(trace)
    text = "".join(kind for kind, _ in body)
    found: list[dict[str, Any]] = []
    for style, (block, tail) in _LAYOUTS.items():
        for many in (2, 3):
            inner = block.format(k=f"{{{many}}}")
            match = re.fullmatch(f"(M?N?)((?:{inner})+)({tail}M{{0,{_MOST_MAPS}}})", text)
            if match:
                draft = _Draft(trace, checkpoint, stripped(list(checkpoint.tensors)))
                found.append(draft.mapping(front, [step for _, step in body], blocks, style, many, match))
    if not found:
        words = ", ".join(_WORDS[each] for each in text[:12]) + ", ..." * (len(text) > 12)
        raise CheckpointError(f"its layers come in the order {words}: no style of blocks here has them so")
    return found


def _in_blocks(trace: Trace) -> tuple[list[Step], list[tuple[str, Step]], list[list[Step]]]:
    """What enters the first block; normalisations, attentions (as W_O) and other maps; the heads of each attention."""
    inside = {id(part) for step in trace.steps for part in step.parts}
    front: list[Step] = []
    body: list[tuple[str, Step]] = []
    blocks: list[list[Step]] = []
    waiting: list[Step] = []
    for step in trace.steps:
        if step.kind == "attention":
            if any(part is None or part.kind != "map" for part in step.parts):
                raise CheckpointError("its queries, keys or values are not what one map makes of a row")
            waiting.append(step)
        elif step.kind in ("table", "patches", "added", "put"):
            if blocks or waiting:
                raise CheckpointError(f"{step.weight[0]} is added behind the first attention")
            front.append(step)
        elif step.kind == "map" and waiting and id(step) not in inside:
            blocks.append(waiting)
            body.append(("A", step))
            waiting = []
        elif id(step) not in inside:
            body.append(("N" if step.kind == "norm" else "M", step))
    if not blocks:
        raise CheckpointError("its forward pass shows no attention: no softmax of products of two maps weighs a third")
    return front, body, blocks


@dataclass
class _Draft:
    """A mapping while it is made: roles of tensors, and what the architecture is said to be."""

    trace: Trace
    checkpoint: Checkpoint
    short: Mapping[str, str]
    tensors: dict[str, str] = field(default_factory=dict[str, str])
    said: dict[str, Any] = field(default_factory=dict[str, Any])

    def put(self, names: tuple[str, ...], role: str) -> bool:
        """Gives a parameter its role, by a name that has none yet; whether there was one."""
        free = [self.short[name] for name in names if name in self.short and self.short[name] not in self.tensors]
        self.tensors |= dict.fromkeys(free[:1], role)
        return bool(free)

    def take(self, step: Step, kind: str, place: str = "", *, again: bool = False) -> None:
        """The same of a map or a normalisation, with its offset; `again`: it may have another role already."""
        norm = kind.startswith("norm_")
        role = f"{kind}.gain{place}" if norm else f"{kind}{place}{'.T' if step.turned else ''}"
        if step.weight and not self.put(step.weight, role) and not again:
            raise CheckpointError(f"{step.weight[0]} is read in two places, of which one is {kind}{place}")
        if step.offset:
            self.put(step.offset, f"{kind}.offset{place}" if norm else f"b_{kind.removeprefix('W_')}{place}")

    def shape(self, step: Step) -> tuple[int, ...]:
        """As the map is read: x -> x W."""
        shape = self.checkpoint.tensors[step.weight[0]].shape
        return shape[::-1] if step.turned else shape

    def active(self, step: Step, default: str) -> str:
        """The activation that a map's outputs pass."""
        return self.trace.active.get(self.trace.steps.index(step), default)

    def mapping(
        self, front: Any, steps: list[Step], blocks: Sequence[Any], style: str, many: int, match: re.Match[str]
    ) -> dict[str, Any]:
        """The mapping of one layout; `match` says where its blocks begin and end."""
        d, said = self.shape(next(step for step in steps[match.end(1) :] if step.kind == "map"))[-1], self.said
        heads = min(len(block) if len(block) > 1 else block[0].heads for block in blocks)
        said |= {"style": "pre" if style == "none" else style, "depth": len(blocks), "d": d, "heads": heads}
        norms = [step for step in steps if step.kind == "norm"]
        eps = next((step.eps for step in norms if step.eps), None)
        centred = bool(eps) or any(step.offset for step in norms)
        kind = "none" if not norms else "layernorm" if centred else "rmsnorm"
        said |= {"residual": True, "normalisation": kind} | ({"eps": eps or 1e-5} if norms else {})
        self._front(front, steps[: match.end(1)])
        each = (match.end(2) - match.start(2)) // len(blocks)
        for at, block in enumerate(blocks):
            self._block(steps[match.start(2) + at * each :][:each], style, many, block, at)
        tail = steps[match.start(3) :]
        if tail and tail[0].kind == "norm":
            self.take(tail.pop(0), "norm_final")
        pooled = tail.pop(0) if len(tail) == _MOST_MAPS else None
        if pooled is not None:
            self.take(pooled, "W_pool")
            said["pooler"] = True
        for step in tail:  # a table that is read again has no second name
            said["classes"] = self.shape(step)[-1]
            self.take(step, "readout", again=True)
        ignored = self._ignored(d)
        found: dict[str, Any] = {"architecture": said, "tensors": shortened(self.tensors, len(blocks))}
        return found | ({} if pooled is None else {"pooler": self.active(pooled, "tanh")}) | ignored

    def _ignored(self, d: int) -> dict[str, Any]:
        """Buffers, of which one may be a table of positions, and parameters that were never read."""
        there = self.checkpoint.tensors
        read = {name for step in self.trace.steps for name in (*step.weight, *step.offset)}
        unread = [name for name, tensor in there.items() if tensor.is_float and name not in read]
        ignored = {self.short[name]: "the forward pass does not read it" for name in unread}
        ignored |= {self.short[name]: "a buffer, not a weight" for name in self.checkpoint.buffers & set(there)}
        for name in () if "positions" in self.said else self.checkpoint.buffers & set(there):
            tensor = there[name]
            if tensor.is_float and len(tensor.shape) > 1 and tensor.size == d * tensor.shape[-2]:
                rows = np.asarray(to_float(tensor.fetch(), tensor.dtype), np.float64).reshape(-1, d)
                if np.isin(rows, (0, 1, -np.inf)).all():
                    continue  # a mask
                radius = float(np.sqrt((rows**2).sum(1)).max()) * (1 + 1e-12)
                self.said |= {"positions": "fixed", "seq_len": len(rows), "position_radius": radius}
                self.tensors[self.short[name]] = "positions"
                del ignored[self.short[name]]
                break
        return {"ignored": ignored} if ignored else {}

    def _front(self, front: Sequence[Step], first: Sequence[Step]) -> None:
        """Tables, patches, positions, and a normalisation of what they make."""
        token = next((step for step in front if step.kind == "table" and step.tokens), None)
        others = [step for step in front if step is not token and step.kind in ("table", "added")]
        if len(others) > 1 or (token is not None and any(step.kind == "map" for step in first)):
            raise CheckpointError("more than a table of tokens and one of positions make the rows of its first block")
        if token is not None:
            self.take(token, "embedding")
            self.said |= {"vocabulary": self.shape(token)[0], "causal": True}
        for step in others:
            self.take(step, "positions")
            self.said |= {"positions": "learned", "seq_len": self.shape(step)[-2]}
        for step in (*front, *first):
            if step.kind == "put":
                self.take(step, "class_token")
            elif step.kind == "norm":
                self.take(step, "norm_embedding")
                self.said["embedding_norm"] = True
            elif step.kind in ("map", "patches"):
                self.take(step, "W_patch")
                width = (
                    math.prod(self.checkpoint.tensors[step.weight[0]].shape[1:]) if step.turned else self.shape(step)[0]
                )
                self.said["d_patch"] = width
                if step.kind == "patches":  # pixels in [-1, 1]
                    self.said["input_radius"] = math.nextafter(math.sqrt(width), math.inf)

    def _block(self, steps: Sequence[Step], style: str, many: int, heads: Sequence[Step], at: int) -> None:
        """The roles of one block."""
        order = _LAYOUTS[style][0]
        norms = [step for step in steps if step.kind == "norm"]
        for step, kind in zip(norms, ("norm_attention", "norm_ffn"), strict=False):
            self.take(step, kind, f"[{at}]")
        self.take(steps[order.index("A")], "W_O", f"[{at}]")
        for head, attention in enumerate(heads):
            parts = [part for part in attention.parts if part is not None]
            fused = parts[0] is parts[1]
            for part, kind in zip(parts, ("W_QKV",) if fused else ("W_Q", "W_K", "W_V"), strict=False):
                self.take(part, kind, f"[{at}]" if len(heads) == 1 else f"[{at},{head}]")
            if not fused and len(heads) == 1 and self.shape(parts[0]) != self.shape(parts[1]):
                self.said["kv_heads"] = self.said["heads"] * self.shape(parts[1])[-1] // self.shape(parts[0])[-1]
        maps = list(steps[order.index("M") :][:many])
        if many > _MOST_MAPS and not self.active(maps[0], ""):
            maps[:2] = maps[1::-1]  # the one that passes the activation is W_1
        for step, kind in zip(maps, ("W_1", "W_3", "W_2") if many > _MOST_MAPS else ("W_1", "W_2"), strict=True):
            self.take(step, kind, f"[{at}]")
        self.said |= {"d_ff": self.shape(maps[0])[-1], "activation": self.active(maps[0], "gelu")}
        self.said |= {"gated": True} if many > _MOST_MAPS else {}
