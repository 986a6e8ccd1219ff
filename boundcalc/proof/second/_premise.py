"""G0e in 50 digits: the largest margin of a class that radii alone allow, and that on inputs of both labels."""

from collections.abc import Iterator, Sequence

from ._covers import Sizes
from ._layers import Layer
from ._meeting import joined
from ._numbers import MP, Real, Refused, num
from ._rules import walk_through
from ._setting import Setting
from ._walk import Walk

_SCALES = ("ball", "pool")
_MASSES = ("softmax", "softmax1", "sigmoid")
"""Normalisers whose weights are a mean of rows, or less."""


def largest_margin(setting: Setting) -> Real:
    """The least that the setting and the class of its joined maps say."""
    return min(most for joined in _classes(setting) for most in _margins(joined))


def _classes(setting: Setting) -> Iterator[Setting]:
    yield setting
    try:
        yield joined(setting)
    except Refused:  # no maps meet
        return


def _margins(setting: Setting) -> Iterator[Real]:
    walk, classes = walk_through(setting), setting.classes
    yield walk.radius if classes == 1 else walk.radius * MP.sqrt(num(classes) / (classes - 1))
    before, steep = list(setting.stages), num(1)
    while before and (before[-1].label in _SCALES or (before[-1].label == "linear" and before[-1].bias is None)):
        layer = before.pop()
        steep *= _norms(walk, layer)[0].op if layer.label == "linear" else 1
    if classes > 1 or not before or vars(before[-1]).get("name") != "relu":
        return
    steep /= MP.sqrt(2)
    yield steep * walk.at[id(before.pop())]
    while before and before[-1].label in _SCALES:
        before.pop()
    norms = _norms(walk, before[-1]) if before else ()
    if norms:
        halves = sum(min(size.fro / MP.sqrt(2), size.two_one / 2) for size in norms)
        yield steep * walk.at[id(before[-1])] * halves


def _norms(walk: Walk, layer: Layer) -> Sequence[Sizes]:
    """Of the maps whose images of rows a layer adds up, without offsets; none where it is no such layer."""
    if layer.label == "linear" and layer.bias is None:
        return (walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)[0],)
    if layer.label != "attention" or layer.v_bias or layer.normaliser.name not in _MASSES:
        return ()
    heads = range(layer.heads) if walk.norms.headed else [None] * layer.heads
    return [walk.matrix("W_V", layer.block, head, layer.d, layer.out)[0] for head in heads]
