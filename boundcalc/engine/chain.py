"""Which scales to chain through, and how to link them: a shortest path with labels. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_LABELS = 4
"""Labels (cost so far, count of the path so far) kept per scale; more changes the fourth digit at most."""


@dataclass(frozen=True, slots=True)
class _Label:
    cost: float
    path: float
    node: int
    link: Literal["tree", "clip"]
    back: _Label | None


def best_chain(
    start: float, scales: Sequence[float], counts: Sequence[float], weight: float
) -> tuple[float, list[tuple[int, Literal["tree", "clip"]]]]:
    """Least e_J + weight * sum of link * sqrt(count), over increasing subsequences and links.

    scales fall from below `start` = e_0; counts are log counts (they may be inf). Returns the value and (index, link)s;
    the empty chain costs e_0.
    """
    labels: list[list[_Label]] = []
    best_value, best_label = start, None
    for j, (scale, count) in enumerate(zip(scales, counts, strict=True)):
        found: list[_Label] = []
        if not math.isfinite(count):
            labels.append(found)
            continue
        ceiling = best_value
        first = weight * start * math.sqrt(count)
        if first < ceiling:
            found.append(_Label(first, count, j, "clip", None))
        root = weight * math.sqrt(count)
        for i in range(j):
            coarse = scales[i]
            tree = root * (coarse + scale)
            for label in labels[i]:
                if label.cost + tree < ceiling:
                    found.append(_Label(label.cost + tree, count, j, "tree", label))
                path = label.path + count
                clip = label.cost + weight * coarse * math.sqrt(path)
                if clip < ceiling:
                    found.append(_Label(clip, path, j, "clip", label))
        found.sort(key=lambda label: label.cost)
        kept: list[_Label] = []
        for label in found:
            if not kept or label.path < kept[-1].path:
                kept.append(label)
                if len(kept) == _LABELS:
                    break
        labels.append(kept)
        if kept and kept[0].cost + scale < best_value:
            best_value, best_label = kept[0].cost + scale, kept[0]
    chain: list[tuple[int, Literal["tree", "clip"]]] = []
    while best_label is not None:
        chain.append((best_label.node, best_label.link))
        best_label = best_label.back
    return best_value, chain[::-1]
