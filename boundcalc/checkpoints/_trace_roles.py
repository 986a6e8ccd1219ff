"""The mappings that a followed forward pass may stand for: a parameter's role is what is done to it.

Queries and keys make scores, values are what these weigh; then W_O, then the feed-forward part. Where several layouts
fit the same steps, the forward check decides (`describe`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.names import shortened, stripped
from boundcalc.checkpoints.tensors import Checkpoint, to_float
from boundcalc.checkpoints.traced import Step, Trace

_LONGEST = 512
"""T of a module without a table of positions, unless its mapping or the user says another."""
_MOST_MAPS = 2
"""Maps behind the last block: a read-out, and one before it."""
_LAYOUTS = {"pre": ("NANM{k}", "N?"), "post": ("ANM{k}N", ""), "none": ("AM{k}", "")}
"""Of a block: normalisations (N), attention with its W_O (A), maps (M); and what may follow the last block."""
_WORDS = {"N": "normalisation", "A": "attention", "M": "map"}


def mappings(trace: Trace, checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """The mappings that a trace may stand for; a refusal says why there is none."""
    front, body, blocks = _in_blocks(trace)
    text = "".join(kind for kind, _ in body)
    candidates, refusal = list[dict[str, Any]](), None
    for style, (block, tail) in _LAYOUTS.items():
        for many in (2, 3):
            inner = block.format(k=f"{{{many}}}")
            match = re.fullmatch(f"(M?N?)((?:{inner})+)({tail}M{{0,{_MOST_MAPS}}})", text)
            if match is None:
                continue
            draft = _Draft(trace, checkpoint, stripped(list(checkpoint.tensors)))
            try:
                candidates.append(draft.mapping(front, [step for _, step in body], blocks, style, many, match))
            except CheckpointError as error:
                refusal = refusal or error
    if not candidates:
        words = ", ".join(_WORDS[word] for word in text[:12]) + ", ..." * (len(text) > 12)
        raise refusal or CheckpointError(f"its layers come in the order {words}: no style of blocks here has them so")
    return candidates


def _source(part: Step | None) -> Step | None:
    """The step that makes queries, keys or values; of normalised ones that before."""
    return part.parts[0] if part is not None and part.kind == "norm" else part


def _in_blocks(trace: Trace) -> tuple[list[Step], list[tuple[str, Step]], list[list[Step]]]:
    """What enters the first block; normalisations, attentions (as W_O) and other maps; the heads of each attention."""
    parts = [part for step in trace.steps if step.kind == "attention" for part in step.parts]
    inside = {id(part) for part in (*parts, *map(_source, parts))}
    front: list[Step] = []
    body: list[tuple[str, Step]] = []
    blocks: list[list[Step]] = []
    waiting: list[Step] = []
    for step in trace.steps:
        if step.kind == "attention":
            if any(getattr(_source(part), "kind", "") != "map" for part in step.parts):
                raise CheckpointError("its queries, keys or values are not what one map makes of a row")
            normed = [part for part in step.parts if part is not None and part.kind == "norm"]
            if any(part.centred or part.offset or not part.weight for part in normed):
                raise CheckpointError(
                    "its queries and keys are centred, or normalised without gains, before they meet: no layer here "
                    "does that"
                )
            waiting.append(step)
        elif step.kind in ("table", "segments", "patches", "added", "put"):
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
    unread: set[str] = field(default_factory=set[str])

    def put(self, names: tuple[str, ...], role: str) -> bool:
        """Gives a parameter its role, by a name that has none yet; whether there was one."""
        free = [self.short[name] for name in names if name in self.short and self.short[name] not in self.tensors]
        self.tensors |= dict.fromkeys(free[:1], role)
        return bool(free)

    def take(self, step: Step, kind: str, place: str = "") -> None:
        """The same of a map or a normalisation, with its offset; a read-out may be the table."""
        norm = kind.startswith("norm_")
        role = f"{kind}.gain{place}" if norm else f"{kind}{place}{'.T' if step.turned else ''}"
        if step.weight and not self.put(step.weight, role):
            before = next(self.tensors[self.short[name]] for name in step.weight if self.short[name] in self.tensors)
            if kind != "readout" or before != "embedding":
                raise CheckpointError(f"{step.weight[0]} is both {before} and {kind}{place}")
            self.said["tied"] = True
        if step.offset:
            self.put(step.offset, f"{kind}.offset{place}" if norm else f"b_{kind.removeprefix('W_')}{place}")
        if step.scale:
            self.put(step.scale, f"outputs_of.{kind}{place}")

    def shape(self, step: Step) -> tuple[int, ...]:
        """As the map is read: x -> x W."""
        shape = self.checkpoint.tensors[step.weight[0]].shape
        return shape[::-1] if step.turned else shape

    def mapping(
        self, front: Any, steps: list[Step], blocks: Sequence[Any], style: str, many: int, match: re.Match[str]
    ) -> dict[str, Any]:
        """The mapping of one layout; `match` says where its blocks begin and end."""
        d, said = self.shape(next(step for step in steps[match.end(1) :] if step.kind == "map"))[-1], self.said
        said["heads"] = min(len(block) if len(block) > 1 else block[0].heads for block in blocks)
        norms = [step for step in steps if step.kind == "norm"]
        eps = next((step.eps for step in norms if step.eps), None)
        centred = bool(eps) or any(step.offset for step in norms)
        if norms:
            kind = "layernorm" if centred else "rmsnorm"
            said |= {"style": "post" if style == "post" else "pre", "normalisation": kind, "eps": eps or 1e-5}
        self._front(front, steps[: match.end(1)])
        width = (match.end(2) - match.start(2)) // len(blocks)
        for at, block in enumerate(blocks):
            self._block(steps[match.start(2) + at * width :][:width], style, many, block, at)
        tail = steps[match.start(3) :]
        if tail and tail[0].kind == "norm":
            self.take(tail.pop(0), "norm_final")
        if len(tail) == _MOST_MAPS and tail[1].parts and tail[1].parts[0] is not tail[0]:
            self.unread = {*tail[0].weight, *tail.pop(0).offset}  # whose outputs nothing reads
        pooled = tail.pop(0) if len(tail) == _MOST_MAPS else None
        if pooled is not None:
            self.take(pooled, "W_pool")
            said["pooler"] = pooled.active or "tanh"
        for step in tail:  # a table that is read again has no second name
            self.take(step, "readout")
        ignored = self._ignored(d)
        said |= {} if "positions" in self.tensors.values() else {"longest": _LONGEST}
        return {"architecture": said, "tensors": shortened(self.tensors, len(blocks))} | ignored

    def _ignored(self, d: int) -> dict[str, Any]:
        """Buffers, of which one may be a table of positions, and parameters that were never read."""
        there = self.checkpoint.tensors
        read = {name for step in self.trace.steps for name in (*step.weight, *step.offset, *step.scale)} - self.unread
        unread = [name for name, tensor in there.items() if tensor.is_float and name not in read]
        ignored = {self.short[name]: "the forward pass does not read it" for name in unread}
        ignored |= {self.short[name]: "a buffer, not a weight" for name in self.checkpoint.buffers & set(there)}
        for name in () if "positions" in self.tensors.values() else self.checkpoint.buffers & set(there):
            tensor = there[name]
            if tensor.is_float and len(tensor.shape) > 1 and tensor.size == d * tensor.shape[-2]:
                rows = np.asarray(to_float(tensor.fetch(), tensor.dtype), np.float64).reshape(-1, d)
                if np.isin(rows, (0, 1, -np.inf)).all():
                    continue  # a mask
                radius = float(np.sqrt((rows**2).sum(1)).max()) * (1 + 1e-12)
                self.said["position_radius"] = radius
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
            self.said["causal"] = True
        for step in others:
            self.take(step, "positions")
        for step in (*front, *first):
            if step.kind in ("put", "segments"):
                self.take(step, "class_token" if step.kind == "put" else "segments")
            elif step.kind == "norm":
                self.take(step, "norm_embedding")
            elif step.kind in ("map", "patches"):
                self.take(step, "W_patch")

    def _block(self, steps: Sequence[Step], style: str, many: int, heads: Sequence[Step], at: int) -> None:
        """The roles of one block."""
        order = _LAYOUTS[style][0]
        norms = [step for step in steps if step.kind == "norm"]
        for step, kind in zip(norms, ("norm_attention", "norm_ffn"), strict=False):
            self.take(step, kind, f"[{at}]")
        self.take(steps[order.index("A")], "W_O", f"[{at}]")
        for head, attention in enumerate(heads):
            parts = [part for part in map(_source, attention.parts) if part is not None]
            fused = parts[0] is parts[1]
            for part, kind in zip(attention.parts, ("norm_Q", "norm_K"), strict=False):
                if part is not None and part.kind == "norm":
                    self.take(part, kind, f"[{at}]")
                    self.said["qk_eps"] = part.eps or 1e-6
            for part, kind in zip(parts, ("W_QKV",) if fused else ("W_Q", "W_K", "W_V"), strict=False):
                self.take(part, kind, f"[{at}]" if len(heads) == 1 else f"[{at},{head}]")
        maps = list(steps[order.index("M") :][:many])
        if many > _MOST_MAPS and not maps[0].active:
            maps[:2] = maps[1::-1]  # the one that passes the activation is W_1
        for step, kind in zip(maps, ("W_1", "W_3", "W_2") if many > _MOST_MAPS else ("W_1", "W_2"), strict=True):
            self.take(step, kind, f"[{at}]")
        self.said["activation"] = maps[0].active or "gelu"
