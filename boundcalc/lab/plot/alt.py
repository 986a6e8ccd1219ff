"""What a figure shows, for those who do not see it: text made from the data that were drawn."""

from __future__ import annotations

from boundcalc.base.prose import plain
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.registry import FIGURES
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import KIND_WORDS
from boundcalc.lab.plot.words import many, short

_MOST = 9
"""More series than this of one kind and quantity are told together."""


def alt_text(spec: Spec, data: FigureData, caption: str) -> str:
    """The figure in a paragraph: what it is, where every series begins and ends, what follows."""
    groups: dict[tuple[str, str, str], list[Series]] = {}
    for one in data.series:
        if one.known():
            groups.setdefault((one.panel, one.kind, one.quantity), []).append(one)
    parts: list[str] = []
    for (_, kind, quantity), series in groups.items():
        told = _together(series) if len(series) > _MOST else "; ".join(_one(each) for each in series)
        parts.append(f"{quantity.replace('_', ' ').capitalize()}, {KIND_WORDS[kind]}: {told}.")
    return " ".join([FIGURES[spec.figure].about, *parts, caption])


def _one(series: Series) -> str:
    known = sorted(series.known().items())
    name = plain(series.label).replace("\\", "")
    if not series.telling:
        return f"{name} says nothing"
    (first, low), (last, high) = known[0], known[-1]
    if last == first:
        return f"{name} {short(low)} at {short(first)}"
    return f"{name} from {short(low)} at {short(first)} to {short(high)} at {short(last)}"


def _together(series: list[Series]) -> str:
    values = [value for one in series for value in one.known().values()]
    return f"{many(len(series), 'line')} between {short(min(values))} and {short(max(values))}"
