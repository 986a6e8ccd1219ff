"""JSON read strictly: what two readers could understand differently is refused.

A key given twice, NaN, Infinity and numbers beyond every float are all taken without a word by the standard library: one
of two values is dropped, or a number appears that nobody wrote. Nothing that is given may be ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Never

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.texts import read_text

if TYPE_CHECKING:
    from pathlib import Path

_MOST_SHOWN = 80


class _Refused(ValueError):
    """JSON of more than one meaning."""


def parse_json(text: str, where: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a JSON text.

    Args:
        text: the JSON.
        where: what it is from, as messages name it ("norms.json", "the certificate c.json").
        error: what to raise.

    Raises:
        error: the text is not JSON, has a key twice in one object, or a number that is not finite.
    """
    import json

    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except _Refused as refused:
        raise error(f"{where} {refused}") from None
    except RecursionError:
        raise error(f"{where} is not JSON that can be read: it is nested too deep") from None
    except ValueError as wrong:  # a malformed text, or a whole number of thousands of digits
        raise error(f"{where} is not JSON: {wrong}") from None


def read_json(path: str | Path, what: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a JSON file; `what` it is ("--norms") names it in errors. A missing file is an `OSError`."""
    return parse_json(read_text(path, what, error), str(path), error)


def assignments(words: Iterable[str], option: str) -> dict[str, Any]:
    """Words like "lr=0.01" of a repeated option: the values are JSON where they are, else text. A name is given once."""
    import json

    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise InvalidSetting(f"{option} takes NAME=VALUE, got {word!r}")
        if name in found:
            raise InvalidSetting(f"{option} sets {name!r} twice")
        try:
            json.loads(text)
        except ValueError:
            found[name] = text
        else:
            found[name] = parse_json(text, f"{option} {name}")
    return found


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "...")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise _Refused(f"gives the key {_shown(key)} twice in one object: remove one of them")
        out[key] = value
    return out


def _constant(word: str) -> Never:
    raise _Refused(f"holds {word}, which is no number of JSON: give a finite one")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused(f"holds the number {_shown(text)}, which is beyond every float: give a finite one")
    return value
