"""Fields are declared once: options, descriptions and symbols say what the declaration says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import Size, declare, read, read_complete, specs, write
from boundcalc.base.validate import LETTERS
from boundcalc.cli._setting import ENTRIES as OPTIONS
from boundcalc.setting import Architecture, Norms, Sample

DECLARED = {**specs(Architecture), **specs(Norms), **specs(Sample)}


def test_every_field_has_words_and_every_option_is_declared() -> None:
    assert all(spec.words for spec in DECLARED.values())
    assert set(LETTERS.values()) <= DECLARED.keys()
    assert {entry.field for entry in OPTIONS} >= DECLARED.keys() - {"measured", "failure"}


@dataclass(frozen=True)
class _Pair:
    """What the reader is tried on."""

    size: Size = declare(1, "a size")
    parts: tuple[float, ...] = ()
    inner: _Pair | None = None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"sizes": 1}, "no 'sizes'; did you mean 'size'"),
        ({"size": True}, "whole number"),
        ({"size": 1.5}, "whole number"),
        ({"size": float("nan")}, "whole number"),
        ({"parts": [1, float("inf")]}, r"parts\[1\] must be a number"),
        ({"parts": 3}, "must be a list"),
        ({"inner": {"inner": {"parts": ["1"]}}}, r"p.inner.inner.parts\[0\]"),
        ([], "must be a JSON object"),
    ],
)
def test_the_reader_names_the_place(data: Any, why: str) -> None:
    with pytest.raises(InvalidSetting, match=why):
        read(_Pair, data, "p")


def test_what_proofs_rest_on_is_complete() -> None:
    value = _Pair(2, (1.0,), _Pair())
    full = write(value, complete=True)
    assert read_complete(_Pair, full, "p") == value == read(_Pair, write(value), "p")
    assert write(value) == {"size": 2, "parts": [1.0], "inner": {}}
    for wrong in (write(value), full | {"size": 2.0}, full | {"parts": [True]}):
        with pytest.raises(InvalidSetting):
            read_complete(_Pair, wrong, "p")
